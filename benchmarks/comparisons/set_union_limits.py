"""Set union by limit and budget: every option of ours, what one gets by default, and GW, on half a million posts.

    python -m benchmarks.comparisons.set_union_limits [again WORD ...]

Cells that were measured are kept; `again` and names measure these anew: `again default` after a change of the default.
GW reads private truth here; for research on public data.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import voxpop as vp
from benchmarks.baselines import private_greedy
from benchmarks.comparisons.set_union_field import poured
from benchmarks.support.cells import Cells
from benchmarks.support.common import BUDGET, RESULTS, posts, table
from voxpop.privacy.secret import Secret

NONE = 2_000
"""What stands for no limit: nobody of the half million holds more."""
LIMITS = (1, 2, 5, 10, 30, 100, 300, NONE)
MOST_SET_ONLY = 1_000
BUDGETS = {"3, e^-10": BUDGET, "1, 1e-5": vp.Budget(1, 1e-5), "0.5, 1e-7": vp.Budget(0.5, 1e-7)}
OPTIONS: dict[str, Callable[[int], Any] | None] = {
    "count": lambda limit: vp.SetUnion(limit, weighting=vp.weightings.Count()),
    "weighted": lambda limit: vp.SetUnion(limit, weighting=vp.weightings.Weighted()),
    "policy-gaussian": lambda limit: vp.SetUnion(limit, weighting=vp.weightings.PolicyGaussian()),
    "count, 3 rounds": None,
    "weighted, 3 rounds": None,
    "l2-descent, 3 rounds": None,
    "weighted, set-only": None,
    "weighted, set-only, 3 rounds": None,
    "default": vp.SetUnion,
}
"""None: measured at version a84b468 and kept; the code is deleted, because the default releases more everywhere."""
GW = "GW (2022), as published"
SOUND = "GW, made sound by the limit"
RUNS = {"default": 5}
"""Runs of a cell; 1 where not listed: the deviation of one is below half a percent from 10,000 items on."""


def main(again: list[str]) -> None:
    """Measure, draw, write.

    Args:
        again: words; cells whose names have one of them are measured anew.
    """
    cells = Cells("set_union_limits", again)
    found: dict[str, dict[str, list[float | None]]] = {}
    for label, budget in BUDGETS.items():
        found[label] = measured(cells, label, budget)
        write(found)
        draw(found)


def write(found: dict[str, dict[str, list[float | None]]]) -> None:
    """Write the budgets that are complete."""
    rows: list[list[object]] = [["", *(named(limit) for limit in LIMITS)]]
    for label, lines in found.items():
        rows.append([f"words released at ({label})", *("" for _ in LIMITS)])
        rows += [[name, *("–" if each is None else f"{each:,.0f}" for each in line)] for name, line in lines.items()]
        rows.append(["default, over the best of the others of ours", *(f"{ratio:.3f}" for ratio in ratios(lines))])
    note = f"Words of reddit_posts. The default: means of {RUNS['default']} runs, all else one. No limit stands for "
    note += f"{NONE:,}; set-only accounting takes limits up to {MOST_SET_ONLY:,} (–). GW has no limit, the same run "
    note += "stands in every column; without one it is not (epsilon, delta)-private (docs/privacy/errata.md)."
    table("Set union by limit and budget", rows, "set_union_limits", note)


def measured(cells: Cells, label: str, budget: vp.Budget) -> dict[str, list[float | None]]:
    """Return what each option releases by limit, None where it refuses."""
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


def counted(cells: Cells, name: str, label: str, budget: vp.Budget, limit: int) -> float | None:
    """Return the mean of what one option releases, None where it refuses."""
    mechanism = OPTIONS[name]
    if "set-only" in name and limit > MOST_SET_ONLY:
        return None

    def measure() -> list[float]:
        if mechanism is None:
            raise SystemExit(f"{name} was measured at version a84b468, and its code is deleted")
        plan = mechanism(limit).plan(budget)
        return [len(plan.release(posts())) for _ in range(RUNS.get(name, 1))]

    return float(np.mean(cells.get([name, label, named(limit)], measure)))


def named(limit: int) -> str:
    """Return a limit as the table shows it."""
    return "no limit" if limit == NONE else f"limit {limit}"


def ratios(lines: dict[str, list[float | None]]) -> list[float]:
    """Return the default over the best of our other options, by limit."""
    others = [line for name, line in lines.items() if name not in ("default", GW, SOUND)]
    best = [max(each for each in column if each is not None) for column in zip(*others, strict=True)]
    return [ours / other for ours, other in zip(lines["default"], best, strict=True) if ours is not None]


def draw(found: dict[str, dict[str, list[float | None]]]) -> None:
    """Draw one picture a budget, side by side."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, plots = plt.subplots(1, len(found), figsize=(5 * len(found), 5), constrained_layout=True, squeeze=False)
    for plot, (label, lines) in zip(plots[0], found.items(), strict=True):
        for name, line in lines.items():
            style = {"default": "k-o", GW: "k:", SOUND: "k--"}.get(name, "-")
            width = 2.5 if name == "default" else 1.2
            plot.plot(LIMITS, [np.nan if each is None else each for each in line], style, lw=width, ms=4, label=name)
        plot.set_xscale("log")
        plot.set_xticks(LIMITS, [named(limit).removeprefix("limit ").removesuffix(" limit") for limit in LIMITS])
        plot.minorticks_off()
        plot.set_xlabel("limit")
        plot.set_title(f"words released at ({label})")
        plot.set_ylim(bottom=0)
        plot.grid(alpha=0.3)
    plots[0, 0].legend(fontsize=8)
    figure.savefig(RESULTS / "set_union_limits.png", dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    main(sys.argv[2:] if sys.argv[1:2] == ["again"] else [])
