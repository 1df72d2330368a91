"""Forty million user-item pairs: set union on Spark and the same count without privacy, whole processes in turn.

    python -m benchmarks.spark.pairs [--pairs N] [--master MASTER]

*plain Spark* is `distinct().groupBy().count()`; *polars* is the same work in one process. All sides read one file.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.datasets.pairs import pairs_file
from benchmarks.spark.jobs import write_conf
from benchmarks.spark.plain import counts_of
from benchmarks.support.benchmark import ON_SPARK, Benchmark
from benchmarks.support.core_seconds import seconds_of

BENCHMARK = Benchmark(__file__, ("spark_pairs",), ON_SPARK, minutes=8, environment=".venv-spark", seeds="1")
PAIRS = 40_000_000
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
WEIGHTED = "vp.SetUnion(limit=100, weighting=vp.weightings.Weighted()).release(corpus, budget, seed=1)\n"
ADAPTIVE = "vp.SetUnion(limit=100).release(corpus, budget, seed=1)\n"
LOCAL = "import sys\n" + OURS + "corpus = read(sys.argv[1])\n" + ADAPTIVE
POLARS = 'import sys\nimport polars as pl\npl.scan_parquet(sys.argv[1]).unique().group_by("item").len().collect()\n'
SIDES = {
    "plain Spark": PLAIN,
    "Spark, weighted": ON + WEIGHTED,
    "Spark, adaptive rounds": ON + ADAPTIVE,
    "polars": POLARS,
    "local engine, adaptive rounds": LOCAL,
}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark.pairs")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args()
    path = pairs_file(given.pairs)
    rows: list[list[object]] = [["side", "seconds", "to plain Spark", "processor seconds", "jobs", "tasks"]]
    base = 0.0
    for name, program in SIDES.items():
        took, core, jobs, tasks = measured(program, path, given.master)
        base = base or took
        rows.append([name, f"{took:.1f}", f"{took / base:.2f}", f"{core:.1f}", jobs or "–", tasks or "–"])
        print(rows[-1], flush=True)
    note = f"{given.pairs:,} pairs, {PARTITIONS} partitions, {given.master}, 4 GiB for Java; whole processes, one run "
    note += "each, in this order."
    BENCHMARK.table("Set union on Spark and the same work without privacy", rows, "spark_pairs", note)


def measured(program: str, path: Path, master: str) -> tuple[float, float, int, int]:
    """Return seconds, processor seconds, jobs and tasks of a program in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        events = write_conf(Path(folder))
        environment = {**os.environ, "SPARK_CONF_DIR": folder, "PYSPARK_PYTHON": sys.executable}
        command = [sys.executable, "-c", program, str(path), master, str(PARTITIONS)]
        return (*seconds_of(command, environment), *counts_of(events))


if __name__ == "__main__":
    main()
