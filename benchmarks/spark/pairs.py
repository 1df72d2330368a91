"""Forty million user-item pairs, with set union on Spark and the same count without privacy, in alternating processes.

    python -m benchmarks.spark.pairs

*plain Spark* is `distinct().groupBy().count()`, and *polars* is the same work in one process. All sides read one file.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from benchmarks.datasets.pairs import pairs_file
from benchmarks.spark.jobs import write_conf
from benchmarks.spark.plain import counts_of
from benchmarks.support.benchmark import ON_SPARK, Benchmark
from benchmarks.support.core_seconds import Used, used_by

BENCHMARK = Benchmark(
    __file__, ("spark_pairs", "spark_costs"), ON_SPARK, minutes=15, environment=".venv-spark", seeds="1"
)
PARTITIONS = 8
SESSION = """
import sys
from pyspark.sql import SparkSession
path, master, partitions = sys.argv[1], sys.argv[2], sys.argv[3]
builder = SparkSession.builder.master(master).config("spark.sql.shuffle.partitions", partitions)
builder = builder.config("spark.driver.memory", "4g")
rows = builder.getOrCreate().read.parquet(path)
"""
PLAIN = (
    SESSION
    + 'rows.select("user", "item").distinct().groupBy("item").count().write.format("noop").mode("overwrite").save()\n'
)
OURS = """
import warnings
import voxpop as vp
warnings.simplefilter("ignore")
budget = vp.Budget(3, 4.54e-5)
read = lambda rows, **more: vp.read(rows, user="user", items="item", **more)
"""
ON = SESSION + OURS + "corpus = read(rows, options=vp.ReadOptions(partitions=int(partitions)))\n"
WEIGHTED = "vp.papers.SetUnion(100, 'weighted', accounting='joint').release(corpus, budget, seed=1)\n"
ADAPTIVE = "vp.Items(max_items_per_user=100).release(corpus, budget, seed=1)\n"
LOCAL = "import sys\n" + OURS + "corpus = read(sys.argv[1])\n" + ADAPTIVE
POLARS = 'import sys\nimport polars as pl\npl.scan_parquet(sys.argv[1]).unique().group_by("item").len().collect()\n'
PLAIN_SIDE, WEIGHTED_SIDE, ADAPTIVE_SIDE = "plain Spark", "Spark, weighted", "Spark, adaptive rounds"
SIDES = {
    PLAIN_SIDE: PLAIN,
    WEIGHTED_SIDE: ON + WEIGHTED,
    ADAPTIVE_SIDE: ON + ADAPTIVE,
    "polars": POLARS,
    "local engine, adaptive rounds": LOCAL,
}
PAIRS, CORES = 40_000_000, 2
"""The number of pairs and of cores for the comparison of all sides."""
PLAIN_SECONDS = 56.4
"""The seconds of plain Spark in this comparison, on the machine of the cost model."""
MORE_SIZES = ((10_000_000, 1), (100_000_000, 2))
"""The other numbers of pairs and of cores for the check of the cost model."""


class Costs(NamedTuple):
    """The cost model of one weighting, fitted to earlier runs of 5 to 100 million pairs on one and two cores.

    Attributes:
        start: The seconds until the first task, and the seconds of small jobs.
        parallel: The processor seconds per million pairs in tasks, which the cores share.
        serial: The seconds per million pairs in one task.
        base: The bytes of a Python worker.
        worker: The bytes of a worker per pair of the largest partition, or per pair if one task has all pairs.
    """

    start: float
    parallel: float
    serial: float
    base: float
    worker: float

    def seconds(self, pairs: int, cores: int) -> float:
        """Predict the seconds of a whole process on the machine of the model."""
        return self.start + pairs / 1e6 * (self.parallel / cores + self.serial)

    def memory(self, pairs: int) -> float:
        """Predict the resident bytes of the largest worker."""
        return self.base + self.worker * pairs


COSTS = {
    WEIGHTED_SIDE: Costs(start=11, parallel=1.2, serial=0, base=3.45e8, worker=5.4),
    ADAPTIVE_SIDE: Costs(start=15, parallel=1.0, serial=0.12, base=3.9e8, worker=6.2),
}


def main() -> None:
    """Measure, print and write the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark.pairs")
    parser.add_argument(
        "--sizes", type=int, nargs="*", help="millions of pairs: measure the cost model there, write nothing"
    )
    given = parser.parse_args()
    more = (
        [(millions * 1_000_000, cores) for millions in given.sizes for cores in (1, 2)] if given.sizes else MORE_SIZES
    )
    head = ["weighting", "pairs", "cores", "seconds", "predicted", "ratio", "worker, MB", "predicted", "ratio"]
    runs = {name: measured(program, pairs_file(PAIRS), CORES) for name, program in SIDES.items()}
    plain = runs[PLAIN_SIDE].used.seconds
    slower = plain / PLAIN_SECONDS
    model = [head, *_beside_model(runs, PAIRS, CORES, slower)]
    for pairs, cores in more:
        model += _beside_model(
            {name: measured(SIDES[name], pairs_file(pairs), cores) for name in COSTS}, pairs, cores, slower
        )
    if given.sizes:
        return
    sides = [["side", "seconds", "to plain Spark", "processor seconds", "jobs", "tasks"]]
    for name, (used, jobs, tasks) in runs.items():
        took = [f"{used.seconds:.1f}", f"{used.seconds / plain:.2f}", f"{used.core_seconds:.1f}"]
        sides.append([name, *took, str(jobs or "–"), str(tasks or "–")])
    note = f"{PARTITIONS} partitions, 4 GiB for Java; whole processes, one run each."
    scaled = f"Predicted seconds are multiplied by {slower:.2f}, by which plain Spark is slower than for the model."
    title = "Set union on Spark and the same work without privacy"
    BENCHMARK.table(title, sides, "spark_pairs", f"{PAIRS:,} pairs, local[{CORES}], {note}")
    BENCHMARK.table("Set union on Spark: the cost model beside measurements", model, "spark_costs", f"{note} {scaled}")


class Run(NamedTuple):
    """The resources of a process, and the jobs and tasks of Spark in it."""

    used: Used
    jobs: int
    tasks: int


def _beside_model(runs: dict[str, Run], pairs: int, cores: int, slower: float) -> list[list[str]]:
    """Return and print a row for each weighting, with the model's seconds multiplied by `slower`."""
    rows = []
    for name, costs in COSTS.items():
        used, seconds, memory = runs[name].used, slower * costs.seconds(pairs, cores), costs.memory(pairs) / 1e6
        took = [f"{used.seconds:.1f}", f"{seconds:.1f}", f"{seconds / used.seconds:.2f}"]
        peak = used.worker / 1e6
        rows.append([name, f"{pairs:,}", str(cores), *took, f"{peak:.0f}", f"{memory:.0f}", f"{memory / peak:.2f}"])
        print(rows[-1], f"{used.core_seconds:.1f}", flush=True)
    return rows


def measured(program: str, path: Path, cores: int) -> Run:
    """Run a program in a new process."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        events = write_conf(Path(folder))
        environment = {**os.environ, "SPARK_CONF_DIR": folder, "PYSPARK_PYTHON": sys.executable}
        command = [sys.executable, "-c", program, str(path), f"local[{cores}]", str(PARTITIONS)]
        return Run(used_by(command, environment), *counts_of(events))


if __name__ == "__main__":
    main()
