"""How many tasks a cluster runs at once: what places and shuffles are counted by, and never by what is in a table."""

import re
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SPLITS = re.compile(r"\bsplits=(?:Some\()?(\d+)")
DYNAMIC = "spark.dynamicAllocation.enabled"
SETTING = "spark.sql.shuffle.partitions"
QUIET = 2.0
"""Seconds without a new executor after which all are taken to be there."""
MOST_SECONDS = 30.0
EVERY = 0.2


def cores(session: "SparkSession") -> int:
    """Return how many tasks run at once.

    Where Spark starts and ends executors by how much there is to do, their number follows the data: there it is
    `spark.sql.shuffle.partitions`, as it is set.
    """
    if str(session.conf.get(DYNAMIC, "false")).lower() == "true":
        return int(session.conf.get(SETTING) or 1)
    context = getattr(session, "_sc", None)
    return int(context.defaultParallelism) if context is not None else _splits(session.range(1))


def settled_cores(session: "SparkSession") -> int:
    """Return how many tasks run at once, on a cluster when its executors have come: they register one by one."""
    context: Any = getattr(session, "_sc", None)
    if context is not None and not str(context.master).startswith("local"):
        _wait_for_executors(context._jsc.sc())
    return cores(session)


def for_meeting(count: int) -> int:
    """Return into how many partitions two tables are shuffled that are to meet.

    Rows in a single one are not placed by any column: Spark would shuffle both again, into as many as the session says.
    """
    return max(count, 2)


def _wait_for_executors(context: Any) -> None:
    """Wait until at least one is there and no other has come for a while."""
    start = changed = time.monotonic()
    known = 0
    while time.monotonic() - start < MOST_SECONDS:
        there = int(context.getExecutorMemoryStatus().size()) - 1  # the driver is one
        if there != known:
            known, changed = there, time.monotonic()
        if known and time.monotonic() - changed > QUIET:
            return
        time.sleep(EVERY)


def _splits(numbers: "DataFrame") -> int:
    """Return into how many parts a range falls by default: Spark Connect tells of cores only in its plans."""
    explain: Any = numbers._explain_string
    found = SPLITS.search(explain(mode="simple"))
    return int(found.group(1)) if found else int(numbers.sparkSession.conf.get(SETTING) or 1)
