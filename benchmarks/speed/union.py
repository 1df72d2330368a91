"""The release step of set union: the default beside the classic policy, half a million posts, encoded before.

    python -m benchmarks.speed.union

Times of both come in turns within one run; processor seconds count all threads.
"""

import time
from statistics import median

import voxpop as vp
from benchmarks.support.common import BUDGET, posts, table

RUNS = 15
PLANS = {"classic policy (l2-descent)": {"weighting": "l2-descent"}, "default (adaptive rounds)": {}}


def main() -> None:
    """Measure, print, write."""
    corpus = posts()
    plans = {name: vp.SetUnion(limit=100, **fields).plan(BUDGET) for name, fields in PLANS.items()}
    for plan in plans.values():
        plan.release(corpus)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in plans}
    for _ in range(RUNS):
        for name, plan in plans.items():
            times[name].append(timed(plan, corpus))
    medians = {name: [median(each) for each in zip(*both, strict=True)] for name, both in times.items()}
    first = next(iter(medians.values()))
    rows: list[list[object]] = [["words of half a million posts", "seconds", "ratio", "processor seconds", "ratio"]]
    for name, (wall, work) in medians.items():
        rows.append([name, f"{wall:.2f}", f"{wall / first[0]:.2f}", f"{work:.2f}", f"{work / first[1]:.2f}"])
    note = (
        f"Medians of {RUNS} releases each, in turns, at epsilon 3, delta e^-10, limit 100. The machine was busy with "
    )
    note += "other work, so seconds on the clock are too many; compare ratios."
    table("The release step of set union", rows, "speed_union", note)


def timed(plan: object, corpus: vp.Corpus) -> tuple[float, float]:
    """Return seconds on the clock and of processors that a release takes."""
    wall, work = time.perf_counter(), time.process_time()
    plan.release(corpus)  # type: ignore[attr-defined]
    return time.perf_counter() - wall, time.process_time() - work


if __name__ == "__main__":
    main()
