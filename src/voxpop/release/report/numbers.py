"""Numbers as the report writes them. Bounds are never rounded to the wrong side."""

from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_EVEN, Context
from math import erfc, exp, sqrt
from typing import Any

from voxpop.privacy.numerics import least_whole


def whole(number: Any) -> str:
    """Return a whole number with commas; "never" for None."""
    return "never" if number is None else f"{int(number):,}"


def plain(number: Any, digits: int = 5) -> str:
    """Return a number to that number of significant digits, a dash for None."""
    if number is None:
        return "–"
    if isinstance(number, bool) or not isinstance(number, int | float):
        return str(number)
    if isinstance(number, int):
        return f"{number:,}"
    return f"{number:.{digits}g}"


def percent(share: float) -> str:
    """Return a share in per cent."""
    rounded = Context(prec=3, rounding=ROUND_HALF_EVEN).create_decimal_from_float(100 * share)
    return f"{float(rounded):g} %"


def one_in(share: float) -> str:
    """Return a small share as "1 in 10,000,000" where it is one."""
    inverse = 1 / share if share > 0 else 0.0
    return f"1 in {round(inverse):,}" if inverse and abs(inverse - round(inverse)) < 1e-6 * inverse else f"{share:g}"


Chance = Callable[[int], float]
"""From a number of holders to the probability that their item is released."""

_MOST_USERS = 10**12
_POINTS = 48
LOWEST, HIGHEST = 0.002, 0.998


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

    from voxpop.privacy.decisions import selection_probability
    from voxpop.privacy.numerics import optimal_delta

    exact = optimal_delta(epsilon, delta)
    return lambda holders: float(selection_probability(epsilon, exact, np.array([max(0, holders - few)]))[0][0])


def voting_chance(plan: Mapping[str, Any]) -> Chance:
    """Return the chance that heavy hitters of a plan find a word of full length that shares no prefix."""
    from voxpop.privacy.trie.ballot import Ballot, discovery_rate

    ballot = Ballot(plan["sampling_rate"], plan["theta"], plan["again"], plan["further"])
    return lambda holders: discovery_rate(holders, ballot, plan["rounds"])


def users_for(chance: Chance, probability: float) -> int | None:
    """Return the least number of holders who reach a probability, or None where none do."""
    return least_whole(lambda holders: chance(holders) >= probability, 0, 1, _MOST_USERS)


def curve(chance: Chance) -> list[tuple[int, float]]:
    """Return points of a chance from where it leaves 0 to where it comes near 1."""
    first, last = users_for(chance, LOWEST), users_for(chance, HIGHEST)
    if first is None or last is None:
        return []
    first = max(1, first - 1)
    places = sorted({round(first + (last - first) * step / (_POINTS - 1)) for step in range(_POINTS)})
    return [(holders, round(chance(holders), 5)) for holders in places]
