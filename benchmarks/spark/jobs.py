"""Spark and the local engine, with whole jobs, time and shuffled bytes per length, and growth with the input.

python -m benchmarks.spark.jobs [MSNBC] [reddit_posts] [--authors COMMAND]

`benchmarks.spark.plain --authors` compares a plain session with the authors' code at its best setting.

COMMAND runs the authors' code on MSNBC with local[2]. Its seconds are measured first, in the same run. Without COMMAND,
they are from an idle machine of the same kind. For the results kept here, COMMAND ran the Spark operations of their
three programs (microsoft/differentially-private-ngram-extraction), each started with spark-submit, one after the other,
at Spark's default settings on PySpark 4.3. The operations were retyped from the repository without the options that
this job does not use. Every count that the programs log was counted. Words were split at spaces, which is faster than
splitting by nltk, because the models of nltk were not available. COMMAND released 7,609 paths in this run.
"""

import argparse
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import polars as pl

from benchmarks.support.benchmark import ON_SPARK, Benchmark
from benchmarks.support.common import DATA, OUT
from benchmarks.support.core_seconds import used_by

BENCHMARK = Benchmark(
    __file__, ("spark_jobs", "spark_passes"), ON_SPARK, minutes=8, environment=".venv-spark", seeds="1"
)

AUTHORS = {"on a quiet machine": 457.8, "with 4 shuffle partitions": 302.5}
"""Seconds of the authors' code for MSNBC on two cores of a machine of this kind, with tokens split at spaces."""
MSNBC = ["--user", "user", "--sequence", "sequence", "--epsilon", "1", "--delta", "1e-7", "--max-length", "6"]
LIMIT = ["--max-phrases-per-user", "10"]
POSTS = ["--user", "user", "--text", "text", "--epsilon", "4", "--delta", "1e-7", "--max-phrases-per-user", "100"]
SPARK = ["--engine", "spark", "--master", "local[2]"]
PLACES = ["--partitions", "2"]
"""Without this option, rows are passed on without a shuffle."""
COLUMNS = ["job", "load", "local, s", "Spark, s", "Spark, core s", "of runs", "slowest, s"]
COLUMNS += ["same release", "authors / Spark"]
CONF = "spark.eventLog.enabled true\nspark.eventLog.compress false\nspark.eventLog.dir file://{0}\n"


class Run(NamedTuple):
    """The resources and the result of one run of `voxpop ngrams`."""

    seconds: float
    core_seconds: float
    release: bytes
    passes: list[list[object]]


def main(wanted: list[str]) -> None:
    """Measure, print and write the results.

    Args:
        wanted: The beginnings of the names of jobs, and optionally a command of the authors. An empty list means all
            jobs.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark.jobs", description=__doc__)
    parser.add_argument("jobs", nargs="*")
    parser.add_argument("--authors")
    arguments = parser.parse_args(wanted)
    authors = (
        AUTHORS
        if arguments.authors is None
        else {"in this run": used_by(shlex.split(arguments.authors), {**os.environ}).seconds}
    )
    rows: list[list[object]] = [[*COLUMNS]]
    lengths: list[list[object]] = [["job", "pass", "seconds", "rows shuffled", "MB shuffled", "bytes a row"]]
    jobs = [("MSNBC T 6, limit 10", 3, [str(DATA / "msnbc.parquet"), *MSNBC, *LIMIT])]
    jobs += [(f"reddit_posts x{n} T 9, guided", 1, [*map(str, copies(n)), *POSTS]) for n in (1, 2, 4)]
    for name, times, options in jobs:
        if arguments.jobs and not name.startswith(tuple(arguments.jobs)):
            continue
        load = Path("/proc/loadavg").read_text().split()[0]
        local = run(options)
        runs = [run([*options, *SPARK, *PLACES]) for _ in range(times)]
        spark = median(each.seconds for each in runs)
        core = median(each.core_seconds for each in runs)
        ratio = " / ".join(f"{each / spark:.1f}" for each in authors.values()) if "MSNBC" in name else "-"
        slowest = max(each.seconds for each in runs)
        took = [f"{each:.1f}" for each in (local.seconds, spark, core)]
        same = all(each.release == local.release for each in runs)
        rows.append([name, load, *took, times, f"{slowest:.1f}", same, ratio])
        lengths += [[name, *each] for each in runs[-1].passes]
    told = ", ".join(f"{seconds:.1f} {when}" for when, seconds in authors.items())
    note = (
        "Whole processes, start and reading included, the default; medians where there are several runs. Adaptive "
        "rounds of two partitions release other n-grams than those of one, with the same guarantee. "
        f"Seconds of the authors' code for MSNBC: {told}."
    )
    BENCHMARK.table("Spark: whole jobs", rows, "spark_jobs", note)
    BENCHMARK.table("Spark: passes", lengths, "spark_passes", "Stages that shuffle, in order, from Spark's event log.")


def copies(number: int) -> list[Path]:
    """Return files of the posts, `number` copies with different users."""
    OUT.mkdir(exist_ok=True)
    paths = [DATA / "reddit_posts.parquet"]
    for copy in range(1, number):
        path = OUT / f"reddit_posts_{copy}.parquet"
        if not path.exists():
            posts = pl.read_parquet(paths[0])
            posts.with_columns(user=pl.col("user") + copy * 10_000_000).write_parquet(path)
        paths.append(path)
    return paths


def run(arguments: list[str]) -> Run:
    """Run `voxpop ngrams` in a separate process."""
    with tempfile.TemporaryDirectory() as folder:
        events, out = write_conf(Path(folder)), Path(folder, "out")
        command = [str(Path(sys.executable).with_name("voxpop")), "ngrams", *arguments, "--seed", "1", "-o", str(out)]
        seconds, core, _ = used_by(command, {**os.environ, "SPARK_CONF_DIR": folder})
        return Run(seconds, core, (out / "release.parquet").read_bytes(), passes_of(events))


def write_conf(folder: Path) -> Path:
    """Write a configuration of Spark with an event log, and return the folder of the log."""
    events = folder / "events"
    events.mkdir()
    (folder / "spark-defaults.conf").write_text(CONF.format(events))
    return events


def passes_of(events: Path) -> list[list[object]]:
    """Return (pass, seconds, rows, megabytes, bytes per row) of the stages that shuffle, from the event log."""
    return [
        [n, f"{s['seconds']:.2f}", int(s["rows"]), f"{s['bytes'] / 1e6:.2f}", f"{s['bytes'] / s['rows']:.1f}"]
        for n, s in enumerate(shuffles_of(events))
    ]


def events_of(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of an event log of Spark, in order."""
    for file in sorted(folder.rglob("events_*")):
        yield from map(json.loads, file.open())


def shuffles_of(events: Path) -> list[dict[str, float]]:
    """Return the rows, bytes, seconds and end (seconds since 1970) of the stages that shuffle, in order."""
    found: dict[int, dict[str, float]] = {}
    for event in events_of(events):
        if event["Event"] == "SparkListenerTaskEnd":
            written = (event.get("Task Metrics") or {}).get("Shuffle Write Metrics", {})
            stage = found.setdefault(event["Stage ID"], {"bytes": 0, "rows": 0, "seconds": 0})
            stage["bytes"] += written.get("Shuffle Bytes Written", 0)
            stage["rows"] += written.get("Shuffle Records Written", 0)
        elif event["Event"] == "SparkListenerStageCompleted":
            info = event["Stage Info"]
            stage = found.setdefault(info["Stage ID"], {"bytes": 0, "rows": 0, "seconds": 0})
            stage["seconds"] = (info["Completion Time"] - info["Submission Time"]) / 1000
            stage["ended"] = info["Completion Time"] / 1000
    return [stage for _, stage in sorted(found.items()) if stage["rows"]]


if __name__ == "__main__":
    main(sys.argv[1:])
