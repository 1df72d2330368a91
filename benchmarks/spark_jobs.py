"""Spark beside the local engine: whole jobs, time and bytes shuffled per length, growth with the number of tokens.

python -m benchmarks.spark_jobs [MSNBC] [reddit_posts] [--authors COMMAND]

COMMAND runs the three programs of the authors' repository on MSNBC with local[2], one after the other; without it their
seconds are those of a quiet machine of the same kind.
"""

import argparse
import json
import os
import shlex
import sys
import tempfile
from pathlib import Path

import polars as pl

from benchmarks.common import DATA, OUT, table
from benchmarks.core_seconds import seconds_of

AUTHORS = {"on a quiet machine": 457.8, "with 4 shuffle partitions": 302.5, "on this machine, an hour before": 637.9}
"""Seconds for MSNBC on two cores, tokens split at spaces. Two are of the authors' code; the last, measured once, is
of its operations typed anew without logging: 135.6 to tokenise, 96.6 to split, 405.6 to extract, 7,797 paths."""
MSNBC = ["--user", "user", "--sequence", "sequence", "--epsilon", "1", "--delta", "1e-7", "--max-length", "6"]
PUBLISHED = [
    "--limit",
    "10",
    "--weighting",
    "weighted",
    "--no-guide",
    "--budgets",
    "equal",
    "--accounting",
    "published",
    "--thresholds",
    "published",
]
POSTS = ["--user", "user", "--text", "text", "--epsilon", "4", "--delta", "1e-7", "--weighting", "weighted"]
SPARK = ["--engine", "spark", "--master", "local[2]"]
CONF = "spark.eventLog.enabled true\nspark.eventLog.compress false\nspark.eventLog.dir file://{0}\n"


def main(wanted: list[str]) -> None:
    """Measure, print, write.

    Args:
        wanted: beginnings of the names of jobs, none means all; perhaps a command of the authors.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_jobs", description=__doc__)
    parser.add_argument("jobs", nargs="*")
    parser.add_argument("--authors")
    arguments = parser.parse_args(wanted)
    authors = (
        AUTHORS
        if arguments.authors is None
        else {"in this run": seconds_of(shlex.split(arguments.authors), {**os.environ})[0]}
    )
    rows: list[list[object]] = [
        ["job", "load", "local, s", "Spark, s", "Spark, core s", "same release", "authors / Spark"]
    ]
    lengths: list[list[object]] = [["job", "pass", "seconds", "rows shuffled", "MB shuffled", "bytes a row"]]
    jobs = [("MSNBC T 6, published", [str(DATA / "msnbc.parquet"), *MSNBC, *PUBLISHED])]
    jobs += [(f"reddit_posts x{n} T 9, guided", [*map(str, copies(n)), *POSTS]) for n in (1, 2, 4)]
    for name, options in jobs:
        if arguments.jobs and not name.startswith(tuple(arguments.jobs)):
            continue
        load = Path("/proc/loadavg").read_text().split()[0]
        local, _, release, _ = run(options)
        spark, core, other, passes = run([*options, *SPARK])
        ratio = " / ".join(f"{each / spark:.1f}" for each in authors.values()) if "MSNBC" in name else "-"
        rows.append([name, load, f"{local:.1f}", f"{spark:.1f}", f"{core:.1f}", release == other, ratio])
        lengths += [[name, *each] for each in passes]
    note = f"Whole processes, start and reading included, weighted. Seconds of the authors' code for MSNBC: {authors}."
    table("Spark: whole jobs", rows, "spark_jobs", note)
    table("Spark: passes", lengths, "spark_passes", "Stages that shuffle, in order, from Spark's event log.")


def copies(number: int) -> list[Path]:
    """Return files of the posts, `number` times over with other users."""
    OUT.mkdir(exist_ok=True)
    paths = [DATA / "reddit_posts.parquet"]
    for copy in range(1, number):
        path = OUT / f"reddit_posts_{copy}.parquet"
        if not path.exists():
            posts = pl.read_parquet(paths[0])
            posts.with_columns(user=pl.col("user") + copy * 10_000_000).write_parquet(path)
        paths.append(path)
    return paths


def run(arguments: list[str]) -> tuple[float, float, bytes, list[list[object]]]:
    """Run `voxpop ngrams`; return its seconds, its core seconds, the release and the passes of Spark."""
    with tempfile.TemporaryDirectory() as folder:
        events, out = Path(folder, "events"), Path(folder, "out")
        events.mkdir()
        Path(folder, "spark-defaults.conf").write_text(CONF.format(events))
        command = [str(Path(sys.executable).with_name("voxpop")), "ngrams", *arguments, "--seed", "1", "-o", str(out)]
        seconds, core = seconds_of(command, {**os.environ, "SPARK_CONF_DIR": folder})
        return seconds, core, (out / "release.parquet").read_bytes(), passes_of(events)


def passes_of(events: Path) -> list[list[object]]:
    """Return (pass, seconds, rows, megabytes, bytes a row) of the stages that shuffle, from the event log."""
    found: dict[int, dict[str, float]] = {}
    for line in (line for file in sorted(events.rglob("events_*")) for line in file.open()):
        event = json.loads(line)
        if event["Event"] == "SparkListenerTaskEnd":
            written = (event.get("Task Metrics") or {}).get("Shuffle Write Metrics", {})
            stage = found.setdefault(event["Stage ID"], {"bytes": 0, "rows": 0, "seconds": 0})
            stage["bytes"] += written.get("Shuffle Bytes Written", 0)
            stage["rows"] += written.get("Shuffle Records Written", 0)
        elif event["Event"] == "SparkListenerStageCompleted":
            info = event["Stage Info"]
            stage = found.setdefault(info["Stage ID"], {"bytes": 0, "rows": 0, "seconds": 0})
            stage["seconds"] = (info["Completion Time"] - info["Submission Time"]) / 1000
    rows = [stage for _, stage in sorted(found.items()) if stage["rows"]]
    return [
        [n, f"{s['seconds']:.2f}", int(s["rows"]), f"{s['bytes'] / 1e6:.2f}", f"{s['bytes'] / s['rows']:.1f}"]
        for n, s in enumerate(rows)
    ]


if __name__ == "__main__":
    main(sys.argv[1:])
