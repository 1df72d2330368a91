"""A DataFrame of who wrote what as a corpus: on its cluster, or on this machine where all of Spark is on it."""

from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from voxpop.arguments import check_whole
from voxpop.corpus.reading.columns import check_columns
from voxpop.corpus.reading.wanted import Wanted
from voxpop.errors import ColumnError, InputError
from voxpop.keys import WORDS, KeyColumn, Keys
from voxpop.spark.cores import settled_cores
from voxpop.spark.corpus import SparkCorpus
from voxpop.spark.frames import STATE
from voxpop.spark.handed_over import HandedOver
from voxpop.spark.handover import corpus_here, handed_limit, is_here
from voxpop.spark.sources import check_repeatable, use_own_python
from voxpop.spark.tasks import encode
from voxpop.spark.written_rows import storable
from voxpop.spelling import family, plain_type
from voxpop.version import installed_version

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PLACEMENT = 0x766F78706F70
"""Mixed into the hash that places users, so that it is not the hash that other shuffles place them by."""
MOST_PARTITIONS = 1 << 20
"""A task for each is more than Spark keeps track of; sums of weights are exact for 2^32."""


def read_spark(
    frame: "DataFrame",
    wanted: Wanted,
    *,
    partitions: int | None = None,
    memory: Any = None,
    work_folder: Any = None,
    progress: bool | None = None,
) -> SparkCorpus | HandedOver:
    """Take a DataFrame as a corpus; see `voxpop.read`. Nothing runs before the first release.

    Where all of Spark is on this machine and nobody named `partitions`, this machine reads the rows of the frame's
    query, or the files that the query does nothing but read (`voxpop.spark.handover`). Elsewhere executors do. Users
    are then placed by a hash of their ids into as many partitions as tasks run at once, or `partitions`, which is the
    one shuffle of rows. Both the choice and the number are public and do not depend on the table: what a user moves in
    an order-dependent weighting depends on who shares its partition. Each user's documents come in the order of their
    contents, a function of the user's own rows alone, wherever they lie in the table.

    Args:
        frame: a table of Spark, classic or Connect; reading it again must give the same rows, in any order.
        wanted: what is read of it.
        partitions: as in `voxpop.read`.
        memory: as in `voxpop.read`.
        work_folder: as in `voxpop.read`.
        progress: as in `voxpop.read`; executors show none.

    Raises:
        ColumnError: where a column is missing, or of a type that has no equality.
        SourceError: where the table is another one whenever it is read.
        InputError: where `memory` is to bound executors.
    """
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
        limit = handed_limit(memory, work_folder)
        stored, named = storable(rows, wanted), memory is not None
        work = partial(corpus_here, frame, stored, wanted, limit, named=named, progress=progress)
        return HandedOver(work, wanted.kind, wanted.reading, keys)
    if memory is not None:
        raise InputError("`memory` bounds this machine; where users are placed on Spark, executors have their own.")
    count = settled_cores(frame.sparkSession) if partitions is None else _checked(partitions)
    return SparkCorpus(_placed(rows, wanted, count), count, wanted.kind, wanted.reading, keys)


def _placed(rows: "DataFrame", wanted: Wanted, count: int) -> "DataFrame":
    """Return the rows encoded on executors, each user in one of so many partitions."""
    from pyspark.sql import functions as sql

    owners = wanted.aliases[: len(wanted.users)]
    placed = rows.repartition(count, sql.xxhash64(sql.lit(PLACEMENT), *owners)).sortWithinPartitions(*owners)
    # By field: an executor with another version says so, instead of failing to unpickle.
    named = {each.name: getattr(wanted, each.name) for each in fields(wanted)}
    return placed.mapInArrow(partial(encode, wanted=named, version=installed_version()), STATE)


def _checked(partitions: int) -> int:
    check_whole("partitions", partitions, MOST_PARTITIONS, "into how many parts users are placed")
    return partitions


def _exact(frame: "DataFrame", name: str) -> "Column":
    """Return a column whose strings are equal only where their bytes are."""
    from pyspark.sql import functions as sql
    from pyspark.sql.types import StringType

    column = sql.col("`" + name.replace("`", "``") + "`")
    return column.cast(StringType()) if isinstance(frame.schema[name].dataType, StringType) else column


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
    if family(_arrow_type(frame, user)) is None:
        kind = frame.schema[user].dataType
        raise ColumnError(
            f'the column "{user}" must hold whole numbers, strings or others that have equality, got '
            f"{kind.simpleString()}."
        )
