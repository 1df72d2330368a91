"""How many users must hold an item before adaptive rounds are likely to release it: no data needed."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from voxpop.union.holders import COMMON

if TYPE_CHECKING:
    from voxpop.union.adaptive.plan import AdaptivePlan

MOST_USERS = 10**12
POINTS = 601
REACH = 8.0


def users_needed(plan: "AdaptivePlan", probability: float, items: int) -> int | None:
    """Return the least number of holders who reach the probability, or None; see `AdaptivePlan.holders`."""
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


def missing(plan: "AdaptivePlan", items: int) -> float:
    """Return how likely an item of ten times the users needed is not released; see `AdaptivePlan.missing`."""
    users = users_needed(plan, 0.5, items)
    return 1.0 if users is None else _miss_probability(plan, COMMON * users, items)


def _release_probability(plan: "AdaptivePlan", users: int, items: int) -> float:
    """Return how likely an item of so many users is released in some round."""
    return 1 - _miss_probability(plan, users, items)


def _miss_probability(plan: "AdaptivePlan", users: int, items: int) -> float:
    """Return how likely an item of so many users is released in no round."""
    setting, opening = plan.opening.shares.setting, plan.opening
    share = opening.shares.sharing.share(min(items, setting.limit), setting)
    weight = users * min(1.0, setting.limit / items) * share
    not_first = float(ndtr((opening.threshold - min(weight, opening.cutoff or weight)) / opening.scale))
    means = np.array([min(weight, each.cutoff or weight) / each.sigma for each in plan.rounds])
    return not_first * _never(plan, means)


def _never(plan: "AdaptivePlan", means: NDArray[np.float64]) -> float:
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
