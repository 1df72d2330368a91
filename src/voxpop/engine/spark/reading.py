"""Open Parquet files as a Spark DataFrame, and read a DataFrame as a corpus.

All types are declared in the schema. No type is inferred from values, so the rows of one user do not change any type or
the spelling of other users' items.

If Spark runs only on this machine, the local engine reads the table, because a shuffle and Python workers would only
add cost. Spark writes the rows of the query to Parquet files, through public methods of a DataFrame, and this process
reads these files. This process never reads the files of the table itself, because only Spark can compute the rows and
columns that the query returns. The choice depends on the session and the arguments, and never on rows.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from voxpop.engine.local.corpus import LocalCorpus
from voxpop.engine.local.read import in_content_order, read_here
from voxpop.engine.spark.corpus import SparkCorpus
from voxpop.engine.spark.frames import MESSAGES
from voxpop.engine.spark.session import answer, is_here, ran, settled_cores, use_own_python, with_setting
from voxpop.engine.spark.tasks import encode, find_kind_of_times, own_versions
from voxpop.errors import ColumnError, InputError, SourceError
from voxpop.files.progress import rounded, tell
from voxpop.privacy.budget import check_whole
from voxpop.reading.columns import check_columns
from voxpop.reading.files import SUFFIXES, file_batches
from voxpop.reading.hidden import check_no_log, root_of
from voxpop.reading.keyed import MISSING_TEXTS
from voxpop.reading.keys import NO_KEYS, KeyColumn, Keys, family, plain_type
from voxpop.reading.limited.memory import MemoryLimit, usual_limit
from voxpop.reading.wanted import ReadOptions, Request

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, SparkSession

TRIES, BETWEEN = 50, 0.1
"""The number of attempts to remove a folder while tasks still write to it, and the seconds between attempts."""
AS_STRINGS = {"void": "string", "array<void>": "array<string>"}
"""The replacements for types that contain only null, because files cannot store these types."""
EXACTLY = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
"""The settings with which times are written unchanged. By default, Spark writes nanoseconds, whose range ends in the
year 2262.
"""


@contextmanager
def written_rows(rows: "DataFrame", folder: Path) -> Iterator[list[Path]]:
    """Write the rows to a folder that only this user may open. The folder exists while the rows are read."""
    try:
        private = Path(tempfile.mkdtemp(dir=folder, prefix="voxpop-rows-")).resolve()
    except OSError as error:
        raise SourceError(
            f"rows cannot be written into {folder}: {error.strerror or error}. Name another folder (work_folder=, "
            "--work-folder)."
        ) from None
    try:
        # `corpus_here` requires that the size of a file is the size of its values, so dictionaries are off.
        writer = rows.write.options(**{"compression": "uncompressed", "parquet.enable.dictionary": "false"})
        ran(rows.sparkSession, writer.parquet, f"file://{private / 'rows'}", settings=EXACTLY)
        yield sorted((private / "rows").glob("*.parquet"))
    finally:
        _remove(private)


def _remove(private: Path) -> None:
    """Remove a folder. Tasks of a failed query can still write to the folder for a moment."""
    for _ in range(TRIES):
        rmtree(private, ignore_errors=True)
        if not private.exists():
            return
        time.sleep(BETWEEN)
    tell(f"{private} contains private rows and cannot be removed now. Remove it.", True)


BYTES_OF_ROW, OF_ITS_BYTES = 64, 16
"""A row takes far less memory than 64 bytes plus 16 times its size in a file without dictionaries. For example, a token
of one letter takes four bytes, with at most three copies while it is read and released.
"""


def corpus_here(rows: "DataFrame", request: Request) -> LocalCorpus:
    """Return the rows of a query as a corpus in the order of contents.

    If the caller gives no limit, the limit is half of the machine's memory, which is public. Rows that need far less
    memory are read without a limit, because this is faster and the release is the same.

    Args:
        rows: The requested columns of a table, with names that every file format supports.
        request: The names of the columns in the table, and the rules for reading them.

    Raises:
        SourceError: If the query fails.
    """
    options = request.options
    limit = MemoryLimit.of(usual_limit() if options.memory is None else options.memory, options.work_folder)
    with written_rows(rows, limit.folder) as written:
        count = sum(int(parquet.read_metadata(path).num_rows) for path in written)
        most = BYTES_OF_ROW * count + OF_ITS_BYTES * sum(path.stat().st_size for path in written)
        free = options.memory is None and most <= limit.total
        within = replace(options, memory=None if free else limit.total, work_folder=limit.folder, partitions=None)
        corpus = read_here(_batches(written, request), replace(request, options=within))
    return in_content_order(corpus, documents=request.order is None)


def _batches(files: list[Path], request: Request) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the files, and remove each file after its last row."""
    users, contents = request.aliases[: len(request.users)], request.aliases[len(request.users) :]
    order = contents.pop() if request.order is not None else None
    written = replace(request, users=users, columns=contents, order=order, types={}, options=ReadOptions(memory=1))
    for path in files:
        for batch in file_batches(path, written):
            yield batch.rename_columns(request.names)
        path.unlink()


FOLDER_TYPES = "spark.sql.sources.partitionColumnTypeInference.enabled"
"""The setting that decides whether Spark infers types from names of folders."""
PLACEMENT = 0x766F78706F70
"""The constant in the hash that places users, so that this hash differs from the hashes of other shuffles."""
MOST_PARTITIONS = 1 << 20
"""The maximum number of partitions, because Spark cannot manage more tasks. Sums of weights are exact for up to 2^32
partitions.
"""


def open_frame(session: "SparkSession", sources: list[str]) -> "DataFrame":
    """Return Parquet files as a DataFrame.

    Args:
        session: The session that reads the files.
        sources: The paths, folders or patterns, which must be valid on the cluster.

    Raises:
        InputError: If a name has the suffix of a different format.
        SourceError: If the files cannot be read.
    """
    from pyspark.errors import PySparkException

    others = {end for source in sources for end in SUFFIXES if end in Path(source).suffixes} - {".parquet"}
    if others:
        raise InputError(
            f"--engine spark reads Parquet files only, got {', '.join(sorted(others))}. Convert the files to "
            "Parquet, or open them in Python: voxpop.read(spark.read.csv(...), user=...)."
        )
    local = [
        Path(root_of(source.removeprefix("file://"))).absolute()
        for source in sources
        if source.startswith("file://") or "://" not in source
    ]
    check_no_log(local)
    try:
        with with_setting(session, FOLDER_TYPES, "false"):
            frame = session.read.parquet(*sources)
            frame.columns  # noqa: B018  # Spark Connect opens the files only now
    except PySparkException as error:
        raise SourceError(
            f"Spark cannot read {', '.join(sources)} ({error.getCondition() or type(error).__name__}). Check the path. "
            "Every executor must be able to read it."
        ) from None
    return frame


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def read_spark(frame: "DataFrame", request: Request) -> SparkCorpus | LocalCorpus:
    """Return a DataFrame as a corpus; see `voxpop.read`.

    If Spark runs only on this machine and `partitions` is None, Spark runs the query and writes its rows to files, and
    the local engine reads them. Otherwise executors read the rows at the first release. One shuffle assigns users by a
    hash of their ids to `partitions` partitions (by default, the number of parallel tasks). The choice and the number
    are public and do not depend on the table, because in an order-dependent weighting the weights depend on which users
    share a partition. Each user's documents are sorted by content, so they do not depend on the location of rows.

    Args:
        frame: A Spark DataFrame (classic or Connect). Every read of the table must return the same rows, in any order.
        request: The columns to read.

    Raises:
        ColumnError: If a column is missing, or users have a type without exact equality.
        SourceError: If reads of the table can return different rows.
        InputError: If `memory` is given for executors.
    """
    partitions, memory = request.options.partitions, request.options.memory
    check_repeatable(frame)
    use_own_python(frame.sparkSession)
    check_columns(request.names, frame.columns, "the table")
    families = {name: _family_of_user(frame, name) for name in request.users}
    rows = frame.select(
        *(_exact(frame, name).alias(alias) for name, alias in zip(request.names, request.aliases, strict=True))
    )
    rows = _with_users(rows, request) if request.drops else rows
    keys = _keys(frame, request.columns) if request.kind == "items" else NO_KEYS
    if partitions is None and is_here(frame.sparkSession):
        return replace(corpus_here(rows, request), keys=keys, families=families)
    if memory is not None:
        raise InputError("`memory` limits this machine, not the executors of Spark. Remove it.")
    if partitions is not None:
        check_whole("partitions", partitions, MOST_PARTITIONS, "the number of parts into which users are placed")
    count = settled_cores(frame.sparkSession) if partitions is None else partitions
    request = replace(request, times=_kind_of_times(rows, request))
    return SparkCorpus(_placed(rows, request, count), count, request.kind, request.token_source, keys, families)


def _with_users(rows: "DataFrame", request: Request) -> "DataFrame":
    """Return the rows that have a user, and show the number of rows without a user.

    Counting these rows requires a Spark job.
    """
    from pyspark.sql import functions as sql

    missing = sql.lit(False)
    for alias, name in zip(request.aliases, request.users, strict=False):
        spelled_so = sql.col(alias).cast("string").isin(*MISSING_TEXTS, name)
        missing = missing | sql.col(alias).isNull() | sql.coalesce(spelled_so, sql.lit(False))
    count = answer(rows.filter(missing).agg(sql.count(sql.lit(1)).alias("rows"))).column("rows")[0].as_py()
    if count:
        tell(
            f"{rounded(count, exact=request.options.exact)} rows have no user and were skipped.",
            request.options.progress,
        )
    return rows.filter(~missing)


def _kind_of_times(rows: "DataFrame", request: Request) -> str | None:
    """Return the kind of the time in any one row if times are strings, or None otherwise.

    Executors reject every time of another kind. Therefore the choice of the row has no influence on a release.
    """
    from pyspark.sql.types import StringType

    time = request.aliases[-1]
    if request.order is None or not isinstance(rows.schema[time].dataType, StringType):
        return None
    found = answer(rows.select(time).limit(1).mapInArrow(find_kind_of_times, "kind string")).column("kind")
    return str(found[0]) if len(found) and found[0].is_valid else None


def check_repeatable(frame: "DataFrame") -> None:
    """Raise an InputError if the plan of a table draws at random or numbers rows.

    If an executor is lost, its rows are computed again, and the noise of a release must then be added to the same rows.
    No public method of Spark returns whether a plan is deterministic, so this function uses `_jdf`. The result can only
    reject a table. Spark Connect does not show plans, so the check is omitted there.
    """
    plan: Any = getattr(frame, "_jdf", None)
    if plan is not None and not plan.queryExecution().analyzed().deterministic():
        raise InputError(
            "the table is not the same whenever Spark reads it, because its query draws at random or numbers rows "
            "(rand, uuid, monotonically_increasing_id, a function without a fixed answer). Write it to a file first, "
            "and read that."
        )


def _placed(rows: "DataFrame", request: Request, count: int) -> "DataFrame":
    """Return the rows, encoded on executors, with each user in one of `count` partitions."""
    from pyspark.sql import functions as sql

    owners = request.aliases[: len(request.users)]
    placed = rows.repartition(count, sql.xxhash64(sql.lit(PLACEMENT), *owners)).sortWithinPartitions(*owners)
    # Single fields are sent, so that an executor with another version reports the mismatch instead of an unpickling
    # error.
    tasks = replace(request, options=ReadOptions(progress=False))
    named = {each.name: getattr(tasks, each.name) for each in fields(tasks)}
    return placed.mapInArrow(partial(encode, wanted=named, versions=own_versions()), MESSAGES)


def _exact(frame: "DataFrame", name: str) -> "Expression":
    """Return a column whose strings are compared by their bytes.

    Therefore items and texts with a collation keep their own spelling. Otherwise strings that are equal under a
    collation would share one spelling, which would have to be chosen from the spellings of several users. A column of
    type void becomes a column of strings.

    Raises:
        ColumnError: If the column contains intervals, which files store as numbers.
    """
    from pyspark.sql import functions as sql
    from pyspark.sql.types import ArrayType, StringType

    column, kind = sql.col(_quoted(name)), frame.schema[name].dataType
    if "interval" in kind.simpleString():
        raise ColumnError(
            f'the column "{name}" must contain strings, whole numbers or another type with equality, got '
            f"{kind.simpleString()}."
        )
    if kind.simpleString() in AS_STRINGS:
        return column.cast(AS_STRINGS[kind.simpleString()])
    if isinstance(kind, StringType):
        return column.cast(StringType())
    if isinstance(kind, ArrayType) and isinstance(kind.elementType, StringType):
        return column.cast(ArrayType(StringType()))
    return column


def _keys(frame: "DataFrame", columns: list[str]) -> Keys:
    """Return the columns of items with the types that their values have in Arrow."""
    return Keys(tuple(KeyColumn(name, str(plain_type(_arrow_type(frame, name)))) for name in columns))


def arrow_schema(frame: "DataFrame") -> dict[str, pa.DataType]:
    """Return the Arrow types of the columns of a DataFrame. Types that Arrow does not support become null."""
    found = {}
    for name in frame.columns:
        try:
            found[name] = _arrow_type(frame, name)
        except Exception:  # pyspark raises various exceptions for types that Arrow lacks
            found[name] = pa.null()
    return found


def _arrow_type(frame: "DataFrame", name: str) -> Any:
    from pyspark.sql.pandas.types import to_arrow_type
    from pyspark.sql.types import ArrayType, TimestampType

    whole = frame.schema[name].dataType
    kind = whole.elementType if isinstance(whole, ArrayType) else whole
    return pa.timestamp("us", "UTC") if isinstance(kind, TimestampType) else to_arrow_type(kind)


def has_collation(kind: Any) -> bool:
    """Return whether strings of a Spark type can be equal although their bytes differ."""
    return str(getattr(kind, "collation", "UTF8_BINARY")) != "UTF8_BINARY"


def _family_of_user(frame: "DataFrame", user: str) -> str:
    """Return the family of types of the user ids.

    Raises:
        ColumnError: If the ids have no equality, or an equality that differs from the equality of their bytes.
    """
    kind = frame.schema[user].dataType
    if has_collation(kind):
        raise ColumnError(
            f'the column "{user}" has the collation {kind.collation}, under which several spellings are one user; '
            "voxpop compares bytes and would count them as several users. Users must be strings without a collation. "
            f"If spellings are different users, read collate({_quoted(user)}, 'UTF8_BINARY') instead. If they are one, "
            "read a column that is equal for all of them, such as lower() of this column."
        )
    found = family(_arrow_type(frame, user))
    if found is None:
        raise ColumnError(
            f'the column "{user}" must contain whole numbers, strings or another type with equality, got '
            f"{kind.simpleString()}."
        )
    return found
