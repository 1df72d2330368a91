"""The optimal release rule when each user holds one item (Desfontaines, Voss, Gipson and Mandayam, 2022).

An item held by c users is released with probability pi(c), where pi(0) = 0 and

    pi(c + 1) = min(e^epsilon pi(c) + delta, 1 - e^-epsilon (1 - pi(c) - delta), 1).

No mechanism releases any item with a higher probability. The first branch holds up to the turn, the second up to the
top, above which the probability is 1. The lower branch is computed from 0 upwards and the upper one from the top
downwards, so that both small probabilities and small misses keep their relative accuracy.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxpop.errors import BudgetError
from voxpop.kernels.arrays import Floats, Int64s
from voxpop.privacy.budget import Budget
from voxpop.privacy.precise import context, number


@dataclass(frozen=True, slots=True)
class _Curve:
    turn: int  # the last count on the lower branch
    top: int  # the last count that may be missed
    log_base: float  # of delta / (e^epsilon - 1)
    last: float  # the miss at the top is base (e^last - 1)


def selection_probability(epsilon: float, delta: float, counts: Int64s) -> tuple[Floats, Floats]:
    """Return the probabilities that an item is released, and that it is not.

    Args:
        epsilon: More than 0.
        delta: More than 0, less than 1.
        counts: The number of users who hold each item, at least 0.

    Returns:
        The probabilities and their complements; the smaller of the two has a relative error below 1e-12.

    Raises:
        BudgetError: epsilon or delta is out of range.

    Example:
        >>> released, missed = selection_probability(1.0, 1e-5, np.array([0, 1, 11, 12, 40]))
        >>> released.round(6).tolist(), missed.tolist()[-1]
        ([0.0, 1e-05, 0.348448, 0.760311, 1.0], 0.0)
    """
    curve = _curve(epsilon, delta)
    counts = np.asarray(counts, dtype=np.int64)
    # Up to the turn pi(c) = base (e^(c epsilon) - 1), base = delta / (e^epsilon - 1); beyond it the miss 1 - pi(c) has
    # the same form, counted downwards from the top.
    rising = _grown(curve, np.clip(counts, 0, curve.turn) * epsilon)
    remaining = curve.top - np.clip(counts, curve.turn, curve.top)
    falling = np.where(counts > curve.top, 0.0, _grown(curve, remaining * epsilon + curve.last))
    lower = counts <= curve.turn
    return np.where(lower, rising, 1 - falling), np.where(lower, 1 - rising, falling)


def _grown(curve: _Curve, exponent: NDArray[np.floating[Any]]) -> Floats:
    """The product base (e^exponent - 1), even where a factor does not fit in a double."""
    with np.errstate(divide="ignore"):
        # e^(ln base + x + ln(1 - e^-x)) = base (e^x - 1).
        grown: Floats = np.exp(curve.log_base + exponent + np.log(-np.expm1(-exponent)))
    return grown


def exact_probability(epsilon: float, delta: float, count: int) -> Any:
    """The same probability in eighty digits.

    Args:
        epsilon: More than 0.
        delta: More than 0, less than 1.
        count: The number of users who hold the item.

    Returns:
        A high-precision number.

    Raises:
        BudgetError: epsilon or delta is out of range.

    Example:
        >>> float(exact_probability(1.0, 1e-5, 1))
        1e-05
    """
    curve = _curve(epsilon, delta)
    exact, base = number(epsilon), number(delta) / context.expm1(number(epsilon))
    if count <= curve.turn:
        return base * context.expm1(exact * max(count, 0))
    if count > curve.top:
        return number(1)
    # 1 - pi(turn + m) + base = e^(-m epsilon) (1 - pi(turn) + base): the second branch, solved.
    at_turn = base * context.expm1(exact * curve.turn)
    return 1 + base - context.exp(-exact * (count - curve.turn)) * (1 - at_turn + base)


@lru_cache(maxsize=64)
def _curve(epsilon: float, delta: float) -> _Curve:
    Budget(epsilon, delta)
    if delta <= 0:
        raise BudgetError(
            "`delta` must be more than 0: with delta 0 no item of an unknown list can be released. "
            "Choose a small delta such as 1e-7."
        )
    exact, mass = number(epsilon), number(delta)
    growth = context.exp(exact)
    base = mass / (growth - 1)
    # Up to which count the first branch is the lesser one, and the second stays below 1 (the closed form of the paper).
    turn = 1 + int(context.floor(context.log((growth + 2 * mass - 1) / ((growth + 1) * mass)) / exact))
    span = context.log(1 + (1 - base * context.expm1(exact * turn)) / base)
    steps = int(context.floor(span / exact))
    last = float(span - steps * exact)
    return _Curve(turn, turn + steps, float(context.log(base)), max(last, 0.0))
