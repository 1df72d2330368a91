"""Whatever holds rows, as a stream of Arrow batches with the wanted columns."""

import glob
import os
from pathlib import Path
from typing import Any

from voxpop.corpus.reading.arrow_sources import table_batches
from voxpop.corpus.reading.columns import Batches
from voxpop.corpus.reading.csv_text import FOUND, Dialect
from voxpop.corpus.reading.files import SUFFIXES, file_batches, is_readable
from voxpop.corpus.reading.portions import portions
from voxpop.corpus.reading.remote import check_is_path, is_remote, remote_batches
from voxpop.errors import InputError, SourceError

ROWS_AT_ONCE = 1 << 15
ITEMS_AT_ONCE = 1 << 20


def open_source(
    source: Any,
    columns: list[str],
    rows: int,
    *,
    dictionary: str | None = None,
    small: bool = False,
    connection: Any = None,
    dialect: Dialect = FOUND,
) -> Batches:
    """Yield the wanted columns of a source, some rows at a time.

    Args:
        source: a path, folder or glob, a list of them, or a table in any of the forms of `arrow_sources`.
        columns: names of the wanted columns.
        rows: about how many rows a batch may have.
        dictionary: a column to keep dictionary-encoded where the file has it so.
        small: yield batches of few bytes as well as few rows, and hold little of the source.
        connection: the database that `source` is a query of.
        dialect: how CSV is written, as far as the caller says.

    Raises:
        InputError: where it says how CSV is written, and the source is no file.
        SourceError: where there is nothing to read, or it cannot be read.
        ColumnError: where a column is missing.
    """
    if connection is not None:
        check_undescribed(dialect)
        from voxpop.corpus.reading.databases import query_batches

        found = query_batches(str(source), connection, columns, rows, small=small)
        return portions(found, rows) if small else found
    if isinstance(source, str | os.PathLike):
        source = [source]
    if isinstance(source, list | tuple) and source and all(isinstance(each, str | os.PathLike) for each in source):
        return _paths_batches(list(source), columns, rows, dictionary, small=small, dialect=dialect)
    check_undescribed(dialect)
    if small and type(source).__module__.startswith("polars") and type(source).__name__ == "LazyFrame":
        raise InputError(
            "a polars LazyFrame is collected whole, which no memory limit can bound: write it with sink_parquet and "
            "give the path."
        )
    batches = table_batches(source, columns, rows, small=small)
    return portions(batches, rows) if small else batches


def check_undescribed(dialect: Dialect) -> None:
    """Refuse to be told how CSV is written where the source is a table.

    Raises:
        InputError: where a caller says anything.
    """
    if dialect.given:
        raise InputError("delimiter= and encoding= say how files of CSV are written; this is a table: leave them out.")


def is_spark(source: Any) -> bool:
    """Tell whether a source is a DataFrame of Spark, without importing pyspark."""
    kind = type(source)
    return kind.__module__.partition(".")[0] == "pyspark" and kind.__name__ == "DataFrame"


def _paths_batches(
    paths: list[Any], columns: list[str], rows: int, dictionary: str | None, *, small: bool, dialect: Dialect
) -> Batches:
    """Yield the rows of files and of what is behind addresses, in their order, having seen first that files exist."""
    places = [[] if is_remote(path) else [(file, _state(file)) for file in _files([path])] for path in paths]
    for path, files in zip(paths, places, strict=True):
        if is_remote(path):
            batches = remote_batches(path, columns, rows, small=small, dialect=dialect)
            yield from portions(batches, rows) if small else batches
        for file, state in files:
            for batch in file_batches(file, columns, rows, dictionary, small=small, dialect=dialect):
                yield file.name, batch
            if _state(file) != state:
                raise SourceError(
                    f"{file.name} was changed while it was read, so what was read may be half of one table and half of "
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
        check_is_path(text)
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
