"""How many users must hold an item before adaptive rounds are likely to release it: no data needed."""

from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from voxpop.arrays import Floats
from voxpop.rounds.holders import COMMON

if TYPE_CHECKING:
    from voxpop.rounds.adaptive.numbers import Rounds


MOST_USERS = 10**12
STEPS = 40
"""Steps of the grid in a standard deviation of all the noise."""
REACH = 8.0


def users_needed(plan: "Rounds", probability: float, items: int) -> int | None:
    """Return the least number of holders who reach the probability, or None; see `AdaptivePlan.holders`."""
    low, high = 0, 1
    while released(plan, high, items) < probability:
        low, high = high, high * 2
        if high > MOST_USERS:
            return None
    # Invariant: `high` holders are enough, `low` are not.
    while high - low > 1:
        middle = (low + high) // 2
        reached = released(plan, middle, items) >= probability
        low, high = (low, middle) if reached else (middle, high)
    return high


def missing(plan: "Rounds", items: int) -> float:
    """Return how likely an item of ten times the users needed is not released; see `AdaptivePlan.missing`."""
    users = users_needed(plan, 0.5, items)
    return 1.0 if users is None else _miss_probability(plan, COMMON * users, items)


def released(plan: "Rounds", users: int, items: int) -> float:
    """Return how likely an item of so many users, who hold `items` such items each, is released in some round."""
    return 1 - _miss_probability(plan, users, items)


@lru_cache(maxsize=1024)  # the searches for several probabilities ask for many of the same numbers
def _miss_probability(plan: "Rounds", users: int, items: int) -> float:
    """Return how likely an item of so many users is released in no round."""
    setting, opening = plan.opening.shares.setting, plan.opening
    share = opening.shares.weighting_rule.share(min(items, setting.limit), setting)
    # The mean weight, where about limit / items of the holders choose it.
    weight = users * min(1.0, setting.limit / items) * share
    # P(weight + noise < threshold), the weight cut where it stops rising.
    not_first = float(ndtr((opening.threshold - min(weight, opening.cutoff or weight)) / opening.scale))
    means = np.array([min(weight, each.cutoff or weight) / each.sigma for each in plan.rounds])
    return not_first * _never(plan, means)


def _never(plan: "Rounds", means: Floats) -> float:
    """Return how likely the evidence never reaches its threshold.

    The law of the noise in it goes forwards on a grid; weights move the levels that it is compared with.
    """
    rules = plan.evidence
    step, points, kernels = _grid(rules.parts)
    # (rounds,), the mean of the evidence after each.
    weights = np.cumsum(np.array(rules.parts) * means)
    # Probability by grid point of the noise in the evidence, of items still undecided.
    law, missed = np.zeros(points.size), 0.0
    law[points.size // 2] = 1.0
    for number, kernel in enumerate(kernels):
        # The law of the sum of noises so far: one convolution a round.
        law = np.convolve(law, kernel, "same")
        spread = float(rules.spreads[number])
        threshold = rules.thresholds[number] * spread - weights[number]
        floor = rules.floors[number] * spread - weights[number] if number < len(rules.floors) else threshold
        # Part of each grid cell that lies below the floor.
        below = np.clip((min(floor, threshold) - points) / step + 0.5, 0.0, 1.0)
        # Dropped for good.
        missed += float(law @ below)
        # What reaches the threshold is released, and so no longer followed.
        law = law * np.clip((threshold - points) / step + 0.5, 0.0, 1.0) * (1.0 - below)
    return min(1.0, missed)


@lru_cache(maxsize=8)
def _grid(parts: tuple[float, ...]) -> tuple[float, Floats, tuple[Floats, ...]]:
    """Return a step, the points of a grid around 0, and by round the chances to move by so many of them."""
    spread = float(np.sqrt(np.sum(np.square(parts))))
    step = spread / STEPS
    # Eight standard deviations of all the noise to either side.
    half = round(REACH * STEPS)
    points = step * np.arange(-half, half + 1)
    reaches = [ceil(REACH * part / step) for part in parts]
    edges = [step * (np.arange(-reach, reach + 2) - 0.5) / part for reach, part in zip(reaches, parts, strict=True)]
    return step, np.asarray(points, np.float64), tuple(np.diff(ndtr(each)) for each in edges)
