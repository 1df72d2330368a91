"""How many tasks a cluster runs at once: what places and shuffles are counted by, and never by what is in a table."""

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SPLITS = re.compile(r"\bsplits=(?:Some\()?(\d+)")
DYNAMIC = "spark.dynamicAllocation.enabled"
SETTING = "spark.sql.shuffle.partitions"


def cores(session: "SparkSession") -> int:
    """Return how many tasks run at once.

    Where Spark starts and ends executors by how much there is to do, their number follows the data: there it is
    `spark.sql.shuffle.partitions`, as it is set.
    """
    if str(session.conf.get(DYNAMIC, "false")).lower() == "true":
        return int(session.conf.get(SETTING) or 1)
    context = getattr(session, "_sc", None)
    return int(context.defaultParallelism) if context is not None else _splits(session.range(1))


def _splits(numbers: "DataFrame") -> int:
    """Return into how many parts a range falls by default: Spark Connect tells of cores only in its plans."""
    explain: Any = numbers._explain_string
    found = SPLITS.search(explain(mode="simple"))
    return int(found.group(1)) if found else int(numbers.sparkSession.conf.get(SETTING) or 1)
