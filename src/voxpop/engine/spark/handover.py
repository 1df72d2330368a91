"""A table whose query runs only on this machine, handed to the local engine.

If all of Spark is on this machine, a shuffle and Python workers only add cost. Spark writes the rows of the query as
Parquet, through public methods of a DataFrame, and this process reads these files. It never reads the files of the
table, because only Spark can compute the rows and columns that the query returns. The choice depends on the session and
the arguments, never on rows.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from threading import Lock
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from voxpop.engine.local.content_order import in_content_order
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.engine.local.read import ROWS_AT_ONCE, read_here
from voxpop.engine.spark.session import failure_of, with_setting
from voxpop.errors import ColumnError, SourceError
from voxpop.reading.files import file_batches
from voxpop.reading.keys import Keys
from voxpop.reading.limited.memory import MemoryLimit, usual_limit
from voxpop.reading.progress import tell
from voxpop.reading.types import Column
from voxpop.reading.wanted import ReadOptions, Request, Wanted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from voxpop.engine.contract import Engine, RestrictableDraws
    from voxpop.engine.local.length_walk import MemoryLengthWalk
    from voxpop.engine.local.pools import MemoryRoundWalk, Pools
    from voxpop.engine.local.tree_walk import MemoryTreeWalk


TRIES, BETWEEN = 50, 0.1
"""Number of attempts to remove a folder that tasks still write into, and seconds between."""
AS_STRINGS = {"void": "string", "array<void>": "array<string>"}
"""Types that only null has, which no file holds."""
EXACTLY = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
"""Settings under which times are written without a change. Spark's default has nanoseconds, which end in 2262."""


def storable(rows: "DataFrame", wanted: Wanted) -> "DataFrame":
    """Return rows as files can hold them: a column of type void becomes one of strings.

    Raises:
        ColumnError: for a column of intervals, which files hold as numbers.
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


@contextmanager
def written_rows(rows: "DataFrame", folder: Path) -> Iterator[list[Path]]:
    """Write the rows into a folder that only this user may enter, while they are read."""
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
    """Let Spark write the rows; raise a VoxpopError that quotes nothing if the query fails or a disk is full."""
    try:
        with ExitStack() as settings:
            for name, value in EXACTLY.items():
                settings.enter_context(with_setting(rows.sparkSession, name, value))
            # Without dictionaries the size of a file is that of its values, on which `most_held` relies.
            options = {"compression": "uncompressed", "parquet.enable.dictionary": "false"}
            rows.write.options(**options).parquet(place)
            return
    except Exception as error:  # py4j and pyspark have different exceptions
        failure = failure_of(error)
    raise failure


BYTES_OF_ROW, OF_ITS_BYTES = 64, 16
"""A row takes far less memory than this and 16 times its bytes in a file without dictionaries: a token of one letter
takes four bytes, at most three times while it is read and released."""


def handed_limit(memory: Any, work_folder: Any) -> MemoryLimit:
    """Return the limit within which rows are read: the caller's, or half of the machine's memory, which is public."""
    return MemoryLimit.of(usual_limit() if memory is None else memory, work_folder)


def corpus_here(rows: "DataFrame", wanted: Wanted, limit: MemoryLimit, options: ReadOptions) -> LocalCorpus:
    """Return the rows of a query as a corpus in the order of contents.

    Rows that need far less memory than the limit are read without one, unless the caller named it. The release is the
    same, and faster.

    Args:
        rows: the wanted columns of a table, under names that every file can hold.
        wanted: their names in the table, and how they are read.
        limit: of memory; its folder holds the written rows.
        options: of the call.

    Raises:
        SourceError: if the query fails.
    """
    with written_rows(rows, limit.folder) as written:
        free = options.memory is None and most_held(written) <= limit.total
        within = replace(options, memory=None if free else limit.total, work_folder=limit.folder, partitions=None)
        corpus = read_here(_batches(written, wanted), wanted, within)
    return in_content_order(corpus, documents=wanted.order is None)


def most_held(files: list[Path]) -> int:
    """Return more bytes than reading and releasing the rows of files takes in memory."""
    rows = sum(int(parquet.read_metadata(path).num_rows) for path in files)
    return BYTES_OF_ROW * rows + OF_ITS_BYTES * sum(path.stat().st_size for path in files)


def _batches(files: list[Path], wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the files, each of which is removed behind its last."""
    dictionary = wanted.aliases[len(wanted.users)] if wanted.repeated else None
    for path in files:
        columns = [Column(name) for name in wanted.aliases]
        for batch in file_batches(path, Request(columns, ROWS_AT_ONCE, small=True, dictionary=dictionary)):
            yield batch.rename_columns(wanted.names)
        path.unlink()


class HandedOver:
    """A corpus that is read from Spark when it is first used, and held on this machine from then on.

    Attributes:
        kind: "text", "tokens", "items" or "sequence".
        reading: how its tokens were made, as in `Corpus`.
        keys: the columns that items came from, as in `Corpus`.
    """

    def __init__(self, read: "Callable[[], LocalCorpus]", kind: str, reading: str, keys: Keys) -> None:
        """Take the function that reads the rows. It is called again only if it failed."""
        self._read = read
        self._held: LocalCorpus | None = None
        self._reading = Lock()
        self.kind = kind
        self.reading = reading
        self.keys = keys

    def gathered(self) -> "LocalCorpus":
        """Return all users in arrays on this machine."""
        with self._reading:
            if self._held is None:
                self._held = self._read()
            return self._held

    def round_walk(self) -> "MemoryRoundWalk":
        """Return the items, to be released in one round or several."""
        return self.gathered().round_walk()

    def pools(self, secret: "RestrictableDraws") -> "Pools":
        """Return every user's distinct items, to be released in adaptive rounds."""
        return self.gathered().pools(secret)

    def length_walk(self) -> "MemoryLengthWalk":
        """Return the walk from words to longer and longer grams."""
        return self.gathered().length_walk()

    def tree_walk(self, alphabet: tuple[str, ...], max_length: int, secret: "RestrictableDraws") -> "MemoryTreeWalk":
        """Return every user's one sequence, to be counted."""
        return self.gathered().tree_walk(alphabet, max_length, secret)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the `Corpus`. Names that notebooks and debuggers try out run no query."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.gathered(), name)

    def __repr__(self) -> str:
        return f"HandedOver(kind={self.kind!r}, private)"


if TYPE_CHECKING:
    _contract: type[Engine] = HandedOver
