"""Items of half a million posts, for the default and the classic policy, by the release step and the whole job.

    python -m benchmarks.speed.union

The release step begins with a corpus in memory. The whole job is a separate process, from the command line to a saved
release. Both mechanisms run in turn; processor seconds count all threads.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import voxpop as vp
from benchmarks.support.benchmark import SET_UNION, Benchmark
from benchmarks.support.common import BUDGET, DATA, posts
from voxpop.privacy.weightings.builtin import WEIGHTINGS

BENCHMARK = Benchmark(__file__, ("speed_union",), (*SET_UNION, "reading", "release"), minutes=1.5)

RUNS = {"release step": 9, "whole job": 5}
CLASSIC, DEFAULT = "classic policy (l2-descent)", "default (adaptive rounds)"
MECHANISMS = {CLASSIC: "policy-gaussian", DEFAULT: "adaptive"}
"""The mechanisms, with their names on the command line."""
COMMAND = "from voxpop.cli import console; console()"
Times = tuple[float, float]
"""Wall-clock seconds and processor seconds."""


def main() -> None:
    """Measure, print and write the results."""
    with tempfile.TemporaryDirectory() as folder:
        steps = {name: release_step(weighting) for name, weighting in MECHANISMS.items()}
        jobs = {name: whole_job(weighting, Path(folder)) for name, weighting in MECHANISMS.items()}
        measured = {
            "release step": in_turns(steps, RUNS["release step"]),
            "whole job": in_turns(jobs, RUNS["whole job"]),
        }
    rows: list[list[object]] = [["words of half a million posts", "seconds", "ratio", "processor seconds", "ratio"]]
    for what, medians in measured.items():
        first = medians[CLASSIC]
        for name, (wall, work) in medians.items():
            ratios = f"{wall / first[0]:.2f}", f"{work / first[1]:.2f}"
            rows.append([f"{what}, {name}", f"{wall:.2f}", ratios[0], f"{work:.2f}", ratios[1]])
    note = (
        f"Medians of {RUNS['release step']} releases and {RUNS['whole job']} whole jobs each, in turns, at epsilon 3, "
    )
    note += "delta e^-10, limit 100. A whole job is `voxpop items reddit_posts.parquet --text text ...`, a process "
    note += "from its start to a saved release. The machine was busy with other work, so compare ratios."
    BENCHMARK.table("Set union: the default beside the classic policy", rows, "speed_union", note)


def in_turns(works: dict[str, Callable[[], Times]], runs: int) -> dict[str, Times]:
    """Return the median times of some works, after one round for warming up."""
    for work in works.values():
        work()
    times: dict[str, list[Times]] = {name: [] for name in works}
    for _ in range(runs):
        for name, work in works.items():
            times[name].append(work())
    return {
        name: (median(each[0] for each in taken), median(each[1] for each in taken)) for name, taken in times.items()
    }


def release_step(weighting: str) -> Callable[[], Times]:
    """Return a function that times one release from a corpus in memory."""
    plan, corpus = vp.Items(100, weighting=WEIGHTINGS.get(weighting, weighting)).plan(BUDGET), posts()

    def timed() -> Times:
        wall, work = time.perf_counter(), time.process_time()
        plan.release(corpus)
        return time.perf_counter() - wall, time.process_time() - work

    return timed


def whole_job(weighting: str, folder: Path) -> Callable[[], Times]:
    """Return a function that times one process from the command line to a saved release."""
    call = [
        sys.executable,
        "-c",
        COMMAND,
        "items",
        str(DATA / "reddit_posts.parquet"),
        "--user",
        "user",
        "--text",
        "text",
    ]
    call += ["--epsilon", "3", "--delta", str(BUDGET.delta), "--max-items-per-user", "100", "--weighting", weighting]
    call += ["--overwrite", "-o", str(folder / f"words-{weighting}")]

    def timed() -> Times:
        wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(call, check=True, stdout=subprocess.DEVNULL)
        taken, after = time.perf_counter() - wall, resource.getrusage(resource.RUSAGE_CHILDREN)
        return taken, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return timed


if __name__ == "__main__":
    main()
