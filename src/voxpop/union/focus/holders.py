"""How many users must hold an item before focused rounds are likely to release it: no data needed."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

if TYPE_CHECKING:
    from voxpop.union.focus.plan import FocusPlan

MOST_USERS = 10**12
POINTS = 601
REACH = 8.0


def users_needed(plan: "FocusPlan", probability: float, items: int) -> int | None:
    """Return the least number of holders who reach the probability, or None; see `FocusPlan.holders`."""
    low, high = 0, 1
    while _release_probability(plan, high, items) < probability:
        low, high = high, high * 2
        if high > MOST_USERS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        reached = _release_probability(plan, middle, items) >= probability
        low, high = (low, middle) if reached else (middle, high)
    return high


def _release_probability(plan: "FocusPlan", users: int, items: int) -> float:
    """Return how likely an item of so many users is released in some round."""
    setting = plan.opening.shares.setting
    share = plan.opening.shares.sharing.share(min(items, setting.limit), setting)
    weight = users * min(1.0, setting.limit / items) * share
    opening = plan.opening
    first = float(ndtr((min(weight, opening.cutoff or weight) - opening.threshold) / opening.scale))
    means = np.array([min(weight, each.cutoff or weight) / each.sigma for each in plan.rounds])
    return 1 - (1 - first) * _never(plan, means)


def _never(plan: "FocusPlan", means: NDArray[np.float64]) -> float:
    """Return how likely the evidence never reaches its threshold, by following its density on a grid."""
    rules = plan.evidence
    spreads, shifts = rules.spreads, np.array(rules.parts) * means
    reach = float(np.cumsum(shifts)[-1]) + REACH * float(spreads[-1])
    edges = np.linspace(-REACH * float(spreads[-1]), reach, POINTS)
    points = (edges[1:] + edges[:-1]) / 2
    density, missed = np.zeros(points.size), 0.0
    density[np.searchsorted(points, 0.0)] = 1.0
    for number, part in enumerate(rules.parts):
        centres = points + shifts[number]
        moved = np.diff(ndtr((edges[None, :] - centres[:, None]) / part), axis=1)
        density = density @ moved
        floor = rules.floors[number] if number < len(rules.floors) else rules.thresholds[number]
        dropped = points < floor * spreads[number]
        missed += float(density[dropped].sum())
        density[dropped | (points >= rules.thresholds[number] * spreads[number])] = 0.0
    return min(1.0, missed)
