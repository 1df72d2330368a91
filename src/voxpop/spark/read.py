"""A DataFrame of who wrote what as a corpus on the cluster."""

from functools import partial
from typing import TYPE_CHECKING, Any

from voxpop.corpus.reading.columns import check_columns
from voxpop.corpus.reading.tokenisers import tokeniser_name
from voxpop.errors import ColumnError
from voxpop.spark.corpus import SparkCorpus
from voxpop.spark.frames import STATE
from voxpop.spark.tasks import encode

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PLACEMENT = 0x766F78706F70
"""Mixed into the hash that places users, so that it is not the hash that other shuffles place them by."""


def read_spark(
    frame: "DataFrame",
    *,
    user: str,
    kind: str,
    column: str,
    tokenizer: Any,
    sentences: bool,
) -> SparkCorpus:
    """Encode a DataFrame on its executors; see `voxpop.read`.

    Users are placed by a hash of their ids into `spark.sql.shuffle.partitions` partitions, which is the one shuffle of
    rows. Each user's documents come in the order of their contents, a function of the user's own rows alone, wherever
    they lie in the table. Nothing runs before the first release.

    Args:
        frame: a table of Spark, classic or Connect; reading it again must give the same rows, in any order.
        user: column of users.
        kind: "text", "tokens", "items" or "sequence".
        column: that column.
        tokenizer: as in `voxpop.read`.
        sentences: as in `voxpop.read`.

    Raises:
        ColumnError: where a column is missing, or users are neither whole numbers nor strings.
    """
    from pyspark.sql import functions as sql

    check_columns([user, column], frame.columns, "the table")
    _check_user(frame, user)
    count = int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)
    rows = frame.select(_exact(frame, user).alias("user"), _exact(frame, column).alias("content"))
    placed = rows.repartition(count, sql.xxhash64(sql.lit(PLACEMENT), "user"))
    # By what rows hold and not by where they lie: places follow the sizes of files, which are everybody's.
    ordered = placed.sortWithinPartitions(*(["user", "content"] if _has_order(frame, column) else ["user"]))
    work = partial(encode, user=user, kind=kind, column=column, tokenizer=tokenizer, sentences=sentences)
    reading = tokeniser_name(tokenizer) if kind == "text" else kind
    return SparkCorpus(ordered.mapInArrow(work, STATE), count, kind, reading)


def _exact(frame: "DataFrame", name: str) -> "Column":
    """Return a column whose strings are equal only where their bytes are."""
    from pyspark.sql import functions as sql
    from pyspark.sql.types import StringType

    column = sql.col("`" + name.replace("`", "``") + "`")
    return column.cast(StringType()) if isinstance(frame.schema[name].dataType, StringType) else column


def _has_order(frame: "DataFrame", name: str) -> bool:
    """Say whether a column is of a type that tasks read; others have no order in Spark, and tasks say what is wrong."""
    from pyspark.sql.types import ArrayType, IntegralType, NullType, StringType

    kind = frame.schema[name].dataType
    return isinstance(kind.elementType if isinstance(kind, ArrayType) else kind, IntegralType | NullType | StringType)


def _check_user(frame: "DataFrame", user: str) -> None:
    from pyspark.sql.types import IntegralType, StringType

    kind = frame.schema[user].dataType
    if not isinstance(kind, IntegralType | StringType):
        raise ColumnError(f'the column "{user}" must hold whole numbers or strings, got {kind.simpleString()}.')
