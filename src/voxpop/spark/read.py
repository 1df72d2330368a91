"""A DataFrame of who wrote what as a corpus on the cluster."""

from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from voxpop.arguments import check_whole
from voxpop.corpus.reading.columns import check_columns
from voxpop.corpus.reading.tokenisers import tokeniser_name
from voxpop.errors import ColumnError
from voxpop.keys import WORDS, KeyColumn, Keys
from voxpop.spark.cores import settled_cores
from voxpop.spark.corpus import SparkCorpus
from voxpop.spark.frames import STATE
from voxpop.spark.sources import check_repeatable, use_own_python
from voxpop.spark.tasks import encode
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
    *,
    users: list[str],
    kind: str,
    columns: list[str],
    tokenizer: Any,
    sentences: bool,
    html: bool = False,
    order: str | None = None,
    session: Any = None,
    partitions: int | None = None,
) -> SparkCorpus:
    """Encode a DataFrame on its executors; see `voxpop.read`.

    Users are placed by a hash of their ids into as many partitions as tasks run at once, or `partitions`, which is the
    one shuffle of rows. The number is public and does not depend on the table: what a user moves in an order-dependent
    weighting depends on who shares its partition. Each user's documents come in the order of their contents, a function
    of the user's own rows alone, wherever they lie in the table. Nothing runs before the first release.

    Args:
        frame: a table of Spark, classic or Connect; reading it again must give the same rows, in any order.
        users: columns that together say whose a row is.
        kind: "text", "tokens", "items" or "sequence".
        columns: that column; of items there may be several.
        tokenizer: as in `voxpop.read`.
        sentences: as in `voxpop.read`.
        html: as in `voxpop.read`.
        order: as in `voxpop.read`.
        session: as in `voxpop.read`.
        partitions: as in `voxpop.read`.

    Raises:
        ColumnError: where a column is missing, or of a type that has no equality.
        SourceError: where the table is another one whenever it is read.
    """
    from pyspark.sql import functions as sql

    check_repeatable(frame)
    use_own_python(frame.sparkSession)
    times = [] if order is None else [order]
    check_columns([*users, *columns, *times], frame.columns, "the table")
    for name in users:
        _check_user(frame, name)
    count = settled_cores(frame.sparkSession) if partitions is None else _checked(partitions)
    owners = [f"user{number}" for number in range(len(users))]
    contents = [f"content{number}" for number in range(len(columns))]
    rows = frame.select(
        *(_exact(frame, name).alias(alias) for name, alias in zip(users, owners, strict=True)),
        *(_exact(frame, name).alias(alias) for name, alias in zip(columns, contents, strict=True)),
        *(_exact(frame, name).alias("time") for name in times),
    )
    placed = rows.repartition(count, sql.xxhash64(sql.lit(PLACEMENT), *owners))
    # By what rows hold and not by where they lie: places follow the sizes of files, which are everybody's.
    sortable = [alias for alias, name in zip(contents, columns, strict=True) if _has_order(frame, name)]
    ordered = placed.sortWithinPartitions(*owners, *sortable)
    cut = {"tokenizer": tokenizer, "sentences": sentences, "html": html, "order": order, "session": session}
    work = partial(encode, users=users, kind=kind, columns=columns, cut=cut, version=installed_version())
    reading = tokeniser_name(tokenizer) if kind == "text" else kind
    keys = _keys(frame, columns) if kind == "items" else WORDS
    return SparkCorpus(ordered.mapInArrow(work, STATE), count, kind, reading, keys)


def _checked(partitions: int) -> int:
    check_whole("partitions", partitions, MOST_PARTITIONS, "into how many parts users are placed")
    return partitions


def _exact(frame: "DataFrame", name: str) -> "Column":
    """Return a column whose strings are equal only where their bytes are."""
    from pyspark.sql import functions as sql
    from pyspark.sql.types import StringType

    column = sql.col("`" + name.replace("`", "``") + "`")
    return column.cast(StringType()) if isinstance(frame.schema[name].dataType, StringType) else column


def _has_order(frame: "DataFrame", name: str) -> bool:
    """Say whether a column is of a type that tasks read; others have no order in Spark, and tasks say what is wrong."""
    from pyspark.sql import types

    whole = frame.schema[name].dataType
    kind = whole.elementType if isinstance(whole, types.ArrayType) else whole
    exact = types.IntegralType | types.DecimalType | types.StringType | types.BinaryType | types.BooleanType
    return isinstance(kind, exact | types.DateType | types.TimestampType | types.TimestampNTZType | types.NullType)


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
