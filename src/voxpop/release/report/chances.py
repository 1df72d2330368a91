"""How likely something that so many users hold is released, from the numbers that a plan states."""

from collections.abc import Callable, Mapping
from math import erfc, exp, sqrt
from typing import Any

from voxpop.privacy.search import least_whole

Chance = Callable[[int], float]
"""From a number of holders to the probability that what they hold is released."""

MOST_USERS = 10**12
POINTS = 48
LOWEST, HIGHEST = 0.002, 0.998
EVEN = ("weighted", "l1-descent", "l2-descent")


def share_of(weighting: Any, noise: str, limit: int, items: int) -> float | None:
    """Return the weight that one user gives to each of `items` equally rare items, at most `limit` of them.

    Args:
        weighting: as the plan names it.
        noise: "gaussian" or "laplace", which decides the norm.
        limit: of the plan.
        items: 1 to `limit`.

    Returns:
        The weight, or None for a weighting that is not one of ours.
    """
    power = 1.0 if noise == "laplace" else 0.5
    if weighting == "count":
        return float(limit**-power)
    return float(items**-power) if weighting in EVEN else None


def threshold_chance(numbers: Mapping[str, Any], share: float) -> Chance:
    """Return the chance where weight plus noise must reach a threshold.

    Args:
        numbers: `noise`, `scale`, `threshold` and `cutoff` of a round.
        share: weight that each holder gives.
    """
    cutoff = float("inf") if numbers["cutoff"] is None else float(numbers["cutoff"])
    scale, threshold, laplace = float(numbers["scale"]), float(numbers["threshold"]), numbers["noise"] == "laplace"

    def chance(holders: int) -> float:
        missing = (threshold - min(holders * share, cutoff)) / scale
        if laplace:
            tail = exp(-abs(missing)) / 2
            return tail if missing > 0 else 1 - tail
        return erfc(missing / sqrt(2)) / 2

    return chance


def optimal_chance(epsilon: float, delta: float, few: int = 0) -> Chance:
    """Return the chance under optimal selection, where each user holds one item, and so many users do not count."""
    import numpy as np

    from voxpop.privacy.optimal import selection_probability
    from voxpop.privacy.slack import optimal_delta

    exact = optimal_delta(epsilon, delta)
    return lambda holders: float(selection_probability(epsilon, exact, np.array([max(0, holders - few)]))[0][0])


def voting_chance(plan: Mapping[str, Any]) -> Chance:
    """Return the chance that heavy hitters of a plan find a word of full length that shares no prefix."""
    from voxpop.privacy.trie.ballot import Ballot
    from voxpop.privacy.trie.discovery import discovery_rate

    ballot = Ballot(plan["sampling_rate"], plan["theta"], plan["again"], plan["further"])
    return lambda holders: discovery_rate(holders, ballot, plan["rounds"])


def users_for(chance: Chance, probability: float) -> int | None:
    """Return the least number of holders who reach a probability, or None where none do."""
    return least_whole(lambda holders: chance(holders) >= probability, 0, 1, MOST_USERS)


def curve(chance: Chance) -> list[tuple[int, float]]:
    """Return points of a chance from where it leaves 0 to where it comes near 1."""
    first, last = users_for(chance, LOWEST), users_for(chance, HIGHEST)
    if first is None or last is None:
        return []
    first = max(0, first - 1)
    places = sorted({round(first + (last - first) * step / (POINTS - 1)) for step in range(POINTS)})
    return [(holders, round(chance(holders), 5)) for holders in places]
