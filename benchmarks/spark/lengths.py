"""Spark and the local engine, length by length, with the seconds of each, and the data that Spark shuffles.

python -m benchmarks.spark.lengths
"""

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import voxpop as vp
from benchmarks.spark.jobs import shuffles_of, write_conf
from benchmarks.support.benchmark import ON_SPARK, Benchmark
from benchmarks.support.common import DATA
from benchmarks.support.engines import read_engine
from voxpop.engine.spark.session import start_session
from voxpop.mechanisms.ngrams.releasing import Outcome, Pass, Runner, State, next_pass
from voxpop.privacy.planned import run_passes

BENCHMARK = Benchmark(__file__, ("spark_lengths",), ON_SPARK, minutes=3, environment=".venv-spark", seeds="1")

MSNBC = {"user": "user", "sequence": "sequence"}
POSTS = {"user": "user", "text": "text"}
JOBS: list[tuple[str, str, dict[str, str], vp.papers.DPNE, vp.Budget]] = [
    (
        "MSNBC T 6, published",
        "msnbc.parquet",
        MSNBC,
        vp.papers.DPNE(max_length=6, max_phrases_per_user=10),
        vp.Budget(1, 1e-7),
    ),
    (
        "reddit_posts T 9, published",
        "reddit_posts.parquet",
        POSTS,
        vp.papers.DPNE(),
        vp.Budget(4, 1e-7),
    ),
]


class Clocked(Runner):
    """A runner that records the end of each length, in seconds of the wall clock."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.ends, self.released = [time.time()], list[int]()

    def execute(self, step: Pass) -> Outcome:
        """Execute a pass. DPNE has one pass for each length."""
        outcome = super().execute(step)
        self.ends.append(time.time())
        self.released.append(outcome.names.size)
        return outcome


def main() -> None:
    """Measure, print and write the results."""
    with tempfile.TemporaryDirectory() as folder:
        events = write_conf(Path(folder))
        os.environ["SPARK_CONF_DIR"] = folder
        session = start_session("local[2]")
        walks = []
        for _, file, columns, mechanism, budget in JOBS:
            path = str(DATA / file)
            local = walk_of(read_engine(path, **columns), mechanism, budget)  # type: ignore[arg-type]
            spark = walk_of(
                read_engine(session.read.parquet(path), options=vp.ReadOptions(partitions=2), **columns),
                mechanism,
                budget,
            )  # type: ignore[arg-type]
            walks.append((local, spark))
        session.stop()
        shuffles = shuffles_of(events)
    rows: list[list[object]] = [["job", "length", "released", "local, s", "Spark, s", "rows shuffled", "MB shuffled"]]
    for (name, *_), (local, spark) in zip(JOBS, walks, strict=True):
        rows += [[name, *each] for each in lengths_of(local, spark, shuffles)]
    note = "One process, local first. Spark reads and places users within length 1; the local engine has read before."
    BENCHMARK.table("Spark: lengths", rows, "spark_lengths", note)


def walk_of(corpus: Any, mechanism: vp.papers.DPNE, budget: vp.Budget) -> Clocked:
    """Release, and return the runner."""
    plan = mechanism.plan(budget)
    runner = Clocked(corpus, plan.begin(1)[0])
    run_passes(State(plan), next_pass, runner, "lengths")
    return runner


def lengths_of(local: Clocked, spark: Clocked, shuffles: list[dict[str, float]]) -> Iterator[list[object]]:
    """Yield (length, released, seconds of each engine, rows, megabytes) of every length."""
    for at, count in enumerate(spark.released):
        begun, ended = spark.ends[at : at + 2]
        mine = [each for each in shuffles if begun < each["ended"] <= ended]
        rows, size = (sum(each[what] for each in mine) for what in ("rows", "bytes"))
        assert count == local.released[at]
        took = local.ends[at + 1] - local.ends[at]
        yield [at + 1, count, f"{took:.2f}", f"{ended - begun:.2f}", int(rows), f"{size / 1e6:.2f}"]


if __name__ == "__main__":
    main()
