"""A usual Spark session, the command line and the local engine, as whole processes that run in turn.

python -m benchmarks.spark.plain [MSNBC] [reddit_posts] [partitions] [--runs N] [--authors COMMAND]

*plain* is `SparkSession.builder.master("local[2]").getOrCreate()` and nothing else, and *tuned* is the session of
`voxpop --engine spark` (a light Java, and imports while it starts). In both sessions, Spark writes the rows and the
local engine reads them. Two sides release nothing. *session* is a plain session that opens the table and ends, and
*rows* is a plain session that also writes the rows. The difference between *plain* and *rows* is the time of Voxpop.
*partitions* reads the clicks into 2, 20 and 200 partitions. COMMAND runs the authors' pipeline on MSNBC (`jobs.py`
describes it), in turn with all other sides and at its best setting, 4 shuffle partitions, which it reads from
`SPARK_CONF_DIR`. %(out)s in COMMAND is replaced by a new folder. It runs once. Its releases are drawn again each time,
so they are not compared.
"""

import argparse
import os
import shlex
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.spark.jobs import LIMIT, MSNBC, POSTS, SPARK, events_of, write_conf
from benchmarks.support.benchmark import ON_SPARK, Benchmark
from benchmarks.support.common import DATA
from benchmarks.support.core_seconds import used_by

BENCHMARK = Benchmark(
    __file__,
    ("spark_plain_msnbc", "spark_plain_reddit_posts", "spark_plain_partitions"),
    ON_SPARK,
    minutes=7,
    environment=".venv-spark",
    seeds="1",
)

PLAIN = """
import sys, warnings
warnings.simplefilter("ignore")
from pyspark.sql import SparkSession
import voxpop as vp
spark = SparkSession.builder.master("local[2]").getOrCreate()
out, parts, *paths = sys.argv[1], int(sys.argv[2]) or None, *sys.argv[3:]
if "msnbc" in paths[0]:
    options = vp.ReadOptions(partitions=parts)
    corpus = vp.read(spark.read.parquet(*paths), user="user", sequence="sequence", options=options)
    ngrams = vp.NGrams(max_length=6, max_phrases_per_user=10)
    budget = vp.Budget(1, 1e-7)
else:
    corpus = vp.read(spark.read.parquet(*paths), user="user", text="text", options=vp.ReadOptions(partitions=parts))
    ngrams, budget = vp.NGrams(max_length=9, max_phrases_per_user=100), vp.Budget(4, 1e-7)
ngrams.release(corpus, budget, seed=1).save(out)
"""
SESSION = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[2]").getOrCreate()
spark.read.parquet(*sys.argv[1:])
"""
ROWS = (
    SESSION.replace("spark.read", "table = spark.read")
    + """
import tempfile
content = "sequence" if "msnbc" in sys.argv[1] else "text"
with tempfile.TemporaryDirectory() as folder:
    table.select("user", content).write.option("compression", "uncompressed").parquet(f"file://{folder}/rows")
"""
)
AUTHORS = "authors, 4 partitions"
JOBS = {
    "MSNBC T 6, limit 10": (DATA / "msnbc.parquet", [*MSNBC, *LIMIT]),
    "reddit_posts T 9, guided": (DATA / "reddit_posts.parquet", [*POSTS, "--max-length", "9"]),
}


class Run(NamedTuple):
    """The resources of one process, the jobs and tasks of Spark in it, and its release."""

    seconds: float
    core_seconds: float
    jobs: int
    tasks: int
    release: bytes


def main(wanted: list[str]) -> None:
    """Measure, print and write the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark.plain")
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--authors")
    given = parser.parse_args(wanted)
    for name, (path, options) in JOBS.items():
        if not given.parts or name.startswith(tuple(given.parts)):
            sides = {"local engine": cli([path], options), "tuned": cli([path], [*options, *SPARK])}
            sides |= {
                "plain": plain([path]),
                "session": python(SESSION, path),
                "rows": python(ROWS, path),
            }
            if given.authors is not None and name.startswith("MSNBC"):
                sides[AUTHORS] = shlex.split(given.authors)
            compare(name, sides, given.runs, f"spark_plain_{name.split()[0].lower()}")
    if not given.parts or "partitions" in given.parts:
        (name, (path, options)), *_ = JOBS.items()
        sides = {"local engine": cli([path], options)} | {f"{n} partitions": plain([path], n) for n in (2, 20, 200)}
        compare(name, sides, given.runs, "spark_plain_partitions")


def compare(name: str, sides: dict[str, list[str]], times: int, file: str) -> None:
    """Run the sides in turn and write their medians."""
    runs: dict[str, list[Run]] = {side: [] for side in sides}
    loads = []
    for number in range(times):
        for side, command in sides.items():
            if side != AUTHORS or number == 0:  # the authors' code takes minutes
                loads.append(os.getloadavg()[0])
                runs[side].append(run(side, command))
    release = runs["local engine"][0].release
    rows: list[list[object]] = [["side", "s", "core s", "jobs", "tasks", "s of each run", "same release"]]
    for side, found in runs.items():
        took = [f"{median(each.seconds for each in found):.1f}", f"{median(each.core_seconds for each in found):.1f}"]
        every = ", ".join(f"{each.seconds:.0f}" for each in found)
        same = all(each.release == release for each in found) if found[0].release else "-"
        rows.append([side, *took, found[0].jobs, found[0].tasks, every, same])
    load = f"The load of the two cores was {min(loads):.1f} to {max(loads):.1f}."
    note = f"{name}: whole processes, alternating; medians of {times}. {load}"
    BENCHMARK.table(f"Spark with a plain session: {name}", rows, file, note)


def cli(paths: list[Path], options: list[str]) -> list[str]:
    """Return the command of `voxpop ngrams`."""
    command = [str(Path(sys.executable).with_name("voxpop")), "ngrams", *map(str, paths), *options]
    return [*command, "--seed", "1", "-o", "%(out)s"]


def plain(paths: list[Path], partitions: int = 0) -> list[str]:
    """Return the command of a plain session."""
    return [sys.executable, "-c", PLAIN, "%(out)s", str(partitions), *map(str, paths)]


def python(program: str, path: Path) -> list[str]:
    """Return the command of a program that releases nothing."""
    return [sys.executable, "-c", program, str(path)]


def run(side: str, command: list[str]) -> Run:
    """Run one side in a separate process. Its release is read only if it is a release of Voxpop."""
    with tempfile.TemporaryDirectory() as folder:
        events, out = write_conf(Path(folder)), Path(folder, "out")
        if side == AUTHORS:
            with Path(folder, "spark-defaults.conf").open("a") as conf:
                conf.write("spark.sql.shuffle.partitions 4\n")
        whole = [each.replace("%(out)s", str(out)) for each in command]
        environment = {**os.environ, "SPARK_CONF_DIR": folder, "PYSPARK_PYTHON": sys.executable}
        seconds, core, _ = used_by(whole, environment)
        release = out / "release.parquet"
        return Run(seconds, core, *counts_of(events), release.read_bytes() if release.exists() else b"")


def counts_of(events: Path) -> tuple[int, int]:
    """Return the number of jobs and of tasks, from the event log."""
    told = [event["Event"] for event in events_of(events)]
    return told.count("SparkListenerJobStart"), told.count("SparkListenerTaskEnd")


if __name__ == "__main__":
    main(sys.argv[1:])
