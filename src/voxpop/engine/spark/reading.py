"""Tables of Spark: files with declared types as a DataFrame, and a DataFrame as a corpus.

| source | types |
|---|---|
| DataFrame, Parquet | its schema |
| CSV | strings, unless `types=` declares a type |
| JSON lines | the same, or lists, by the rule of `voxpop.reading.types` |

No type is inferred from values, so the rows of one user change neither a type nor the spelling of other users' items.

`HandedOver` is a table whose query runs only on this machine, read by the local engine. There a shuffle and Python
workers only add cost. Spark writes the rows of the query as Parquet, through public methods of a DataFrame, and this
process reads these files. It never reads the files of the table, because only Spark can compute the rows and columns
that the query returns. The choice depends on the session and the arguments, never on rows.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from functools import partial
from importlib import metadata
from pathlib import Path
from shutil import rmtree
from threading import Lock
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from voxpop.engine.local.content_order import in_content_order
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.engine.local.read import ROWS_AT_ONCE, read_here
from voxpop.engine.spark.corpus import SparkCorpus
from voxpop.engine.spark.frames import MESSAGES
from voxpop.engine.spark.session import failure_of, is_here, settled_cores, use_own_python, with_setting
from voxpop.engine.spark.tasks import declare, decode_lines, encode
from voxpop.errors import ColumnError, InputError, SourceError
from voxpop.privacy.budget import check_whole
from voxpop.reading.columns import check_columns
from voxpop.reading.files import SUFFIXES, file_batches
from voxpop.reading.keys import WORDS, KeyColumn, Keys, family, plain_type
from voxpop.reading.limited.memory import MemoryLimit, usual_limit
from voxpop.reading.progress import tell
from voxpop.reading.text_files import UTF8
from voxpop.reading.types import Column
from voxpop.reading.wanted import ReadOptions, Request, Wanted

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, SparkSession

    from voxpop.engine.contract import Engine, RestrictableDraws
    from voxpop.engine.local.corpus import MemoryTreeWalk
    from voxpop.engine.local.length_walk import MemoryLengthWalk
    from voxpop.engine.local.pools import MemoryRoundWalk, Pools

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


PLACEMENT = 0x766F78706F70
"""Mixed into the hash that places users, so that it differs from the hash of other shuffles."""
MOST_PARTITIONS = 1 << 20
"""Spark cannot keep track of more tasks. Sums of weights are exact for 2^32 partitions."""


def open_frame(
    session: "SparkSession",
    sources: list[str],
    wanted: Wanted,
    delimiter: str | None = None,
    encoding: str | None = None,
) -> "DataFrame":
    """Return files as a DataFrame: Parquet, CSV, TSV or JSON lines, by the ending of their names.

    Args:
        session: where to read.
        sources: paths, folders or patterns, all of one kind, as the cluster sees them.
        wanted: the columns to read.
        delimiter: of CSV; a comma, or a tab in .tsv, if None.
        encoding: of CSV, by its name in Spark; UTF-8 if None.

    Raises:
        InputError: if a delimiter or an encoding is given for other files.
        SourceError: if the kind is unknown, or the files cannot be read.
    """
    from pyspark.errors import PySparkException

    kind = _kind_of(sources)
    if kind not in (".csv", ".tsv") and (delimiter or encoding):
        raise InputError("csv= describes files of CSV, and these files have another format. Leave it out.")
    if kind == ".parquet" and wanted.types:
        raise InputError("Parquet declares its types: leave types= (--types) out.")
    try:
        if kind == ".parquet":
            frame = session.read.parquet(*sources)
        elif kind in (".csv", ".tsv"):
            separator = delimiter or ("," if kind == ".csv" else "\t")
            options = {"quote": '"', "escape": '"', "sep": separator, "encoding": encoding or UTF8}
            exact = {"header": True, "multiLine": True, "enforceSchema": False, "mode": "FAILFAST"}
            frame = session.read.options(**exact, **options).csv(sources)
            if wanted.types:
                columns = [Column(each.name, each.declared) for each in wanted.selection]
                check_columns(wanted.names, frame.columns, "the table")
                named = frame.select(*map(_quoted, wanted.names))
                frame = named.mapInArrow(partial(declare, columns=columns), _schema_of(columns))
        else:
            work = partial(decode_lines, columns=wanted.selection)
            frame = session.read.text(sources).mapInArrow(work, _schema_of(wanted.selection))
        frame.columns  # noqa: B018  # Spark Connect opens the files only now
    except PySparkException as error:
        raise SourceError(
            f"Spark cannot read {', '.join(sources)} ({error.getCondition() or type(error).__name__}). Check the path: "
            "every executor must be able to read it."
        ) from None
    return frame


def _schema_of(columns: list[Column]) -> Any:
    """Return the schema of columns from a file without types: strings, unless the caller declares a type."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import ArrayType, StringType, StructField, StructType

    fields = []
    for each in columns:
        declared = each.declared
        kind = StringType() if declared is None else from_arrow_type(declared, prefer_timestamp_ntz=True)
        fields.append(StructField(each.name, kind if each.lists is False else ArrayType(kind)))
    return StructType(fields)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _kind_of(sources: list[str]) -> str:
    """Return the one ending of all names; that of a folder is the ending of its files."""
    names = [name for source in sources for name in _names(source)]
    found = {next((end for end in SUFFIXES if end in Path(name).suffixes), "") for name in names} - {""}
    if len(found) != 1:
        raise SourceError(
            f"files for Spark must be of one kind, ending in {', '.join(SUFFIXES)}; "
            f"got {', '.join(sorted(found)) or 'none of them'} in {', '.join(sources)}."
        )
    return found.pop()


def _names(source: str) -> list[str]:
    path = Path(source)
    return [file.name for file in path.rglob("*")] if path.is_dir() and not path.suffix else [source]


def read_spark(
    frame: "DataFrame",
    wanted: Wanted,
    options: ReadOptions,
) -> SparkCorpus | HandedOver:
    """Return a DataFrame as a corpus; see `voxpop.read`. No query runs before the first release.

    If Spark runs on this machine only and `partitions` is None, Spark writes the rows of the query into files and the
    local engine reads them (`voxpop.engine.spark.reading`). Otherwise executors read the rows: one shuffle places
    users by a hash of their ids into as many partitions as tasks run in parallel, or `partitions`. The choice and the
    number are public and do not depend on the table, because in an order-dependent weighting the weights depend on
    which users share a partition. Each user's documents are sorted by content, so they do not depend on where rows lie.

    Args:
        frame: a table of Spark, classic or Connect; reading it again must give the same rows, in any order.
        wanted: the columns to read.
        options: as in `voxpop.read`; executors show no progress.

    Raises:
        ColumnError: if a column is missing, or users are of a type without exact equality.
        SourceError: if each reading of the table may give other rows.
        InputError: if `memory` is given for executors.
    """
    partitions, memory = options.partitions, options.memory
    check_repeatable(frame)
    use_own_python(frame.sparkSession)
    check_columns(wanted.names, frame.columns, "the table")
    for name in wanted.users:
        _check_user(frame, name)
    rows = frame.select(
        *(_exact(frame, name).alias(alias) for name, alias in zip(wanted.names, wanted.aliases, strict=True))
    )
    keys = _keys(frame, wanted.columns) if wanted.kind == "items" else WORDS
    if partitions is None and is_here(frame.sparkSession):
        limit = handed_limit(memory, options.work_folder)
        work = partial(corpus_here, storable(rows, wanted), wanted, limit, options)
        return HandedOver(work, wanted.kind, wanted.reading, keys)
    if memory is not None:
        raise InputError("`memory` limits this machine, not the executors of Spark. Leave it out.")
    if partitions is not None:
        check_whole("partitions", partitions, MOST_PARTITIONS, "into how many parts users are placed")
    count = settled_cores(frame.sparkSession) if partitions is None else partitions
    return SparkCorpus(_placed(rows, wanted, count), count, wanted.kind, wanted.reading, keys)


def check_repeatable(frame: "DataFrame") -> None:
    """Raise a SourceError if the plan of a table draws at random or numbers rows.

    Rows that are lost with an executor are computed again, and the noise of a release must then meet the same rows.
    No public method of Spark returns whether a plan is deterministic, hence `_jdf`; it can only refuse a table. Spark
    Connect does not show plans, so there the check is omitted.
    """
    plan: Any = getattr(frame, "_jdf", None)
    if plan is not None and not plan.queryExecution().analyzed().deterministic():
        raise SourceError(
            "the table is not the same whenever Spark reads it: its query draws at random or numbers rows (rand, uuid, "
            "monotonically_increasing_id, a function without a fixed answer). Write it to a file first, and read that."
        )


def _placed(rows: "DataFrame", wanted: Wanted, count: int) -> "DataFrame":
    """Return the rows encoded on executors, each user in one of `count` partitions."""
    from pyspark.sql import functions as sql

    owners = wanted.aliases[: len(wanted.users)]
    placed = rows.repartition(count, sql.xxhash64(sql.lit(PLACEMENT), *owners)).sortWithinPartitions(*owners)
    # By field: an executor with another version reports it, instead of failing to unpickle.
    named = {each.name: getattr(wanted, each.name) for each in fields(wanted)}
    return placed.mapInArrow(partial(encode, wanted=named, version=metadata.version("voxpop")), MESSAGES)


def _exact(frame: "DataFrame", name: str) -> "Expression":
    """Return a column whose strings are equal only if their bytes are.

    Items and texts with a collation thus keep their own spelling. A spelling common to all that a collation regards as
    equal would have to be chosen among the spellings of several users.
    """
    from pyspark.sql import functions as sql
    from pyspark.sql.types import ArrayType, StringType

    column, kind = sql.col(_quoted(name)), frame.schema[name].dataType
    if isinstance(kind, StringType):
        return column.cast(StringType())
    if isinstance(kind, ArrayType) and isinstance(kind.elementType, StringType):
        return column.cast(ArrayType(StringType()))
    return column


def _keys(frame: "DataFrame", columns: list[str]) -> Keys:
    """Return the columns of items with the types that their values have in Arrow."""
    return Keys(tuple(KeyColumn(name, str(plain_type(_arrow_type(frame, name)))) for name in columns))


def _arrow_type(frame: "DataFrame", name: str) -> Any:
    from pyspark.sql.pandas.types import to_arrow_type
    from pyspark.sql.types import ArrayType, TimestampType

    whole = frame.schema[name].dataType
    kind = whole.elementType if isinstance(whole, ArrayType) else whole
    return pa.timestamp("us", "UTC") if isinstance(kind, TimestampType) else to_arrow_type(kind)


def _check_user(frame: "DataFrame", user: str) -> None:
    """Raise a ColumnError if the ids of users have no equality, or another one than that of their bytes."""
    kind = frame.schema[user].dataType
    if getattr(kind, "collation", "UTF8_BINARY") != "UTF8_BINARY":
        raise ColumnError(
            f'the column "{user}" has the collation {kind.collation}, under which several spellings are one user; '
            "voxpop compares bytes and would count them as several users. Users must be strings without a collation. "
            f"If spellings are different users, read collate({_quoted(user)}, 'UTF8_BINARY') instead; if they are one, "
            "read a column that is the same for all of them, such as lower() of it."
        )
    if family(_arrow_type(frame, user)) is None:
        raise ColumnError(
            f'the column "{user}" must hold whole numbers, strings or others that have equality, got '
            f"{kind.simpleString()}."
        )


if TYPE_CHECKING:
    _contract: type[Engine] = HandedOver
