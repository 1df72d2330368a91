"""Tables in memory: tables of polars, pandas and pyarrow, anything else with Arrow's interfaces, and Python objects."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Final

import numpy as np
import pyarrow as pa

from voxpop.errors import ColumnError, InputError
from voxpop.reading.columns import FEW_ROWS, Batches, check_columns, quieten, withheld, without_quotes
from voxpop.reading.types import Column, array_of_objects, check_declared
from voxpop.reading.wanted import Request

TABLE: Final = "the table"
MEANT: Final = (
    "the source must be a path, folder, glob or list of paths; a polars, pandas or pyarrow table; anything that speaks "
    "Arrow (DuckDB, Ibis, ADBC, Hugging Face Datasets); an iterator of such; a cursor; a list of dictionaries or a "
    "dictionary of columns; or vp.SQL(query, connection); got {}."
)


def kind_of(source: Any) -> str:
    """Return the package and the class of an object."""
    return f"{type(source).__module__.partition('.')[0]}.{type(source).__name__}"


def is_dataset(source: Any) -> bool:
    """Return whether an object is a Hugging Face data set, without importing it."""
    return type(source).__module__.partition(".")[0] == "datasets" and hasattr(source, "with_format")


def arrow_batches(source: pa.Table | pa.RecordBatch, request: Request) -> Batches:
    """Yield the batches of an Arrow table, whose schema declares the types."""
    check_columns(request.names, source.schema.names, TABLE)
    table = pa.Table.from_batches([source]) if isinstance(source, pa.RecordBatch) else source
    table = table.select(request.names)
    check_declared(request.columns, table.schema.types)
    for batch in table.to_batches(max_chunksize=request.rows):
        yield TABLE, batch


def stream_batches(source: Any, request: Request) -> Batches:
    """Yield the batches of an Arrow stream, as they come."""
    with withheld():
        reader = source if isinstance(source, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(source)
    check_columns(request.names, reader.schema.names, TABLE)
    batches = iter(reader)
    while True:
        with withheld():
            batch = next(batches, None)
        if batch is None:
            return
        yield from arrow_batches(batch, request)


def polars_batches(source: Any, request: Request) -> Batches:
    """Yield the rows of a polars DataFrame or LazyFrame, whose dtypes declare the types."""
    if type(source).__name__ == "LazyFrame":
        if request.small:
            raise InputError(
                "a polars LazyFrame is collected whole, which no memory limit can bound: write it with sink_parquet "
                "and give the path."
            )
        with without_quotes(TABLE, "Check the address, and collect it by itself first."):
            names = source.collect_schema().names()
            check_columns(request.names, names, TABLE)
            source = source.select(request.names).collect()
    check_columns(request.names, source.columns, TABLE)
    if not any(str(source.schema[name]) == "Object" for name in request.names):
        return arrow_batches(source.select(request.names).to_arrow(), request)
    return columns_batches({name: source[name] for name in request.names}, request)


def pandas_batches(source: Any, request: Request) -> Batches:
    """Yield the rows of a pandas DataFrame, whose dtypes declare the types, except of object columns."""
    check_columns(request.names, [str(name) for name in source.columns], TABLE)
    return columns_batches({name: source[name] for name in request.names}, request)


def dataset_batches(source: Any, request: Request) -> Batches:
    """Yield batches of a Hugging Face data set; its own Arrow table would leave out shuffles and selections."""
    if isinstance(source, Mapping):
        raise InputError("this is a dictionary of data sets: give one of them, such as dataset['train'].")
    check_columns(request.names, list(source.column_names or request.names), TABLE)
    for each in source.with_format("arrow").iter(batch_size=FEW_ROWS if request.small else request.rows):
        yield from arrow_batches(each, request)


def columns_batches(source: Mapping[Any, Any], request: Request) -> Batches:
    """Yield the rows of a dictionary of columns."""
    check_columns(request.names, [str(name) for name in source], "the dictionary", declared=False)
    arrays = [_array(source[column.name], column) for column in request.columns]
    if len({len(each) for each in arrays}) > 1:
        raise InputError("the columns of the dictionary have different lengths. Give one value for each row in each.")
    for batch in pa.table(dict(zip(request.names, arrays, strict=True))).to_batches(max_chunksize=request.rows):
        yield TABLE, batch


def _array(values: Any, column: Column) -> Any:
    """Return the values of a column: of the type that its dtype declares, else by the rule for Python objects."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InputError(f'the column "{column.name}" of a dictionary must be a list, got {type(values).__name__}.')
    package = type(values).__module__.partition(".")[0]
    dtype = getattr(values, "dtype", None)
    categories = getattr(getattr(dtype, "categories", None), "dtype", None)
    # Object columns, and categories of objects, have no declared type.
    if dtype is None and not isinstance(values, pa.Array | pa.ChunkedArray) and not _speaks_arrow(values):
        return array_of_objects(values, column, TABLE, 0)
    if {"object", "Object"} & {str(dtype), str(categories)}:
        return array_of_objects(list(values), column, TABLE, 0)
    try:
        if package in ("pandas", "numpy"):
            made = pa.array(values, from_pandas=True)
        elif hasattr(values, "__arrow_c_stream__"):
            made = pa.chunked_array(values)
        else:
            made = pa.array(values)
    except (pa.ArrowException, TypeError, ValueError) as error:
        quieten(error)
        raise ColumnError(
            f'the column "{column.name}" has the dtype {dtype}, which Arrow does not have. Cast it to another type.'
        ) from None
    check_declared([column], [made.type])
    return made


def _speaks_arrow(value: Any) -> bool:
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")


def iterable_batches(source: Iterable[Any], request: Request, read: Callable[[Any, Request], Batches]) -> Batches:
    """Yield the rows of an iterable of dictionaries, or of tables one after the other, each by `read`."""
    rows = iter(source)
    first = next(rows, None)
    if first is None:
        return
    whole = chain([first], rows)
    if isinstance(first, Mapping) and not _is_table(first):
        yield from _dictionaries(whole, request)
        return
    for each in whole:
        if isinstance(each, str | bytes) or not (_is_table(each) or _speaks_arrow(each) or hasattr(each, "columns")):
            raise InputError(MEANT.format(f"an iterable of {type(each).__name__}"))
        yield from read(each, request)


def _is_table(value: Any) -> bool:
    """Return whether a dictionary holds columns, and not the values of one row."""
    if not isinstance(value, Mapping):
        return False
    some = list(islice(value.values(), 8))
    return bool(some) and all(_speaks_arrow(each) or isinstance(each, np.ndarray) for each in some)


def _dictionaries(source: Iterator[Any], request: Request) -> Batches:
    known: dict[str, None] = {}
    first, columns = 0, request.columns
    while found := list(islice(source, FEW_ROWS if request.small else request.rows)):
        if not all(isinstance(row, Mapping) for row in found):
            raise InputError("some rows are dictionaries and some are not; give all of them as dictionaries.")
        for row in found:
            known.update(dict.fromkeys(map(str, row)))
        check_columns(request.names, list(known), "the rows", declared=False)
        arrays = [array_of_objects(_values(found, each.name), each, TABLE, first) for each in columns]
        yield TABLE, pa.RecordBatch.from_arrays(arrays, request.names)
        first += len(found)


def _values(rows: Sequence[Mapping[Any, Any]], name: str) -> list[Any]:
    return [row.get(name) for row in rows]
