"""Exact sampling of noise in whole numbers and cells, from uniform bits.

The proofs of the effects of finite arithmetic are in docs/privacy/randomness.md and docs/privacy/top.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import exp, log1p
from typing import Any, Final

import numpy as np
from mpmath import MPContext
from scipy.special import ndtri

from voxpop.kernels.arrays import Floats, Int64s, Uint64s
from voxpop.kernels.proved import proved
from voxpop.privacy import precise
from voxpop.privacy.secret import Source

# Whole numbers with exactly the wanted distribution, from uniform bits.
#
# A variable on 0, 1, 2, ... is described by its tail: P(at least m) = exp(-offset - rate m) for m >= 1. Uniform bits U,
# read as a number in [0, 1), give the largest m whose tail lies above U. Doubles settle nearly all values; where they
# could err, the bits are compared in many digits. Where 128 bits leave two values possible, further bits are drawn, so
# the distribution is the stated one, not one within 2^-128 of it, as a delta of 0 demands.

# The logarithm of a uniform number, at most 90, is off by less than 2^-45, and so is the offset; rates are right to a
# relative 2^-44. So the position on the ladder is off by less than 2^-44 (1/rate + position); the band is wider.
SAMPLING_BAND = 2.0**-40
LARGEST_DRAW = 1 << 62
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
    tail: Tail,
    draws: Uint64s,
    more: Callable[[int, int], int],
    *,
    most: int = LARGEST_DRAW,
    band: float = SAMPLING_BAND,
) -> Int64s:
    """The variable's value for each row of uniform bits.

    Args:
        tail: The distribution.
        draws: Two words per value, the more significant first: `Secret.draws`.
        more: Returns 128 further uniform bits for a row (first argument) and a round (second, from 1).
        most: Values from here on need not be told apart.
        band: The error bound of the computation in doubles; only tests widen it.

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
    values: Int64s = np.clip(np.ceil(place) - 1.0, 0.0, float(LARGEST_DRAW)).astype(np.int64)
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
    if first >= LARGEST_DRAW:
        return LARGEST_DRAW
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


# Integer noise: P(X = k) proportional to exp(-|k| rate), exactly.
#
# Adding it to integer counts of l1 sensitivity s is epsilon-private with rate = epsilon / s. Integers have no low-order
# bits that leak information, and the tails are right at any distance (see `invert`).

_SIGN = np.uint64(1 << 63)


def laplace_noise(rate: Fraction, secret: Source, purpose: str, first: Int64s, second: Int64s) -> Int64s:
    """Noise for each pair of numbers.

    Args:
        rate: Epsilon over sensitivity, more than 0; exact.
        secret: Where the bits come from.
        purpose: The purpose of the noise.
        first: The first number of each pair, at least 0.
        second: The second number of each pair, at least 0.

    Returns:
        One integer per pair; equal pairs get equal noise.

    Example:
        >>> from voxpop.privacy.secret import Secret
        >>> pairs = np.arange(5, dtype=np.int64)
        >>> laplace_noise(Fraction(1, 20), Secret.from_seed(1), "example", pairs, pairs).shape
        (5,)
    """
    draws = secret.draws(purpose, first.astype(np.uint64), second.astype(np.uint64))
    # One 128-bit uniform decides sign and size. With q = e^-rate, P(X <= -m) = q^m / (1 + q), at most 1/2 for m >= 1;
    # the top bit selects the end from which to count.
    positive = draws[:, 0] >= _SIGN
    draws[positive] = ~draws[positive]  # count from the other end: X >= m is as likely as X <= -m
    magnitude = invert(laplace_tail(rate), draws, further_bits(secret, purpose, first, second))
    return np.where(positive, magnitude, -magnitude)


def laplace_tail(rate: Fraction) -> Tail:
    """The tail of one side: P(X >= m) = P(X <= -m) = exp(-rate m) / (1 + exp(-rate)) for m >= 1.

    Args:
        rate: More than 0.

    Returns:
        The tail.
    """

    def exact(context: Any) -> tuple[Any, Any]:
        precise = context.mpf(rate.numerator) / rate.denominator
        return precise, context.log1p(context.exp(-precise))

    return Tail(float(rate), log1p(exp(-float(rate))), exact)


# Gumbel noise in whole cells: which items come first under it is the exponential mechanism, pick by pick.
#
# With E exponential, -ln(E) / rate is Gumbel noise. The order of `count + noise`, highest first, is that of E / w,
# lowest first, with w = e^(rate * count); so the first is item i with probability w_i / (sum of all w), and so on among
# the rest.
# docs/privacy/top.md describes the effect of cells and doubles.

CELLS: Final = 2**28
"""Cells in a count of one. Counts stay below 2^33 and noise below 2^27, so sums fit 64 bits."""
LEAST_RATE: Final = 2.0**-20
"""Noise of a lower rate could leave the 64 bits."""
DOUBLES: Final = 2.0**-43
"""More than doubles move the logarithm of E, beyond draws of probability `LOST`."""
LOST: Final = 2.0**-77
"""Chance that a draw lies within 2^50 steps of either end, where 128 bits are too few for `DOUBLES`."""


def gumbel_cells(weights: Int64s, rate: float, unit: int, draws: Uint64s) -> Int64s:
    """Return counts plus Gumbel noise, rounded to whole cells, halves up.

    Args:
        weights: int64, in units, below 2^33 counts.
        rate: of the noise, per count, at least `LEAST_RATE`.
        unit: units in a count of 1; divides `CELLS`.
        draws: uint64 (weights, 2), uniform: `Secret.draws`.

    Returns:
        int64, in cells.

    Example:
        >>> noisy = gumbel_cells(np.array([16]), 1.0, 16, np.array([[2**63, 0]], dtype=np.uint64))
        >>> round(noisy.item() / CELLS, 6)  # 1 - ln(ln 2)
        1.366513
    """
    # U from 128 bits, or 1 - U where that is the smaller one: ~draws is 2^128 - 1 - draws.
    upper = draws[:, 0] >= np.uint64(1 << 63)
    high, low = np.where(upper[:, None], ~draws, draws).astype(np.float64).T
    tails = (high * 2.0**64 + low + 0.5) * 2.0**-128
    # E = -ln(1 - U) in either case, with the relative accuracy of the small side.
    exponential = np.where(upper, -np.log(tails), -np.log1p(-tails))
    noise = np.floor(-np.log(exponential) / rate * CELLS + 0.5)
    return np.asarray(weights * (CELLS // unit) + noise.astype(np.int64), np.int64)


@proved("top.md#what-integers-and-doubles-change")
def log_error(rate: float) -> float:
    """Bound the change of the logarithm of E by cells and doubles, for all draws but those of probability `LOST`.

    Proof: "For all draws except those of probability 2^-77 each, ln E is wrong by at most e = r 2^-28 + 2^-43"
    """
    return rate / CELLS + DOUBLES


# Noisy weights on a coarse grid, exact where doubles could err.
#
# The rounded value of weight plus Gaussian noise is a function of the exact Gaussian mechanism's output, so it costs no
# more. It is drawn by inverting the distribution at 128 uniform bits. Doubles settle nearly all values; where the noisy
# weight lies too near the border of two cells, or far in a tail, it is computed again in eighty digits.

BORDER = 2.0**-36
"""Distance to a border, relative to the size of the value in cells, within which doubles are not trusted. Their error
is below 2^-42 of that size outside the tails: `tests/privacy/test_rounded_noise.py`."""
TAIL = 2.0**36
"""First words nearer than this to either end have too few bits left to invert; one draw in 2^27."""


def noisy_cells(weights: Int64s, sigma: float, unit: int, cell: int, draws: Uint64s) -> Int64s:
    """Return weights plus Gaussian noise, rounded to whole cells, halves up.

    Args:
        weights: int64, in units.
        sigma: standard deviation of the noise, in weight.
        unit: units in a weight of 1.
        cell: units in a cell.
        draws: uint64 (weights, 2), uniform: `Secret.draws`.

    Returns:
        int64, in cells.

    Example:
        >>> noisy_cells(np.array([96]), 1.0, 16, 4, np.array([[2**63, 0]], dtype=np.uint64)).tolist()
        [24]
    """
    values, size, ends = _in_doubles(weights, sigma, unit, cell, draws)
    # floor(x + 1/2) rounds to the nearest cell, halves up; (weights,), in cells.
    cells: Int64s = np.floor(values).astype(np.int64)
    # Both tests look at the draw and the weight, and neither changes the law: eighty digits settle the same value.
    doubtful = (np.abs(values - np.round(values)) <= BORDER * size) | (ends < TAIL)
    for index in np.flatnonzero(doubtful):
        with precise.ALONE:
            value = _exact(int(weights[index]), sigma, unit, cell, draws[index])
            cells[index] = int(precise.context.floor(value))
    return cells


def _in_doubles(weights: Int64s, sigma: float, unit: int, cell: int, draws: Uint64s) -> tuple[Floats, Floats, Floats]:
    """Return half a cell more than the noisy weights, their size, both in cells, and words from the nearer end."""
    # Of 128 bits the upper 64: the lower ones move a deviation by less than BORDER allows, but in the tails.
    words = draws[:, 0].astype(np.float64)
    upper = draws[:, 0] >= np.uint64(1 << 63)
    # Counted from the nearer end, where a double keeps its digits; Phi^-1 is odd.
    ends = np.where(upper, (~draws[:, 0]).astype(np.float64), words)
    deviations = np.where(upper, -1.0, 1.0) * ndtri((ends + 0.5) / 2.0**64)
    # (weight + sigma N) / cell + 1/2, both in units of the grid.
    values = weights / cell + deviations * (sigma * unit / cell) + 0.5
    size = np.abs(weights / cell) + np.abs(deviations) * (sigma * unit / cell) + 1.0
    return values, size, ends


def _exact(weight: int, sigma: float, unit: int, cell: int, words: Uint64s) -> Any:
    """Return half a cell more than the noisy weight, in cells and eighty digits."""
    # (2 u + 1) / 2^129: the middle of the cell that the 128 bits name, never 0 or 1.
    uniform = precise.number(2 * ((int(words[0]) << 64) | int(words[1])) + 1) / precise.number(1 << 129)
    deviation: Any = precise.normal_quantile(uniform)
    value = (precise.number(weight) + deviation * precise.number(sigma) * unit) / cell
    return value + precise.number(0.5)
