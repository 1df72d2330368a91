"""What a task costs on a warm worker, in processor time: numba's objects left out of garbage collections, or in them.

python -m benchmarks.spark.tasks

One plain session. Its workers run a release first, then jobs of tasks that do nothing but arrive as all of ours do.
Spark's daemon collects garbage after each task. In the second kind tasks put back what is frozen, as before.
"""

import gc
import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.support.common import DATA, table

TASKS = 100
ROUNDS = 3


def main() -> None:
    """Measure, print, write."""
    from pyspark.sql import SparkSession

    import voxpop as vp

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    corpus = vp.read(spark.read.parquet(str(DATA / "msnbc.parquet")), user="user", sequence="sequence")
    vp.NGrams(max_length=3, limit=10, weighting="weighted").release(corpus, vp.Budget(1, 1e-7), seed=1)
    rows: list[list[object]] = [["kind", "Python, ms a task", "Java, ms a task", "load"]]
    for number in range(ROUNDS):
        for kind, work in (("left out", partial(nothing, name=f"round {number}")), ("put back", thawed)):
            spark.range(0, 8, 1, 8).mapInArrow(work, "id bigint").collect()  # the kind's first task is paid here
            before = used()
            spark.range(0, TASKS, 1, TASKS).mapInArrow(work, "id bigint").collect()
            spent = [f"{1000 * (used()[name] - before[name]) / TASKS:.1f}" for name in ("python", "java")]
            rows.append([kind, *spent, f"{os.getloadavg()[0]:.1f}"])
    note = f"{TASKS} tasks a job, two workers; processor time of all workers, and of the driver's Java."
    table("Spark: what a task costs", rows, "spark_tasks", note)


def nothing(batches: Any, name: str) -> Iterator[Any]:
    """Answer what came, as a task of this name."""
    from voxpop.spark.worker import safely

    with safely(name):
        yield from batches


def thawed(batches: Any) -> Iterator[Any]:
    """Answer what came, and put back what was left out."""
    from voxpop.spark.worker import safely

    gc.unfreeze()
    with safely("thawed"):
        yield from batches
    gc.unfreeze()


def used() -> dict[str, float]:
    """Return the processor seconds so far of this process's descendants, those that ended included, by program."""
    ticks, children, spent = os.sysconf("SC_CLK_TCK"), {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        fields = rest.split()
        mine = fields[11:15] if name != "java" else fields[11:13]  # of Java's own; of a daemon with its workers
        spent[int(folder.name)] = ("java" if name == "java" else "python", sum(map(int, mine)) / ticks)
        children.setdefault(int(fields[1]), []).append(int(folder.name))
    found = {"python": 0.0, "java": 0.0}
    waiting = [*children.get(os.getpid(), [])]
    while waiting:
        pid = waiting.pop()
        waiting += children.get(pid, [])
        found[spent[pid][0]] += spent[pid][1]
    return found


if __name__ == "__main__":
    main()
