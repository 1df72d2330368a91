"""Tables as people hold them: whatever speaks Arrow, and Python's own lists and dictionaries.

| source | how it is read |
|---|---|
| a polars, pandas or pyarrow table | directly |
| `__arrow_c_stream__` (DuckDB relations, Ibis, polars, ADBC readers, ...) | batch by batch |
| `__arrow_c_array__` (one batch) | at once |
| Hugging Face Datasets | batch by batch, also shuffled or selected ones |
| a cursor of a database | by its own Arrow batches, or some rows at a time |
| an iterator of any of these, such as pandas chunks | one after the other |
| a list or iterator of dictionaries, a dictionary of columns | some rows at a time |
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from voxpop.corpus.reading.columns import Batches, check_columns
from voxpop.corpus.reading.failures import quieten, without_quotes
from voxpop.corpus.reading.portions import FEW_ROWS
from voxpop.errors import ColumnError, InputError, SourceError
from voxpop.objects import array_of_objects

TABLE = "the table"
FEWEST_OF_DUCKDB = 1 << 11
"""Rows: it computes so many at a time itself."""
MEANT = (
    "the source must be a path, folder, glob or list of paths; a polars, pandas or pyarrow table; anything that speaks "
    "Arrow (DuckDB, Ibis, ADBC, Hugging Face Datasets); an iterator of such; a cursor; a list of dictionaries or a "
    "dictionary of columns; or a query with connection=; got {}."
)


def table_batches(source: Any, columns: list[str], rows: int, *, small: bool = False) -> Batches:
    """Yield the batches of a table in memory, or of a reader; where `small`, asking readers for few rows at a time."""
    kind = f"{type(source).__module__.partition('.')[0]}.{type(source).__name__}"
    if kind == "polars.LazyFrame":
        yield from table_batches(_collected(source, columns), columns, rows)
    elif kind == "polars.DataFrame":
        check_columns(columns, source.columns, "the table")
        yield from _arrow_batches(source.select(list(dict.fromkeys(columns))).to_arrow(), rows)
    elif kind == "pandas.DataFrame":
        names = [str(name) for name in source.columns]
        check_columns(columns, names, "the table")
        yield from _arrow_batches(_from_pandas(source, columns), rows)
    elif isinstance(source, pa.RecordBatch):
        yield from table_batches(pa.Table.from_batches([source]), columns, rows)
    elif isinstance(source, pa.Table):
        check_columns(columns, source.column_names, "the table")
        yield from _arrow_batches(source.select(list(dict.fromkeys(columns))), rows)
    elif isinstance(source, pa.RecordBatchReader):
        check_columns(columns, source.schema.names, "the table")
        for batch in source:
            yield from _arrow_batches(pa.Table.from_batches([batch]).select(list(dict.fromkeys(columns))), rows)
    else:
        yield from _any_batches(source, columns, rows, small=small)


def _collected(lazy: Any, columns: list[str]) -> Any:
    """Return the wanted columns of a lazy table of polars."""
    with without_quotes("the table", "Check the address, and collect it by itself first."):
        names = lazy.collect_schema().names()
        check_columns(columns, names, "the table")
        return lazy.select(list(dict.fromkeys(columns))).collect()


def _arrow_batches(table: pa.Table, rows: int) -> Batches:
    for batch in table.to_batches(max_chunksize=rows):
        yield "the table", batch


def _from_pandas(frame: Any, columns: list[str]) -> pa.Table:
    try:
        plain = {name: frame[name] for name in dict.fromkeys(columns)}
        return pa.table(
            {
                name: array_of_objects(each.array, name) if each.dtype == object else pa.array(each, from_pandas=True)
                for name, each in plain.items()
            }
        )
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        quieten(error)
        raise ColumnError(
            f"a column among {', '.join(columns)} mixes types that Arrow cannot hold together; make each of one type."
        ) from None


def _any_batches(source: Any, columns: list[str], rows: int, *, small: bool) -> Batches:
    """Yield the wanted columns of a source that is neither a path nor one of the tables that are read directly.

    Raises:
        InputError: where it holds no rows that we could find.
        ColumnError: where a column is missing.
        SourceError: where reading fails; the reader's message is not passed on, for it may quote rows.
    """
    asked = FEW_ROWS if small else rows
    if _is_dataset(source):
        return _dataset(source, columns, asked)
    if is_duckdb(source):  # its own stream would hold a million rows at a time
        return cursor_batches(source, columns, rows, small=small)
    if hasattr(source, "__arrow_c_stream__"):
        return _stream(source, columns, rows)
    if hasattr(source, "__arrow_c_array__"):
        return table_batches(pa.record_batch(source), columns, rows)
    if hasattr(source, "fetchmany") and hasattr(source, "description"):
        return cursor_batches(source, columns, rows, small=small)
    if isinstance(source, Mapping):
        return _columns(source, columns, rows)
    if isinstance(source, Iterable) and not isinstance(source, str | bytes):
        return _each(iter(source), columns, asked)
    raise InputError(MEANT.format(type(source).__name__))


def cursor_batches(cursor: Any, columns: list[str], rows: int, *, small: bool) -> Batches:
    """Yield what a cursor has found: by Arrow where the driver speaks it, else some rows at a time."""
    if cursor.description is None:
        raise InputError("the cursor has found nothing yet: execute a query first, or give the query and connection=.")
    reader = _arrow_reader(cursor, FEWEST_OF_DUCKDB if small else rows, small=small)
    if reader is not None:
        yield from _stream(reader, columns, rows)
        return
    names = [each[0] for each in cursor.description]
    check_columns(columns, names, "the result of the query")
    places = [names.index(name) for name in columns]
    while found := _next_rows(cursor, FEW_ROWS if small else rows):
        arrays = [array_of_objects([row[place] for row in found], names[place]) for place in places]
        yield TABLE, pa.RecordBatch.from_arrays(arrays, columns)


def _arrow_reader(cursor: Any, rows: int, *, small: bool) -> Any:
    """Return a cursor's own batches, or None where it has only rows."""
    duck = is_duckdb(cursor)
    # A connection of DuckDB copies all rows before it gives batches; its relations do not.
    if duck and small and hasattr(cursor, "execute"):
        return None
    with _withheld(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("to_arrow_reader", "fetch_record_batch", "fetch_arrow_reader"):
            if hasattr(cursor, name):
                return getattr(cursor, name)(rows) if duck else getattr(cursor, name)()
    return None


def is_duckdb(source: Any) -> bool:
    """Say whether an object is one of DuckDB's, without importing it."""
    return type(source).__module__.lstrip("_").partition(".")[0] == "duckdb"


def _next_rows(cursor: Any, rows: int) -> list[Any]:
    with _withheld():
        return list(cursor.fetchmany(rows))


def _stream(source: Any, columns: list[str], rows: int) -> Batches:
    with _withheld():
        reader = pa.RecordBatchReader.from_stream(source)
    check_columns(columns, reader.schema.names, TABLE)
    batches = iter(reader)
    while True:
        with _withheld():
            batch = next(batches, None)
        if batch is None:
            return
        yield from table_batches(batch, columns, rows)


@contextmanager
def _withheld() -> Iterator[None]:
    """Turn what a reader raises into an error of ours that quotes nothing."""
    try:
        yield
    except Exception as error:
        kind = type(error).__name__
        quieten(error)
        raise SourceError(
            f"{TABLE} cannot be read: its reader failed with {kind}, and what that said may quote rows. Try to read it "
            "by itself first."
        ) from None


def _is_dataset(source: Any) -> bool:
    return type(source).__module__.partition(".")[0] == "datasets" and hasattr(source, "with_format")


def _dataset(source: Any, columns: list[str], rows: int) -> Batches:
    """Yield batches of a Hugging Face data set; its own Arrow table would leave out shuffles and selections."""
    if isinstance(source, Mapping):
        raise InputError("this is a dictionary of data sets: give one of them, such as dataset['train'].")
    check_columns(columns, list(source.column_names or columns), TABLE)
    for each in source.with_format("arrow").iter(batch_size=rows):
        yield from table_batches(each, columns, rows)


def _columns(source: Mapping[Any, Any], columns: list[str], rows: int) -> Batches:
    check_columns(columns, [str(name) for name in source], TABLE)
    arrays = [_array(source[name], name) for name in columns]
    if len({len(each) for each in arrays}) > 1:
        raise InputError(
            "the columns of the dictionary are not equally long; give each as many values as there are rows."
        )
    return table_batches(pa.table(dict(zip(columns, arrays, strict=True))), columns, rows)


def _array(values: Any, name: str) -> Any:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if hasattr(values, "__arrow_c_stream__"):
        return pa.chunked_array(values)
    if hasattr(values, "__arrow_c_array__"):
        return pa.array(values)
    return array_of_objects(values.tolist() if hasattr(values, "tolist") else values, name)


def _each(source: Iterator[Any], columns: list[str], rows: int) -> Batches:
    """Yield the batches of tables one after the other, or rows that are dictionaries."""
    first = next(source, None)
    if first is None:
        return
    if isinstance(first, Mapping) and not any(_is_column(value) for value in islice(first.values(), 8)):
        yield from _dictionaries(chain([first], source), columns, rows)
        return
    for each in chain([first], source):
        if isinstance(each, str | bytes) or not (hasattr(each, "__arrow_c_stream__") or hasattr(each, "columns")):
            raise InputError(MEANT.format(f"an iterable of {type(each).__name__}"))
        yield from table_batches(each, columns, rows)


def _is_column(value: Any) -> bool:
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__") or hasattr(value, "__array__")


def _dictionaries(source: Iterator[Any], columns: Sequence[str], rows: int) -> Batches:
    known: dict[str, None] = {}
    while found := list(islice(source, rows)):
        if not all(isinstance(row, Mapping) for row in found):
            raise InputError("some rows are dictionaries and some are not; give all of them as dictionaries.")
        for row in found:
            known.update(dict.fromkeys(row))
        check_columns(list(columns), list(known), "the rows")
        arrays = [array_of_objects([row.get(name) for row in found], name) for name in columns]
        yield TABLE, pa.RecordBatch.from_arrays(arrays, list(columns))
