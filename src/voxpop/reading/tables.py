"""Tables in memory, from polars, pandas, pyarrow, other objects with Arrow's interfaces, and Python objects."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.errors import ColumnError, InputError
from voxpop.kernels.threads import require_polars
from voxpop.reading.columns import FEW_ROWS, Batches, check_columns, guarded, quieten, withheld
from voxpop.reading.hidden import check_no_log
from voxpop.reading.keys import is_string, kind_of_values, value_type
from voxpop.reading.shape import mixed
from voxpop.reading.types import Column, array_of_objects, batch_of_rows, check_declared
from voxpop.reading.wanted import Request

THE_TABLE: Final = "the table"
MEANT: Final = (
    "the source must be files, a table, rows with column names, a cursor or vp.SQL(query, connection); got {}. See "
    "docs/guides/reading.md for all sources."
)


def kind_of_source(source: Any) -> str:
    """Return the package and the class of an object."""
    return f"{type(source).__module__.partition('.')[0]}.{type(source).__name__}"


def is_dataset(source: Any) -> bool:
    """Return whether an object is a Hugging Face data set, without importing it."""
    return type(source).__module__.partition(".")[0] == "datasets" and hasattr(source, "with_format")


def arrow_batches(source: pa.Table | pa.RecordBatch, request: Request) -> Batches:
    """Yield the batches of an Arrow table, which declares the types in its schema."""
    yield THE_TABLE, check_schema(request, source.schema, THE_TABLE)
    table = pa.Table.from_batches([source]) if isinstance(source, pa.RecordBatch) else source
    for batch in selected(table, request.names).to_batches(max_chunksize=request.rows):
        yield THE_TABLE, batch


def check_schema(request: Request, schema: pa.Schema, where: str) -> pa.RecordBatch:
    """Check that a schema has the requested columns with types that fit the declared types.

    A requested name such as `user.id` may also be a field of a column.

    Returns:
        A batch without rows, so that a table without rows also declares its types.
    """
    nested = [
        name for name in request.names if name not in schema.names and not pa.types.is_null(_type_of(schema, name))
    ]
    check_columns(request.names, [*schema.names, *nested], where)
    kinds = [_type_of(schema, name) for name in request.names]
    check_declared(request.selection, kinds)
    return pa.RecordBatch.from_arrays([pa.nulls(0, kind) for kind in kinds], request.names)


def _type_of(schema: pa.Schema, name: str) -> pa.DataType:
    """Return a column's or field's type, or the null type if it is missing. `empty_table` would import pandas."""
    kind = pa.struct(list(schema))
    for part in [name] if name in schema.names else name.split("."):
        if not pa.types.is_struct(kind) or kind.get_field_index(part) < 0:
            return pa.null()
        kind = kind.field(part).type
    return kind


def selected(table: pa.Table, names: list[str]) -> pa.Table:
    """Return existing columns of a table, and fields of its structs."""
    for name in names:
        if name not in table.column_names:
            head, *rest = name.split(".")
            table = table.append_column(name, pc.struct_field(table[head], rest))
    return table.select(names)


def top_of(name: str, existing: list[str]) -> str:
    """Return the column that contains a requested field, such as `user` for `user.id`, or the requested column."""
    head = name.partition(".")[0]
    return head if name not in existing and head in existing else name


def stream_batches(source: Any, request: Request) -> Batches:
    """Yield the batches of an Arrow stream as they arrive."""
    with withheld():
        reader = source if isinstance(source, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(source)
    yield THE_TABLE, check_schema(request, reader.schema, THE_TABLE)
    for batch in guarded(iter(reader)):
        for part in selected(pa.Table.from_batches([batch]), request.names).to_batches(max_chunksize=request.rows):
            yield THE_TABLE, part


def polars_batches(source: Any, request: Request) -> Batches:
    """Yield the rows of a polars DataFrame or LazyFrame, which declares the types by its dtypes."""
    require_polars()
    if type(source).__name__ == "LazyFrame":
        if request.small:
            raise InputError(
                "memory= cannot limit a polars LazyFrame, because polars collects it at once. Write it with "
                "sink_parquet, and give the path."
            )
        with withheld():
            names = source.collect_schema().names()
            tops = _tops(request, names)
            source = source.select(tops).collect()
    tops = _tops(request, _column_names(source))
    if not any(str(source.schema[name]) == "Object" for name in tops):
        return arrow_batches(_arrow_of_polars(source.select(tops)), request)
    check_columns(request.names, source.columns, THE_TABLE)
    return columns_batches({name: source[name] for name in request.names}, request)


def _arrow_of_polars(source: Any) -> pa.Table:
    """Return the Arrow table of a polars table, or raise an error that names a column without an Arrow type."""
    try:
        return source.to_arrow()
    except (pa.ArrowException, TypeError, ValueError):
        pass
    for column in source:
        array_of_column(column, Column(column.name))
    raise ColumnError("polars cannot convert the columns to Arrow. Cast them to types that Arrow has.")


def _tops(request: Request, names: list[str]) -> list[str]:
    """Return the columns that contain the requested columns, which must exist."""
    tops = list(dict.fromkeys(top_of(name, names) for name in request.names))
    check_columns(tops, names, THE_TABLE)
    return tops


def _column_names(source: Any) -> list[str]:
    if not hasattr(source, "columns"):
        raise InputError(
            "a Series is one column, and a table also has a user column. Give series.reset_index() if its index "
            "contains the users, and a DataFrame of both columns otherwise."
        )
    return [str(name) for name in source.columns]


def pandas_batches(source: Any, request: Request) -> Batches:
    """Yield the rows of a pandas DataFrame. Its dtypes declare the types, except for object columns."""
    names = _column_names(source)
    indexed = {str(name) for name in source.index.names} & {*request.names} - {*names}
    check_columns(
        request.names, names, THE_TABLE, hint="It is in the index. Give table.reset_index()." if indexed else ""
    )
    by_name = dict(zip(names, source.columns, strict=True))
    return columns_batches({name: source[by_name[name]] for name in request.names}, request)


def columns_of_folders(source: Any) -> pa.Schema:
    """Return the columns of a pyarrow dataset that are derived from folder names."""
    return getattr(getattr(source, "partitioning", None), "schema", None) or pa.schema([])


def dataset_batches_of_pyarrow(source: Any, request: Request) -> Batches:
    """Yield the batches of a pyarrow dataset, which declares the types in its schema.

    Raises:
        InputError: If pyarrow has inferred a requested type. pyarrow infers types from the rows of CSV and JSON files,
            and from the names of partition folders.
    """
    if kind_of_source(source).endswith("UnionDataset"):
        return chain.from_iterable(dataset_batches_of_pyarrow(each, request) for each in source.children)
    if getattr(getattr(source, "filesystem", None), "type_name", "") == "local":
        check_no_log(dict.fromkeys(Path(file).parent for file in source.files))
    if type(getattr(source, "format", None)).__name__ in ("CsvFileFormat", "JsonFileFormat"):
        raise InputError("pyarrow infers the types of CSV and JSON files from their rows. Give the paths instead.")
    parts = columns_of_folders(source)
    wanted = [name for name in request.names if name in parts.names]
    typed = [name for name in wanted if not is_string(value_type(parts.field(name).type))]
    if typed:
        raise InputError(
            f'the partition column "{typed[0]}" of the dataset is not a string, because pyarrow infers such types from '
            "names of folders. Give the path of the folder instead, so that partition columns are read as strings."
        )
    check_schema(request, source.schema, THE_TABLE)
    with withheld():
        files = [fragment.physical_schema for fragment in source.get_fragments()]
    for schema in files:  # pyarrow uses the types of the first file and casts the other files.
        for name in request.names:
            one, other = (kind_of_values(_type_of(each, name)) for each in (source.schema, schema))
            if one != other and other is not None:
                raise mixed(name, one or other, other)
    tops = _tops(request, source.schema.names)
    rows = FEW_ROWS if request.small else request.rows
    return stream_batches(source.scanner(columns=tops, batch_size=rows).to_reader(), request)


def structured_batches(source: Any, request: Request) -> Batches:
    """Yield the rows of a structured numpy array. Its dtype declares the types."""
    if source.dtype.names is None:
        raise InputError(
            "a NumPy array has no column names. Give a structured array, or a dictionary of columns such as "
            '{"user": array[:, 0], "item": array[:, 1]}.'
        )
    check_columns(request.names, list(source.dtype.names), THE_TABLE)
    return columns_batches({name: source[name] for name in request.names}, request)


def dataset_batches(source: Any, request: Request) -> Batches:
    """Yield batches of a Hugging Face data set.

    The Arrow table of the data set would ignore shuffles and selections.
    """
    if isinstance(source, Mapping):
        raise InputError("this is a dictionary of data sets. Give one of them, such as dataset['train'].")
    check_columns(request.names, list(source.column_names or request.names), THE_TABLE)
    for each in source.with_format("arrow").iter(batch_size=FEW_ROWS if request.small else request.rows):
        yield from arrow_batches(each, request)


def columns_batches(source: Mapping[Any, Any], request: Request) -> Batches:
    """Yield the rows of a dictionary of columns."""
    check_columns(request.names, [str(name) for name in source], "the dictionary", declared=False)
    arrays = [array_of_column(source[column.name], column) for column in request.selection]
    if len({len(each) for each in arrays}) > 1:
        raise InputError(
            "the columns of the dictionary have different lengths. Give each column one value for each row."
        )
    yield from arrow_batches(pa.table(dict(zip(request.names, arrays, strict=True))), request)


def array_of_column(values: Any, column: Column) -> Any:
    """Return a column in the type that its dtype declares, or convert it by the rule for Python objects."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InputError(f'the column "{column.name}" of a dictionary must be a list, got {type(values).__name__}.')
    package = type(values).__module__.partition(".")[0]
    dtype = getattr(values, "dtype", None)
    categories = getattr(getattr(dtype, "categories", None), "dtype", None)
    # Object columns and categories of objects have no declared type.
    if dtype is None and not isinstance(values, pa.Array | pa.ChunkedArray) and not _speaks_arrow(values):
        return array_of_objects(values, column, THE_TABLE, 0)
    if {"object", "Object"} & {str(dtype), str(categories)}:
        return array_of_objects(list(values), column, THE_TABLE, 0)
    try:
        if package in ("pandas", "numpy"):
            made = pa.array(values, from_pandas=True)
        elif hasattr(values, "__arrow_c_stream__"):
            made = pa.chunked_array(values)
        else:
            made = pa.array(values)
    except (pa.ArrowException, TypeError, ValueError) as error:
        surrogate = isinstance(error, UnicodeEncodeError) or getattr(dtype, "kind", "") == "U"
        quieten(error)
        if surrogate:
            raise ColumnError(
                f'the column "{column.name}" contains half of a surrogate pair, which is not Unicode text. Correct the '
                "rows."
            ) from None
        raise ColumnError(
            f'the column "{column.name}" has the dtype {dtype}, which Arrow does not have. Cast it to another type.'
        ) from None
    check_declared([column], [made.type])
    return made


def _speaks_arrow(value: Any) -> bool:
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")


def iterable_batches(source: Iterable[Any], request: Request, read: Callable[[Any, Request], Batches]) -> Batches:
    """Yield the rows of an iterable of dictionaries or of tables. `read` reads the tables one by one."""
    rows = iter(source)
    first = next(rows, None)
    if first is None:
        return
    whole = chain([first], rows)
    if not _is_table(first) and _named(first) is not None:
        yield from _rows(whole, request)
        return
    for each in whole:
        if isinstance(each, tuple | list):
            raise InputError(
                "rows that are tuples or lists have no column names. Give dictionaries, named tuples or dataclasses, "
                'or a table such as polars.DataFrame(rows, schema=["user", "item"], orient="row").'
            )
        if isinstance(each, str | bytes) or not (_is_table(each) or _speaks_arrow(each) or hasattr(each, "columns")):
            raise InputError(MEANT.format(f"an iterable of {type(each).__name__}"))
        yield from read(each, request)


def _named(row: Any) -> Mapping[Any, Any] | None:
    """Return the values of a row by name, or None for a row without names."""
    if isinstance(row, Mapping):
        return row
    if hasattr(row, "_asdict"):  # for named tuples, and for SQLAlchemy and pandas rows
        found: Mapping[Any, Any] = row._asdict()
        return found
    if is_dataclass(row):
        return {each.name: getattr(row, each.name) for each in fields(row)}
    if isinstance(row, np.void):
        return dict(zip(row.dtype.names, row.tolist(), strict=True)) if row.dtype.names else None
    if type(row).__name__ in ("Row", "Record") and hasattr(row, "keys"):  # sqlite3, asyncpg
        return dict(zip(row.keys(), row, strict=True))
    return None


def _is_table(value: Any) -> bool:
    """Return whether a dictionary contains columns rather than the values of one row."""
    if not isinstance(value, Mapping):
        return False
    some = list(islice(value.values(), 8))
    return bool(some) and all(_speaks_arrow(each) or isinstance(each, np.ndarray) for each in some)


def _rows(source: Iterator[Any], request: Request) -> Batches:
    first = 0
    while found := list(islice(source, FEW_ROWS if request.small else request.rows)):
        rows = [row for row in map(_named, found) if row is not None]
        if len(rows) < len(found):
            raise InputError("some rows have column names and some do not; give all rows as dictionaries.")
        yield THE_TABLE, batch_of_rows(rows, request.selection, THE_TABLE, first)
        first += len(found)
