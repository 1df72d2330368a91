"""The format of numbers in the report. Bounds are never rounded in the wrong direction."""

from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_EVEN, Context
from math import erfc, exp, sqrt
from typing import Any

import numpy as np

from voxpop.privacy.decisions import selection_probability
from voxpop.privacy.numerics import least_whole, optimal_delta
from voxpop.privacy.trie.ballot import Ballot, discovery_rate


def whole(number: Any) -> str:
    """Return an integer with commas, or "never" for None."""
    return "never" if number is None else f"{int(number):,}"


def rows_of_type(plan: Mapping[str, Any], *types: str) -> list[Mapping[str, Any]]:
    """Return the rows of the passes of the given types, in the order of the plan."""
    return [row for row in plan["passes"] if row["pass"] in types]


def plain(number: Any, digits: int = 5) -> str:
    """Return a number with the given number of significant digits, or a dash for None."""
    if number is None:
        return "–"
    if isinstance(number, bool) or not isinstance(number, int | float):
        return str(number)
    if isinstance(number, int):
        return f"{number:,}"
    return f"{number:.{digits}g}"


def percent(share: float) -> str:
    """Return a share as a percentage."""
    rounded = Context(prec=3, rounding=ROUND_HALF_EVEN).create_decimal_from_float(100 * share)
    return f"{float(rounded):g} %"


def one_in(share: float) -> str:
    """Return a share as "1 in 10,000,000" if its inverse is an integer, or as a number otherwise."""
    inverse = 1 / share if share > 0 else 0.0
    return f"1 in {round(inverse):,}" if inverse and abs(inverse - round(inverse)) < 1e-6 * inverse else f"{share:g}"


Chance = Callable[[int], float]
"""A function from the number of users of an item to the probability that the item is released."""

_MOST_USERS = 10**12
_POINTS = 48
LOWEST, HIGHEST = 0.002, 0.998


def threshold_chance(numbers: Mapping[str, Any], share: float) -> Chance:
    """Return the probability of release if weight plus noise must reach a threshold.

    Args:
        numbers: The round, with `noise`, `scale`, `threshold` and `cutoff`.
        share: The weight that each user adds.
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
    """Return the probability of release by optimal selection, with one item per user and `few` users ignored."""
    exact = optimal_delta(epsilon, delta)
    return lambda holders: float(selection_probability(epsilon, exact, np.array([max(0, holders - few)]))[0][0])


def voting_chance(votes: Mapping[str, Any]) -> Chance:
    """Return the probability that heavy hitters find a word of full length that shares no prefix with other words."""
    ballot = Ballot(votes["rate"], votes["theta"], votes["again"], votes["further"])
    return lambda holders: discovery_rate(holders, ballot, votes["rounds"])


def users_for(chance: Chance, probability: float) -> int | None:
    """Return the smallest number of users with this probability of release, or None if there is no such number."""
    return least_whole(lambda holders: chance(holders) >= probability, 0, 1, _MOST_USERS)


def curve(chance: Chance) -> list[tuple[int, float]]:
    """Return points of the curve of a probability over the range in which it increases from about 0 to about 1."""
    first, last = users_for(chance, LOWEST), users_for(chance, HIGHEST)
    if first is None or last is None:
        return []
    first = max(1, first - 1)
    places = sorted({round(first + (last - first) * step / (_POINTS - 1)) for step in range(_POINTS)})
    return [(holders, round(chance(holders), 5)) for holders in places]
