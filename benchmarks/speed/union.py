"""Items of half a million posts, with the default and the classic policy, for the release step and the whole job.

    python -m benchmarks.speed.union

The release step begins with a corpus in memory. The whole job is a separate process, from its start to a saved release.
Both mechanisms run in turn. Processor seconds include all threads.
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

BENCHMARK = Benchmark(__file__, ("speed_union",), (*SET_UNION, "reading", "release"), minutes=1.5)

RUNS = {"release step": 9, "whole job": 5}
CLASSIC, DEFAULT = "classic policy (l2-descent)", "default (adaptive rounds)"
MECHANISMS = {CLASSIC: 'vp.papers.SetUnion(100, "policy-gaussian", 5.0, "joint")', DEFAULT: "vp.Items(100)"}
"""The mechanisms, as Python source code."""
PROGRAM = """
import sys
import voxpop as vp

data = vp.read(sys.argv[1], user="user", text="text")
{}.release(data, vp.Budget({}, {})).save(sys.argv[2], overwrite=True)
"""
Times = tuple[float, float]
"""Wall-clock seconds and processor seconds."""


def main() -> None:
    """Measure, print and write the results."""
    with tempfile.TemporaryDirectory() as folder:
        steps = {name: release_step(made) for name, made in MECHANISMS.items()}
        jobs = {name: whole_job(made, Path(folder) / "words") for name, made in MECHANISMS.items()}
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
    note = f"Medians of {RUNS['release step']} releases and {RUNS['whole job']} whole jobs each, alternating, at "
    note += "epsilon 3, delta e^-10, limit 100. A whole job is a process that reads reddit_posts.parquet, "
    note += "from its start to a saved release. The machine was busy with other work, so compare ratios."
    BENCHMARK.table("Set union: the default beside the classic policy", rows, "speed_union", note)


def in_turns(works: dict[str, Callable[[], Times]], runs: int) -> dict[str, Times]:
    """Return the median times of several tasks, after one round for warming up."""
    for work in works.values():
        work()
    times: dict[str, list[Times]] = {name: [] for name in works}
    for _ in range(runs):
        for name, work in works.items():
            times[name].append(work())
    return {
        name: (median(each[0] for each in taken), median(each[1] for each in taken)) for name, taken in times.items()
    }


def release_step(made: str) -> Callable[[], Times]:
    """Return a function that times one release from a corpus in memory."""
    plan, corpus = eval(made, {"vp": vp}).plan(BUDGET), posts()

    def timed() -> Times:
        wall, work = time.perf_counter(), time.process_time()
        plan.release(corpus)
        return time.perf_counter() - wall, time.process_time() - work

    return timed


def whole_job(made: str, folder: Path) -> Callable[[], Times]:
    """Return a function that times one process from its start to a saved release."""
    program = PROGRAM.format(made, BUDGET.epsilon, BUDGET.delta)
    call = [sys.executable, "-c", program, str(DATA / "reddit_posts.parquet"), str(folder)]

    def timed() -> Times:
        wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(call, check=True, stdout=subprocess.DEVNULL)
        taken, after = time.perf_counter() - wall, resource.getrusage(resource.RUSAGE_CHILDREN)
        return taken, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return timed


if __name__ == "__main__":
    main()
