"""Tables of Spark: files with declared types as a DataFrame, and a DataFrame as a corpus.

| source | types |
|---|---|
| DataFrame, Parquet | its schema |
| CSV | strings, unless `types=` declares a type |
| JSON lines | the same, or lists, by the rule of `voxpop.reading.types` |

No type is inferred from values, so the rows of one user change neither a type nor the spelling of other users' items.
"""

from dataclasses import fields
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from voxpop.engine.spark.corpus import SparkCorpus
from voxpop.engine.spark.frames import MESSAGES
from voxpop.engine.spark.handover import HandedOver, corpus_here, handed_limit, storable
from voxpop.engine.spark.session import is_here, settled_cores, use_own_python
from voxpop.engine.spark.tasks import declare, decode_lines, encode
from voxpop.errors import ColumnError, InputError, SourceError
from voxpop.privacy.budget import check_whole
from voxpop.reading.columns import check_columns
from voxpop.reading.csv_text import UTF8
from voxpop.reading.files import SUFFIXES
from voxpop.reading.keys import WORDS, KeyColumn, Keys, family, plain_type
from voxpop.reading.types import Column
from voxpop.reading.wanted import ReadOptions, Wanted

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, SparkSession

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
            f"Spark needs files of one kind, ending in {', '.join(SUFFIXES)}; "
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
    local engine reads them (`voxpop.engine.spark.handover`). Otherwise executors read the rows: one shuffle places
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
        raise InputError("`memory` bounds this machine; where users are placed on Spark, executors have their own.")
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
