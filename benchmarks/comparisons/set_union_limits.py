"""Set union by limit and budget, for the options of Voxpop, the default, and GW, on half a million posts.

    python -m benchmarks.comparisons.set_union_limits

Cells that the same code has measured are cached in `out/cells`. GW reads exact private numbers, which is permitted only
for research on public data.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import voxpop as vp
from benchmarks.baselines import private_greedy, private_released
from benchmarks.comparisons.set_union_field import pairs, poured
from benchmarks.support.benchmark import SET_UNION, Benchmark
from benchmarks.support.cells import Cells
from benchmarks.support.common import BUDGET, posts
from voxpop.privacy.secret import Secret

BENCHMARK = Benchmark(__file__, ("set_union_limits",), SET_UNION, minutes=10, seeds="GW 1; ours none")

NONE = 2_000
"""The limit that represents no limit, because none of the half million users has more items."""
LIMITS = (1, 2, 5, 10, 30, 100, 300, NONE)
BUDGETS = {"3, e^-10": BUDGET, "1, 1e-5": vp.Budget(1, 1e-5), "0.5, 1e-7": vp.Budget(0.5, 1e-7)}
OPTIONS: dict[str, Callable[[int], Any]] = {
    "count": lambda limit: vp.papers.SetUnion(limit, "count", accounting="joint"),
    "weighted": lambda limit: vp.papers.SetUnion(limit, "weighted", accounting="joint"),
    "policy-gaussian": lambda limit: vp.papers.SetUnion(limit, "policy-gaussian", 5.0, "joint"),
    "default": vp.Items,
}
GW = "GW (2022), as published"
SOUND = "GW, made sound by the limit"
Lines = dict[str, list[list[float]]]
"""The number of words and the missing mass by option and by limit."""
RUNS = {"default": 5}
"""The number of runs of a cell. It is 1 for other options, because the deviation of one run is below half a percent
from 10,000 items on."""


def main() -> None:
    """Measure and write the results."""
    cells = BENCHMARK.cells()
    write({label: measured(cells, label, budget) for label, budget in BUDGETS.items()})


def write(found: dict[str, Lines]) -> None:
    """Write the number of words and the missing mass at all budgets."""
    rows: list[list[object]] = [["", *(named(limit) for limit in LIMITS)]]
    for label, lines in found.items():
        rows.append([f"words released at ({label})", *("" for _ in LIMITS)])
        rows += [[name, *(f"{words:,.0f}" for words, _ in line)] for name, line in lines.items()]
        rows.append(
            ["default, relative to the best of our other weightings", *(f"{ratio:.3f}" for ratio in ratios(lines))]
        )
        rows.append([f"missing mass, percent, at ({label})", *("" for _ in LIMITS)])
        rows += [[name, *(f"{100 * missing:.2f}" for _, missing in line)] for name, line in lines.items()]
    note = f"Words of reddit_posts. The default: means of {RUNS['default']} runs; all other rows are one run. No "
    note += "limit means "
    note += f"{NONE:,}. GW has no limit, so its columns are the same run; without a limit, it is not "
    note += "(epsilon, delta)-private (docs/privacy/errata.md). Missing mass: the share of all pairs of user and word "
    note += "whose word is not released."
    BENCHMARK.table("Set union by limit and budget", rows, "set_union_limits", note)


def measured(cells: Cells, label: str, budget: vp.Budget) -> Lines:
    """Return the number of words and the missing mass of each option, by limit."""

    def greedy(limit: int | None) -> list[float]:
        released = private_greedy(poured("own"), budget, Secret.from_seed(1), limit=limit)
        return [float(released.sum()), pairs("").missing_mass(released)]

    def option(name: str, limit: int) -> list[float]:
        plan, found = OPTIONS[name](limit).plan(budget), []
        for _ in range(RUNS.get(name, 1)):
            released = private_released(posts(), plan.release(posts()))
            found.append([float(released.sum()), pairs("").missing_mass(released)])
        return np.mean(found, axis=0).tolist()

    lines = {
        name: [cells.get([name, label, named(limit)], partial(option, name, limit)) for limit in LIMITS]
        for name in OPTIONS
    }
    lines[GW] = [cells.get([GW, label], partial(greedy, None))] * len(LIMITS)
    lines[SOUND] = [cells.get([SOUND, label, named(limit)], partial(greedy, limit)) for limit in LIMITS]
    return lines


def named(limit: int) -> str:
    """Return a limit as the text of its cell."""
    return "no limit" if limit == NONE else f"limit {limit}"


def ratios(lines: Lines) -> list[float]:
    """Return the words of the default divided by the words of the best of Voxpop's other options, by limit."""
    others = [line for name, line in lines.items() if name not in ("default", GW, SOUND)]
    best = [max(words for words, _ in column) for column in zip(*others, strict=True)]
    return [words / other for (words, _), other in zip(lines["default"], best, strict=True)]


if __name__ == "__main__":
    main()
