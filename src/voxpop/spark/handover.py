"""Rows of a query that runs on this machine, handed to the local engine in files that are gone when they are read.

Where the whole of Spark is on this machine, a shuffle, workers and their answers can only cost: Java writes the rows of
the query as Parquet, and this process reads them, within a limit on memory. Whether it is done so follows from the
session and the call alone, never from the table.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from shutil import rmtree
from threading import Thread
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from voxpop.corpus.corpus import Corpus
from voxpop.corpus.limited.memory import MemoryLimit, usual_limit
from voxpop.corpus.reading.content_order import in_content_order
from voxpop.corpus.reading.files import file_batches
from voxpop.corpus.reading.read import read
from voxpop.corpus.reading.sources import ROWS_AT_ONCE
from voxpop.errors import ColumnError, SourceError, VoxpopError
from voxpop.progress import tell
from voxpop.spark.failures import translated
from voxpop.spark.planning import with_setting
from voxpop.spark.session import cores_of
from voxpop.spark.wanted import Wanted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TRIES, BETWEEN = 50, 0.1
"""How often a folder is removed that tasks still write into, and seconds between."""
AS_STRINGS = {"void": "string", "array<void>": "array<string>"}
"""Types that only null has, which no file holds."""
EXACTLY = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
"""How times are written: as they are. Spark's default has nanoseconds, which end in 2262."""
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


def storable(rows: "DataFrame", wanted: Wanted) -> "DataFrame":
    """Return rows as files can hold them: a column that is always null is one of strings.

    Raises:
        ColumnError: where a length of time would come back as a number.
    """
    from pyspark.sql import functions as sql

    columns = []
    for name, field in zip(wanted.names, rows.schema, strict=True):
        kind = field.dataType.simpleString()
        if "interval" in kind:
            raise ColumnError(
                f'the column "{name}" must hold strings, whole numbers or others that have equality, got {kind}.'
            )
        columns.append(
            sql.col(field.name).cast(AS_STRINGS[kind]).alias(field.name) if kind in AS_STRINGS else field.name
        )
    return rows.select(*columns)


def corpus_of_rows(
    rows: "DataFrame", wanted: Wanted, limit: MemoryLimit, *, named: bool, progress: bool | None
) -> Corpus:
    """Run a query and read what it gives, in the order of contents.

    Rows that fit by far are read without a limit unless somebody named one. That may follow the table: a release within
    a limit is the one without, and takes longer.

    Args:
        rows: the wanted columns, under names that every file can hold.
        wanted: what they are called, and what becomes of them.
        limit: of memory; its folder holds the files meanwhile.
        named: whether the caller named the limit.
        progress: as in `voxpop.read`.

    Raises:
        SourceError: where the query fails.
    """
    ahead = Thread(target=_import_ahead, daemon=True)
    ahead.start()  # while Java works
    columns: dict[str, Any] = {"user": wanted.users, wanted.kind: wanted.columns}
    if wanted.kind != "items":
        columns[wanted.kind] = wanted.columns[0]
    with _written(rows, limit.folder) as files:
        ahead.join()
        where: dict[str, Any] = {}
        if named or most_held(files) > limit.total:
            where = {"memory": limit.total, "work_folder": limit.folder}
        corpus = read(_batches(files, wanted), progress=progress, **columns, **where, **wanted.cut)
    return in_content_order(corpus, documents=wanted.cut["order"] is None)


def most_held(files: list[Path]) -> int:
    """Return more bytes than reading and releasing the rows of files takes in memory."""
    rows = sum(int(parquet.read_metadata(path).num_rows) for path in files)
    return BYTES_OF_ROW * rows + OF_ITS_BYTES * sum(path.stat().st_size for path in files)


def _import_ahead() -> None:
    """Import what takes seconds and is needed when rows are there."""
    for name in ("voxpop.corpus.length_walk", "voxpop.corpus.pools", "scipy.special", "polars"):
        import_module(name)


@contextmanager
def _written(rows: "DataFrame", folder: Path) -> Iterator[list[Path]]:
    """Write the rows into a folder that only this user may enter, for as long as they are read."""
    try:
        private = Path(tempfile.mkdtemp(dir=folder, prefix="voxpop-rows-")).resolve()
    except OSError as error:
        raise SourceError(
            f"rows cannot be handed over in {folder}: {error.strerror or error}. Name another folder (work_folder=, "
            "--work-folder)."
        ) from None
    try:
        _write(rows, f"file://{private / 'rows'}")
        yield sorted((private / "rows").glob("*.parquet"))
    finally:
        _remove(private)


def _remove(private: Path) -> None:
    """Remove a folder into which tasks of a query that failed may write for another moment."""
    for _ in range(TRIES):
        rmtree(private, ignore_errors=True)
        if not private.exists():
            return
        time.sleep(BETWEEN)
    tell(f"{private} holds private rows and cannot be removed now. Remove it.", True)


def _write(rows: "DataFrame", place: str) -> None:
    """Let Java write, with our words for what goes wrong: Spark's may quote rows.

    Raises:
        VoxpopError: where the query fails, or there is no room.
    """
    try:
        with ExitStack() as settings:
            for name, value in EXACTLY.items():
                settings.enter_context(with_setting(rows.sparkSession, name, value))
            # Without dictionaries a file is as large as what it holds: `most_held` goes by that.
            options = {"compression": "uncompressed", "parquet.enable.dictionary": "false"}
            rows.write.options(**options).parquet(place)
            return
    except Exception as error:  # py4j and pyspark each have their own
        failure = translated(str(error)) or _failure(error)
    raise failure


def _failure(error: Exception) -> VoxpopError:
    condition = getattr(error, "getCondition", lambda: None)()
    return SourceError(
        f"the query that gives the table fails on Spark ({condition or type(error).__name__}). What Spark says may "
        "quote rows, and is left out here: run the query by itself, such as with "
        "frame.write.format('noop').mode('overwrite').save()."
    )


def _batches(files: list[Path], wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the files, each of which is removed behind its last."""
    single = wanted.kind == "items" and len(wanted.columns) == 1
    dictionary = wanted.aliases[len(wanted.users)] if single else None
    for path in files:
        for batch in file_batches(path, wanted.aliases, ROWS_AT_ONCE, dictionary, small=True):
            yield batch.select(wanted.aliases).rename_columns(wanted.names)
        path.unlink()
