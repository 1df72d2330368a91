"""A table whose query runs on this machine alone, handed to the local engine.

Where the whole of Spark is on this machine, a shuffle, workers and their answers can only cost. What a query does
nothing but read, this process reads itself; of any other Java writes the rows as Parquet, and this process reads those.
Whether it is done so follows from the session, the query and the types of columns, never from rows.
"""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from voxpop.corpus.corpus import Corpus
from voxpop.corpus.limited.memory import MemoryLimit, usual_limit
from voxpop.corpus.reading.content_order import in_content_order
from voxpop.corpus.reading.files import bytes_of_columns, file_batches
from voxpop.corpus.reading.read import read_here
from voxpop.corpus.reading.sources import ROWS_AT_ONCE, open_source
from voxpop.corpus.reading.wanted import Wanted
from voxpop.spark.scanned import scanned_files
from voxpop.spark.session import cores_of
from voxpop.spark.written_rows import written_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BYTES_OF_ROW, OF_ITS_BYTES = 64, 16
"""What a row takes in memory is far less than this, and so many times what it has in a file without dictionaries: a
token of one letter takes four bytes, at most three times while it is read and released."""


def is_here(session: "SparkSession") -> bool:
    """Say whether all of Spark is in one Java on this machine that this process started; of Connect nobody knows."""
    context: Any = getattr(session, "_sc", None)
    return context is not None and cores_of(str(context.master)) is not None


def handed_limit(memory: Any, work_folder: Any) -> MemoryLimit:
    """Return the limit within which rows are read: the caller's, or half of the machine's memory, which is public."""
    return MemoryLimit.of(usual_limit() if memory is None else memory, work_folder)


def corpus_here(
    frame: "DataFrame", rows: "DataFrame", wanted: Wanted, limit: MemoryLimit, *, named: bool, progress: bool | None
) -> Corpus:
    """Read what a query gives, in the order of contents.

    Rows that fit by far are read without a limit unless somebody named one. That may follow the table: a release within
    a limit is the one without, and takes longer.

    Args:
        frame: the table as the caller named it.
        rows: its wanted columns, under names that every file can hold.
        wanted: what they are called, and what becomes of them.
        limit: of memory; its folder holds the rows meanwhile, where Java writes them.
        named: whether the caller named the limit.
        progress: as in `voxpop.read`.

    Raises:
        SourceError: where the query fails, or a file is damaged.
    """
    ahead = Thread(target=_import_ahead, daemon=True)
    ahead.start()  # while Java works
    files = scanned_files(frame, wanted.names)
    where: dict[str, Any] = {"memory": limit.total, "work_folder": limit.folder}
    if files is None:
        with written_rows(rows, limit.folder) as written:
            ahead.join()
            free = not named and most_held(written) <= limit.total
            corpus = read_here(_batches(written, wanted), wanted, progress=progress, **({} if free else where))
    else:
        ahead.join()  # two threads that import the same may each find half of it
        corpus = _of_files(files, wanted, where, named=named, progress=progress)
    return in_content_order(corpus, documents=wanted.order is None)


def _of_files(
    files: list[Path], wanted: Wanted, where: dict[str, Any], *, named: bool, progress: bool | None
) -> Corpus:
    """Read files: without a limit while what came fits by far, and where no more does, anew within it."""
    if not named and least_held(files, wanted.names) <= where["memory"]:
        try:
            return read_here(_while_it_fits(files, wanted, where["memory"]), wanted, progress=progress)
        except _FitsNoMoreError:
            pass
    return read_here(files, wanted, progress=progress, **where)


def least_held(files: list[Path], names: list[str]) -> int:
    """Return how much the rows of files count for, but for what dictionaries in them spare."""
    held, columns = 0, set(names)
    for path in files:
        metadata = parquet.read_metadata(path)
        held += BYTES_OF_ROW * int(metadata.num_rows)
        groups = map(metadata.row_group, range(metadata.num_row_groups))
        held += OF_ITS_BYTES * sum(bytes_of_columns(group, columns) for group in groups)
    return held


class _FitsNoMoreError(Exception):
    """So many rows came that they may not fit."""


def _while_it_fits(files: list[Path], wanted: Wanted, total: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files as long as all that came fits into so many bytes by far."""
    held = 0
    for _, batch in open_source(files, wanted.names, ROWS_AT_ONCE, dictionary=wanted.repeated):
        held += BYTES_OF_ROW * batch.num_rows + OF_ITS_BYTES * batch.nbytes
        if held > total:
            raise _FitsNoMoreError
        yield batch


def most_held(files: list[Path]) -> int:
    """Return more bytes than reading and releasing the rows of files takes in memory."""
    rows = sum(int(parquet.read_metadata(path).num_rows) for path in files)
    return BYTES_OF_ROW * rows + OF_ITS_BYTES * sum(path.stat().st_size for path in files)


def _import_ahead() -> None:
    """Import what takes seconds and is needed when rows are there."""
    for name in ("voxpop.corpus.length_walk", "voxpop.corpus.pools", "scipy.special", "polars"):
        import_module(name)


def _batches(files: list[Path], wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the files, each of which is removed behind its last."""
    dictionary = wanted.aliases[len(wanted.users)] if wanted.repeated else None
    for path in files:
        for batch in file_batches(path, wanted.aliases, ROWS_AT_ONCE, dictionary, small=True):
            yield batch.select(wanted.aliases).rename_columns(wanted.names)
        path.unlink()
