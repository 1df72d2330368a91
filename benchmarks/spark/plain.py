"""A session as people start it, beside a tuned one and the local engine: whole processes, in turn, with their tasks.

python -m benchmarks.spark.plain [MSNBC] [reddit_posts] [partitions] [--runs N]

*plain* is `SparkSession.builder.master("local[2]").getOrCreate()` and nothing else; *tuned* what
`voxpop --engine spark` starts (a light Java, workers forked from `voxpop.spark.daemon`).
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.spark.jobs import MSNBC, POSTS, PUBLISHED, SPARK, write_conf
from benchmarks.support.common import DATA, table
from benchmarks.support.core_seconds import seconds_of

PLAIN = """
import sys, warnings
warnings.simplefilter("ignore")
from pyspark.sql import SparkSession
import voxpop as vp
spark = SparkSession.builder.master("local[2]").getOrCreate()
path, out, parts = sys.argv[1], sys.argv[2], int(sys.argv[3]) or None
if "msnbc" in path:
    corpus = vp.read(spark.read.parquet(path), user="user", sequence="sequence", partitions=parts)
    published = {"guide": False, "budgets": "equal", "accounting": "published", "thresholds": "published"}
    ngrams = vp.NGrams(max_length=6, limit=10, weighting="weighted", **published)
    budget = vp.Budget(1, 1e-7)
else:
    corpus = vp.read(spark.read.parquet(path), user="user", text="text", partitions=parts)
    ngrams, budget = vp.NGrams(max_length=9, limit=100, weighting="weighted"), vp.Budget(4, 1e-7)
ngrams.release(corpus, budget, seed=1).save(out)
"""
JOBS = {
    "MSNBC T 6, published": (DATA / "msnbc.parquet", [*MSNBC, *PUBLISHED]),
    "reddit_posts T 9, guided": (DATA / "reddit_posts.parquet", [*POSTS, "--max-length", "9"]),
}


class Run(NamedTuple):
    """What one process took, the jobs and tasks of Spark in it, and what it released."""

    seconds: float
    core_seconds: float
    jobs: int
    tasks: int
    release: bytes


def main(wanted: list[str]) -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark.plain")
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args(wanted)
    for name, (path, options) in JOBS.items():
        if not given.parts or name.startswith(tuple(given.parts)):
            sides = {"local engine": cli(path, options), "tuned": cli(path, [*options, *SPARK]), "plain": plain(path)}
            compare(name, sides, given.runs, f"spark_plain_{name.split()[0].lower()}")
    if not given.parts or "partitions" in given.parts:
        path, options = JOBS["MSNBC T 6, published"]
        sides = {"local engine": cli(path, options)} | {f"{n} partitions": plain(path, n) for n in (2, 20, 200)}
        compare("MSNBC T 6, published", sides, given.runs, "spark_plain_partitions")


def compare(name: str, sides: dict[str, list[str]], times: int, file: str) -> None:
    """Run the sides in turn and write their medians."""
    runs: dict[str, list[Run]] = {side: [] for side in sides}
    loads = []
    for _ in range(times):
        for side, command in sides.items():
            loads.append(os.getloadavg()[0])
            runs[side].append(run(command))
    release = runs["local engine"][0].release
    rows: list[list[object]] = [["side", "s", "core s", "jobs", "tasks", "s of each run", "same release"]]
    for side, found in runs.items():
        took = [f"{median(each.seconds for each in found):.1f}", f"{median(each.core_seconds for each in found):.1f}"]
        every = ", ".join(f"{each.seconds:.0f}" for each in found)
        same = all(each.release == release for each in found)
        rows.append([side, *took, found[0].jobs, found[0].tasks, every, same])
    load = f"Load of the two cores {min(loads):.1f} to {max(loads):.1f}."
    note = f"{name}: whole processes, in turn; medians of {times}. {load}"
    table(f"Spark as people start it: {name}", rows, file, note)


def cli(path: Path, options: list[str]) -> list[str]:
    """Return the command of `voxpop ngrams`."""
    return [str(Path(sys.executable).with_name("voxpop")), "ngrams", str(path), *options, "--seed", "1", "-o"]


def plain(path: Path, partitions: int = 0) -> list[str]:
    """Return the command of a plain session."""
    return [sys.executable, "-c", PLAIN, str(path), "OUT", str(partitions)]


def run(command: list[str]) -> Run:
    """Run one side in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        events, out = write_conf(Path(folder)), str(Path(folder, "out"))
        whole = [out if each == "OUT" else each for each in command] if "OUT" in command else [*command, out]
        environment = {**os.environ, "SPARK_CONF_DIR": folder, "PYSPARK_PYTHON": sys.executable}
        seconds, core = seconds_of(whole, environment)
        return Run(seconds, core, *counts_of(events), Path(out, "release.parquet").read_bytes())


def counts_of(events: Path) -> tuple[int, int]:
    """Return how many jobs and tasks there were, from the event log."""
    lines = [line for file in sorted(events.rglob("events_*")) for line in file.open()]
    told = [json.loads(line)["Event"] for line in lines]
    return told.count("SparkListenerJobStart"), told.count("SparkListenerTaskEnd")


if __name__ == "__main__":
    main(sys.argv[1:])
