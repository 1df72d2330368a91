"""Set union by limit and budget: every option of ours, what one gets by default, and GW, on half a million posts.

    python -m benchmarks.comparisons.set_union_limits

Cells that the same code has measured are kept in `out/cells`.
GW reads private truth here; for research on public data.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import voxpop as vp
from benchmarks.baselines import private_greedy
from benchmarks.comparisons.set_union_field import poured
from benchmarks.support.benchmark import SET_UNION, Benchmark
from benchmarks.support.cells import Cells
from benchmarks.support.common import BUDGET, posts
from voxpop.privacy.secret import Secret

BENCHMARK = Benchmark(__file__, ("set_union_limits",), SET_UNION, minutes=10, seeds="GW 1; ours none")

NONE = 2_000
"""What stands for no limit: nobody of the half million holds more."""
LIMITS = (1, 2, 5, 10, 30, 100, 300, NONE)
BUDGETS = {"3, e^-10": BUDGET, "1, 1e-5": vp.Budget(1, 1e-5), "0.5, 1e-7": vp.Budget(0.5, 1e-7)}
OPTIONS: dict[str, Callable[[int], Any]] = {
    "count": lambda limit: vp.SetUnion(limit, weighting=vp.weightings.Count()),
    "weighted": lambda limit: vp.SetUnion(limit, weighting=vp.weightings.Weighted()),
    "policy-gaussian": lambda limit: vp.SetUnion(limit, weighting=vp.weightings.PolicyGaussian()),
    "default": vp.SetUnion,
}
GW = "GW (2022), as published"
SOUND = "GW, made sound by the limit"
RUNS = {"default": 5}
"""Runs of a cell; 1 where not listed: the deviation of one is below half a percent from 10,000 items on."""


def main() -> None:
    """Measure and write."""
    cells = BENCHMARK.cells()
    found: dict[str, dict[str, list[float]]] = {}
    for label, budget in BUDGETS.items():
        found[label] = measured(cells, label, budget)
        write(found)


def write(found: dict[str, dict[str, list[float]]]) -> None:
    """Write the budgets that are complete."""
    rows: list[list[object]] = [["", *(named(limit) for limit in LIMITS)]]
    for label, lines in found.items():
        rows.append([f"words released at ({label})", *("" for _ in LIMITS)])
        rows += [[name, *(f"{each:,.0f}" for each in line)] for name, line in lines.items()]
        rows.append(["default, over the best of the others of ours", *(f"{ratio:.3f}" for ratio in ratios(lines))])
    note = f"Words of reddit_posts. The default: means of {RUNS['default']} runs, all else one. No limit stands for "
    note += f"{NONE:,}. GW has no limit, the same run stands in every column; without one it is not "
    note += "(epsilon, delta)-private (docs/privacy/errata.md)."
    BENCHMARK.table("Set union by limit and budget", rows, "set_union_limits", note)


def measured(cells: Cells, label: str, budget: vp.Budget) -> dict[str, list[float]]:
    """Return what each option releases by limit."""
    lines = {name: [counted(cells, name, label, budget, limit) for limit in LIMITS] for name in OPTIONS}
    greedy = cells.get(
        [GW, label, "no limit"], lambda: [private_greedy(poured("own"), budget, Secret.from_seed(1)).sum()]
    )
    sound = [
        cells.get(
            [SOUND, label, named(limit)],
            lambda limit=limit: [private_greedy(poured("own"), budget, Secret.from_seed(1), limit=limit).sum()],
        )[0]
        for limit in LIMITS
    ]
    return {**lines, GW: [greedy[0]] * len(LIMITS), SOUND: sound}


def counted(cells: Cells, name: str, label: str, budget: vp.Budget, limit: int) -> float:
    """Return the mean of what one option releases."""
    mechanism = OPTIONS[name]

    def measure() -> list[float]:
        plan = mechanism(limit).plan(budget)
        return [len(plan.release(posts())) for _ in range(RUNS.get(name, 1))]

    return float(np.mean(cells.get([name, label, named(limit)], measure)))


def named(limit: int) -> str:
    """Return a limit as the table shows it."""
    return "no limit" if limit == NONE else f"limit {limit}"


def ratios(lines: dict[str, list[float]]) -> list[float]:
    """Return the default over the best of our other options, by limit."""
    others = [line for name, line in lines.items() if name not in ("default", GW, SOUND)]
    best = [max(column) for column in zip(*others, strict=True)]
    return [ours / other for ours, other in zip(lines["default"], best, strict=True)]


if __name__ == "__main__":
    main()
