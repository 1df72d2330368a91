"""The costs of each pass for one task of twenty million tokens, in seconds, shuffled bytes, and memory of its Python.

python -m benchmarks.spark.tasks [--copies N] [--partitions P]

The input is three copies of the posts with different users, in four partitions, on two cores, which is 19 million
tokens per task. A plan for a cluster multiplies these costs by its tasks (docs/guides/spark-measured.md).
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.spark.jobs import POSTS, SPARK, copies, events_of, write_conf
from benchmarks.support.benchmark import ON_SPARK, Benchmark
from benchmarks.support.core_seconds import used_by
from benchmarks.support.engines import read_engine

BENCHMARK = Benchmark(__file__, ("spark_tasks",), ON_SPARK, minutes=3, environment=".venv-spark", seeds="1")

COLUMNS = ["stage", "seconds a task", "slowest", "MB read a task", "MB written a task", "rows written a task"]


def main() -> None:
    """Measure, print and write the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark.tasks")
    parser.add_argument("--copies", type=int, default=3)
    parser.add_argument("--partitions", type=int, default=4)
    given = parser.parse_args()
    files = copies(given.copies)
    tokens = read_engine(files[0], user="user", text="text").tokens
    each = given.copies * int((tokens >= 0).sum()) / given.partitions
    with tempfile.TemporaryDirectory() as folder:
        events = write_conf(Path(folder))
        command = [str(Path(sys.executable).with_name("voxpop")), "ngrams", *map(str, files), *POSTS, *SPARK]
        command += ["--max-length", "9", "--partitions", str(given.partitions), "--seed", "1", "-o", f"{folder}/out"]
        seconds, _, peak = used_by(command, {**os.environ, "SPARK_CONF_DIR": folder})
        stages = [of_partitions(stage, given.partitions) for stage in stages_of(events)]
    stages = [stage for stage in stages if stage]
    rows = [row_of(number, stage) for number, stage in enumerate(stages)]
    alone = sum(median(map(seconds_of_task, stage)) for stage in stages)
    note = (
        f"reddit_posts x{given.copies}, T 9, guided, weighted, {given.partitions} partitions of "
        f"{each / 1e6:.1f} million tokens, local[2]: stages with a task for each partition, medians. One task of every "
        f"stage: {alone:.1f} s. The whole job {seconds:.0f} s. Largest resident memory of one Python worker: "
        f"{peak / 1e6:.0f} MB, {peak / each:.0f} bytes per token of its task."
    )
    BENCHMARK.table("Spark: one task of a large table", [[*COLUMNS], *rows], "spark_tasks", note)


def stages_of(events: Path) -> list[list[dict[str, Any]]]:
    """Return the finished tasks of every stage, in order, from the event log."""
    found: dict[int, list[dict[str, Any]]] = {}
    for event in events_of(events):
        if event["Event"] == "SparkListenerTaskEnd":
            found.setdefault(event["Stage ID"], []).append(event)
    return [tasks for _, tasks in sorted(found.items())]


def of_partitions(stage: list[dict[str, Any]], partitions: int) -> list[dict[str, Any]]:
    """Return the longest tasks, one per partition, without tasks of public names, or no tasks if there are fewer."""
    return sorted(stage, key=seconds_of_task)[-partitions:] if len(stage) >= partitions else []


def seconds_of_task(task: dict[str, Any]) -> float:
    """Return the duration of a task in seconds."""
    info = task["Task Info"]
    return float(info["Finish Time"] - info["Launch Time"]) / 1000


def row_of(number: int, stage: list[dict[str, Any]]) -> list[object]:
    """Return the row of a stage."""
    took = [seconds_of_task(task) for task in stage]
    written = [task["Task Metrics"]["Shuffle Write Metrics"] for task in stage]
    fetched = [task["Task Metrics"]["Shuffle Read Metrics"] for task in stage]
    read = sum(each["Remote Bytes Read"] + each["Local Bytes Read"] for each in fetched) / len(stage) / 1e6
    sent = sum(each["Shuffle Bytes Written"] for each in written) / len(stage) / 1e6
    rows = sum(each["Shuffle Records Written"] for each in written) // len(stage)
    return [number, f"{median(took):.2f}", f"{max(took):.2f}", f"{read:.2f}", f"{sent:.2f}", rows]


if __name__ == "__main__":
    main()
