"""The text of the plan of a series and the content of its report, from public numbers."""

from collections.abc import Mapping
from math import ceil
from typing import Any

import numpy as np

from voxpop.mechanisms.rounds.listed import known_series_note
from voxpop.mechanisms.rounds.users_needed import level_at_a_tenth
from voxpop.mechanisms.series.plan import NEVER
from voxpop.privacy.individual import WHOLE
from voxpop.privacy.upcrossing import spreads_of
from voxpop.release.report.page import Grid, Story


def _nights(plan: Mapping[str, Any]) -> Grid:
    """Return the table of selected nights."""
    nights, spreads = plan["nights"], spreads_of(*(plan[name] for name in ("factors", "sigmas", "cell", "bits")))
    spread = np.sqrt(np.cumsum(np.square(spreads)))
    rows = []
    for night in sorted({1, *(ceil(nights * part / 4) for part in range(1, 5))}):
        at = night - 1
        rest = "-" if plan["rests"][at] == NEVER else f"{plan['rests'][at] / spread[at]:.3g}"
        levels = [each[at] / spread[at] for each in (plan["thresholds"], *_usual(plan))]
        part, sigma = plan["costs"][at] / WHOLE, plan["sigmas"][at]
        rows.append([str(night), f"{part:.3g}", f"{sigma:.4g}", *(f"{level:.4g}" for level in levels), rest])
    note = "One guarantee covers all nights. Thresholds are in standard deviations of the score."
    head = ["night", "share", "sigma", "threshold", *(["known"] if "known" in plan else []), "rests below"]
    return Grid("Nights", head, rows, note + known_series_note(plan))


def _usual(plan: Mapping[str, Any]) -> list[list[int]]:
    """Return the scores at which listed items are released if a tenth of the list is, or an empty list without one."""
    if "known" not in plan:
        return []
    levels = plan["levels"]
    level = level_at_a_tenth(levels["tails"], levels["share"])
    return [[low + level * step for low, step in zip(levels["lowest"], levels["steps"], strict=True)]]


def describe(plan: Mapping[str, Any], guarantee: str = "") -> str:
    """Return the text of a plan from its public numbers."""
    head = f"Items over {plan['nights']:,} nights under one budget, at most {plan['pool']:,} items per user in all"
    return "\n".join([head, *filter(None, [guarantee]), "", *_nights(plan).lines()])


def story(plan: Mapping[str, Any]) -> Story:
    """Return the content of the report of a series."""
    return Story(
        words="union.html",
        noun=("item", "items"),
        title="released",
        kicker=f"Items over {plan['nights']:,} nights",
        proof="docs/privacy/series.md",
        values={
            "limit": plan["pool"],
            "chosen": False,
            "optimal": False,
            "rounds": plan["nights"],
            "listed": "known" in plan,
        },
        grids=[_nights(plan)],
    )
