"""Whatever holds rows, as a stream of Arrow batches with the wanted columns."""

import glob
import os
from pathlib import Path
from typing import Any

import pyarrow as pa

from voxpop.corpus.reading.columns import Batches, check_columns
from voxpop.corpus.reading.failures import quieten
from voxpop.corpus.reading.files import SUFFIXES, file_batches, is_readable
from voxpop.errors import ColumnError, InputError, SourceError

ROWS_AT_ONCE = 1 << 15
ITEMS_AT_ONCE = 1 << 20


def open_source(
    source: Any, columns: list[str], rows: int, *, dictionary: str | None = None, small: bool = False
) -> Batches:
    """Yield the wanted columns of a source, some rows at a time.

    Args:
        source: a path, folder or glob, a list of them, or a polars, pandas or pyarrow table.
        columns: names of the wanted columns.
        rows: about how many rows a batch may have.
        dictionary: a column to keep dictionary-encoded where the file has it so.
        small: read files in batches of few bytes as well as few rows, holding little of them.

    Raises:
        SourceError: where there is nothing to read, or it cannot be read.
        ColumnError: where a column is missing.
    """
    if isinstance(source, str | os.PathLike):
        return _paths_batches([source], columns, rows, dictionary, small=small)
    if isinstance(source, list | tuple) and source and all(isinstance(each, str | os.PathLike) for each in source):
        return _paths_batches(list(source), columns, rows, dictionary, small=small)
    if small and type(source).__module__.startswith("polars") and type(source).__name__ == "LazyFrame":
        raise InputError(
            "a polars LazyFrame is collected whole, which no memory limit can bound: write it with sink_parquet and "
            "give the path."
        )
    return _table_batches(source, columns, rows)


def is_spark(source: Any) -> bool:
    """Tell whether a source is a DataFrame of Spark, without importing pyspark."""
    kind = type(source)
    return kind.__module__.partition(".")[0] == "pyspark" and kind.__name__ == "DataFrame"


def _paths_batches(paths: list[Any], columns: list[str], rows: int, dictionary: str | None, *, small: bool) -> Batches:
    files = _files(paths)
    before = [_state(path) for path in files]
    for path, state in zip(files, before, strict=True):
        for batch in file_batches(path, columns, rows, dictionary, small=small):
            yield path.name, batch
        if _state(path) != state:
            raise SourceError(
                f"{path.name} was changed while it was read, so what was read may be half of one table and half of "
                "another. Wait until whoever writes it is done, or read a copy."
            )


def _state(path: Path) -> tuple[int, ...] | None:
    """Return what changes with a file's contents, or None where it is gone."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _files(paths: list[Any]) -> list[Path]:
    """Return the files that paths, folders and globs stand for, in order."""
    files: list[Path] = []
    for each in paths:
        text = os.fspath(each)
        path = Path(text)
        if path.is_dir():
            found = sorted(file for file in path.rglob("*") if file.is_file() and is_readable(file))
            if not found:
                raise SourceError(f"the folder {text} holds no file that ends in {', '.join(SUFFIXES)}.")
        elif path.exists():
            found = [path]
        else:
            found = sorted(Path(match) for match in glob.glob(text, recursive=True) if Path(match).is_file())
            if not found:
                raise SourceError(f"there is no file, folder or pattern {text}; check the path.")
        files += found
    return files


def _table_batches(source: Any, columns: list[str], rows: int) -> Batches:
    """Yield the batches of a table in memory, or of a reader."""
    kind = f"{type(source).__module__.partition('.')[0]}.{type(source).__name__}"
    if kind == "polars.LazyFrame":
        check_columns(columns, source.collect_schema().names(), "the table")
        yield from _table_batches(source.select(list(dict.fromkeys(columns))).collect(), columns, rows)
    elif kind == "polars.DataFrame":
        check_columns(columns, source.columns, "the table")
        yield from _arrow_batches(source.select(list(dict.fromkeys(columns))).to_arrow(), rows)
    elif kind == "pandas.DataFrame":
        names = [str(name) for name in source.columns]
        check_columns(columns, names, "the table")
        yield from _arrow_batches(_from_pandas(source, columns), rows)
    elif isinstance(source, pa.RecordBatch):
        yield from _table_batches(pa.Table.from_batches([source]), columns, rows)
    elif isinstance(source, pa.Table):
        check_columns(columns, source.column_names, "the table")
        yield from _arrow_batches(source.select(list(dict.fromkeys(columns))), rows)
    elif isinstance(source, pa.RecordBatchReader):
        check_columns(columns, source.schema.names, "the table")
        for batch in source:
            yield from _arrow_batches(pa.Table.from_batches([batch]).select(list(dict.fromkeys(columns))), rows)
    else:
        raise InputError(
            "the source must be a path, folder, glob or list of paths, or a polars, pandas or pyarrow table, "
            f"got {type(source).__name__}."
        )


def _arrow_batches(table: pa.Table, rows: int) -> Batches:
    for batch in table.to_batches(max_chunksize=rows):
        yield "the table", batch


def _from_pandas(frame: Any, columns: list[str]) -> pa.Table:
    try:
        return pa.Table.from_pandas(frame[list(dict.fromkeys(columns))], preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        quieten(error)
        raise ColumnError(
            f"a column among {', '.join(columns)} mixes types that Arrow cannot hold together; make each of one type."
        ) from None
