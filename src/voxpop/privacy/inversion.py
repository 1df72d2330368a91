"""Whole numbers with exactly the wanted distribution, from uniform bits.

A variable on 0, 1, 2, ... is described by its tail: P(at least m) = exp(-offset - rate m) for m >= 1. Uniform bits U,
read as a number in [0, 1), give the largest m whose tail lies above U. Doubles settle nearly all values; where they
could err, the bits are compared in many digits. Where 128 bits leave two values possible, further bits are drawn, so
the distribution is the stated one, not one within 2^-128 of it, as a delta of 0 demands.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from mpmath import MPContext

from voxpop.arrays import Int64s, Uint64s
from voxpop.privacy.secret import Source

# The logarithm of a uniform number, at most 90, is off by less than 2^-45, and so is the offset; rates are right to a
# relative 2^-44. So the position on the ladder is off by less than 2^-44 (1/rate + position); the band is wider.
BAND = 2.0**-40
LARGEST = 1 << 62
_WORD_BITS = 128
_TINY = 1e-250  # rates below it differ from it only in values that no collection reaches


@dataclass(frozen=True, slots=True)
class Tail:
    """The tail of a variable on 0, 1, 2, ...: P(at least m) = exp(-offset - rate m) for m >= 1.

    Args:
        rate: More than 0, right to a relative 2^-44.
        offset: At least 0, right to 2^-45.
        exact: Returns rate and offset in the precision of the mpmath context it is given.
    """

    rate: float
    offset: float
    exact: Callable[[Any], tuple[Any, Any]]


def invert(
    tail: Tail, draws: Uint64s, more: Callable[[int, int], int], *, most: int = LARGEST, band: float = BAND
) -> Int64s:
    """The variable's value for each row of uniform bits.

    Args:
        tail: The distribution.
        draws: Two words per value, the more significant first: `Secret.draws`.
        more: Returns 128 further uniform bits for a row (first argument) and a round (second, from 1).
        most: Values from here on need not be told apart.
        band: How far doubles are trusted; only tests widen it.

    Returns:
        One number per row; numbers from `most` on may be any other from there on, and none is above 2^62.

    Example:
        >>> from math import log
        >>> halves = Tail(log(2), 0.0, lambda context: (context.log(2), context.mpf(0)))
        >>> draws = np.array([[3 << 62, 0], [3 << 61, 0], [3 << 60, 0]], dtype=np.uint64)
        >>> invert(halves, draws, lambda row, round: 0).tolist()
        [0, 1, 2]
    """
    high, low = draws[:, 0], draws[:, 1]
    # float64 (rows,): the middle of the 2^-128 that the bits leave open.
    uniform = high.astype(np.float64) * 2.0**-64 + low.astype(np.float64) * 2.0**-128 + 2.0**-129
    rate = max(tail.rate, _TINY)
    # exp(-offset - rate m) > U where m < place, so the value is the last whole number below it.
    place = (-np.log(uniform) - tail.offset) / rate
    doubt = band * (1.0 / rate + np.abs(place))
    values: Int64s = np.clip(np.ceil(place) - 1.0, 0.0, float(LARGEST)).astype(np.int64)
    unsure = (np.abs(place - np.rint(place)) <= doubt) & (place > -doubt) & (place - doubt < most)
    for row in np.flatnonzero(unsure | (high == 0)):
        values[row] = _invert_exactly(tail, (int(high[row]) << 64) | int(low[row]), int(row), more)
    return values


def further_bits(secret: Source, purpose: str, first: Int64s, second: Int64s) -> Callable[[int, int], int]:
    """What `invert` draws further bits with.

    Args:
        secret: Where the bits come from.
        purpose: That of the first 128 bits.
        first: The first number of each pair that names a draw.
        second: The second number of each pair.

    Returns:
        A function of a row and a round.
    """

    def more(row: int, turn: int) -> int:
        one, two = first[row : row + 1].astype(np.uint64), second[row : row + 1].astype(np.uint64)
        words = secret.draws(f"{purpose}/more {turn}", one, two)[0]
        return (int(words[0]) << 64) | int(words[1])

    return more


def _invert_exactly(tail: Tail, value: int, row: int, more: Callable[[int, int], int]) -> int:
    """Compare in many digits, with further bits as long as two values are possible."""
    bits, rounds = _WORD_BITS, 0
    while True:
        settled = _between(tail, value, bits)
        if settled is not None:
            return settled
        rounds += 1
        value, bits = (value << _WORD_BITS) | more(row, rounds), bits + _WORD_BITS


def _between(tail: Tail, value: int, bits: int) -> int | None:
    """Return the variable's value if it is the same on the whole of [value, value + 1) / 2^bits."""
    context = _context(3 * bits)
    rate, offset = tail.exact(context)
    # The place falls as U rises: the upper end of the stretch gives the least value.
    low = _place(context, rate, offset, value + 1, bits)
    slack = context.ldexp(1 + abs(low), -2 * bits + 64)
    first = max(int(context.ceil(low - slack)) - 1, 0)
    if first >= LARGEST:
        return LARGEST
    if value == 0:
        return None
    high = _place(context, rate, offset, value, bits)
    last = max(int(context.ceil(high + slack)) - 1, 0)
    return first if first == last else None


@cache
def _context(precision: int) -> Any:
    context = MPContext()
    context.prec = precision
    return context


def _place(context: Any, rate: Any, offset: Any, value: int, bits: int) -> Any:
    return (-context.log(context.ldexp(context.mpf(value), -bits)) - offset) / rate
