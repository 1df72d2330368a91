"""Whatever holds rows, as a stream of Arrow batches with the wanted columns."""

import glob
import os
from pathlib import Path
from typing import Any

from voxpop.corpus.reading.arrow_sources import table_batches
from voxpop.corpus.reading.columns import Batches
from voxpop.corpus.reading.files import SUFFIXES, file_batches, is_readable
from voxpop.corpus.reading.remote import check_is_path, is_remote, scan
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
) -> Batches:
    """Yield the wanted columns of a source, some rows at a time.

    Args:
        source: a path, folder or glob, a list of them, or a table in any of the forms of `arrow_sources`.
        columns: names of the wanted columns.
        rows: about how many rows a batch may have.
        dictionary: a column to keep dictionary-encoded where the file has it so.
        small: read files in batches of few bytes as well as few rows, holding little of them.
        connection: the database that `source` is a query of.

    Raises:
        SourceError: where there is nothing to read, or it cannot be read.
        ColumnError: where a column is missing.
    """
    if connection is not None:
        from voxpop.corpus.reading.databases import query_batches

        return query_batches(str(source), connection, columns, rows)
    if is_remote(source):
        source = scan(source)
    if isinstance(source, str | os.PathLike):
        return _paths_batches([source], columns, rows, dictionary, small=small)
    if isinstance(source, list | tuple) and source and all(isinstance(each, str | os.PathLike) for each in source):
        return _paths_batches(list(source), columns, rows, dictionary, small=small)
    if small and type(source).__module__.startswith("polars") and type(source).__name__ == "LazyFrame":
        raise InputError(
            "a polars LazyFrame is collected whole, which no memory limit can bound: write it with sink_parquet and "
            "give the path."
        )
    return table_batches(source, columns, rows)


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
