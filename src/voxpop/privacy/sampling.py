"""Exact sampling of noise, as integers or in cells, from uniform bits.

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

# This part samples integers with exactly the required distribution, from uniform bits.
#
# The tail P(at least m) = exp(-offset - rate m) for m >= 1 describes a variable on 0, 1, 2, .... Uniform bits U, read
# as a number in [0, 1), determine the largest m with a tail above U. Doubles determine almost all values. If doubles
# could be wrong, the comparison is repeated with many digits. If two values are still possible after 128 bits, further
# bits are drawn. Therefore the distribution is exact, and not only within 2^-128 of the exact distribution. A delta of
# 0 requires an exact distribution.

# The absolute value of the logarithm of a uniform number is at most 90, with an error below 2^-45. The offset also has
# an error below 2^-45. Rates have a relative error below 2^-44. Therefore the position has an error below 2^-44 (1/rate
# + position). The band is wider.
SAMPLING_BAND = 2.0**-40
LARGEST_DRAW = 1 << 62
_WORD_BITS = 128
MORE_ROUNDS: Final = 8
"""The maximum number of rounds of further bits. Each round is needed with a probability of about 2^-128."""
_TINY = 1e-250  # smaller rates would change only values that no collection reaches


@dataclass(frozen=True, slots=True)
class Tail:
    """The tail P(at least m) = exp(-offset - rate m) for m >= 1 of a variable on 0, 1, 2, ....

    Args:
        rate: The rate, more than 0, with a relative error below 2^-44.
        offset: The offset, at least 0, with an error below 2^-45.
        exact: A function of an mpmath context that returns the rate and the offset in the precision of this context.
    """

    rate: float
    offset: float
    exact: Callable[[Any], tuple[Any, Any]]


@proved("sequences.md#what-integers-and-doubles-change")
def invert(
    tail: Tail,
    draws: Uint64s,
    more: Callable[[int, int], int],
    *,
    most: int = LARGEST_DRAW,
    band: float = SAMPLING_BAND,
) -> Int64s:
    """Return the value of a variable for each row of uniform bits.

    Proof: "Noise is the inverse of the exact tail at 128 uniform bits, with further bits if 128 bits allow two values."

    Args:
        tail: The tail of the distribution.
        draws: Two words per value from `Secret.draws`, the more significant word first.
        more: A function that returns 128 further uniform bits for a row (first argument) and a round (second argument,
            starting with 1).
        most: The smallest value that need not be distinguished from larger values.
        band: The error bound of the computation in doubles. Only tests increase it.

    Returns:
        One number per row, at most 2^62. A number of at least `most` may be replaced by any other such number.

    Example:
        >>> from math import log
        >>> halves = Tail(log(2), 0.0, lambda context: (context.log(2), context.mpf(0)))
        >>> draws = np.array([[3 << 62, 0], [3 << 61, 0], [3 << 60, 0]], dtype=np.uint64)
        >>> invert(halves, draws, lambda row, round: 0).tolist()
        [0, 1, 2]
    """
    high, low = draws[:, 0], draws[:, 1]
    # float64 (rows,), the middle of the interval of length 2^-128 that the bits determine.
    uniform = high.astype(np.float64) * 2.0**-64 + low.astype(np.float64) * 2.0**-128 + 2.0**-129
    rate = max(tail.rate, _TINY)
    # exp(-offset - rate m) > U if m < place, so the value is the largest integer below `place`.
    place = (-np.log(uniform) - tail.offset) / rate
    doubt = band * (1.0 / rate + np.abs(place))
    values: Int64s = np.clip(np.ceil(place) - 1.0, 0.0, float(LARGEST_DRAW)).astype(np.int64)
    unsure = (np.abs(place - np.rint(place)) <= doubt) & (place > -doubt) & (place - doubt < most)
    for row in np.flatnonzero(unsure | (high == 0)):
        values[row] = _invert_exactly(tail, (int(high[row]) << 64) | int(low[row]), int(row), more)
    return values


def further_bits(secret: Source, purpose: str, first: Int64s, second: Int64s) -> Callable[[int, int], int]:
    """Return the function that draws further bits for `invert`.

    Args:
        secret: The source of the bits.
        purpose: The purpose of the first 128 bits.
        first: The first number of each pair that identifies a draw.
        second: The second number of each pair.

    Returns:
        A function that returns 128 further uniform bits for a row and a round.
    """

    def more(row: int, turn: int) -> int:
        one, two = first[row : row + 1].astype(np.uint64), second[row : row + 1].astype(np.uint64)
        words = secret.draws(f"{purpose}/more {turn}", one, two)[0]
        return (int(words[0]) << 64) | int(words[1])

    return more


@proved("sequences.md#what-integers-and-doubles-change")
def _invert_exactly(tail: Tail, value: int, row: int, more: Callable[[int, int], int]) -> int:
    """Return the value, computed with many digits. Further bits are drawn as long as two values are possible.

    Proof: "Noise is the inverse of the exact tail at 128 uniform bits, with further bits if 128 bits allow two values."
    """
    bits, rounds = _WORD_BITS, 0
    while True:
        settled = _between(tail, value, bits)
        if settled is not None:
            return settled
        rounds += 1
        value, bits = (value << _WORD_BITS) | more(row, rounds), bits + _WORD_BITS


@proved("sequences.md#what-integers-and-doubles-change")
def _between(tail: Tail, value: int, bits: int) -> int | None:
    """Return the value of the variable if it is constant on [value, value + 1) / 2^bits, and None otherwise.

    Proof: "Noise is the inverse of the exact tail at 128 uniform bits, with further bits if 128 bits allow two values."
    """
    context = _context(3 * bits)
    rate, offset = tail.exact(context)
    # The place decreases as the uniform number increases, so the upper end of the interval gives the smallest place.
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


# This part samples integer noise with P(X = k) exactly proportional to exp(-|k| rate).
#
# Adding this noise to integer counts with l1 sensitivity s is epsilon-private with rate = epsilon / s. Integers have no
# low-order bits that leak information, and `invert` makes the tails exact at any distance.

_SIGN = np.uint64(1 << 63)


def laplace_noise(rate: Fraction, secret: Source, purpose: str, first: Int64s, second: Int64s) -> Int64s:
    """Return the noise for each pair of numbers.

    Args:
        rate: The exact ratio of epsilon to sensitivity, more than 0.
        secret: The source of the bits.
        purpose: The purpose of the noise.
        first: The first number of each pair, at least 0.
        second: The second number of each pair, at least 0.

    Returns:
        One integer per pair. Equal pairs have equal noise.

    Example:
        >>> from voxpop.privacy.secret import Secret
        >>> pairs = np.arange(5, dtype=np.int64)
        >>> laplace_noise(Fraction(1, 20), Secret.from_seed(1), "example", pairs, pairs).shape
        (5,)
    """
    draws = secret.draws(purpose, first.astype(np.uint64), second.astype(np.uint64))
    return laplace_of(rate, draws, further_bits(secret, purpose, first, second))


@proved("sequences.md#contexts")
def laplace_of(rate: Fraction, draws: Uint64s, more: Callable[[int, int], int]) -> Int64s:
    """Return the noise that uniform bits determine.

    Proof: "Noise is an integer X with P(X = k) proportional to exp(-|k| r)"

    Args:
        rate: The exact ratio of epsilon to sensitivity, more than 0.
        draws: uint64 (numbers, 2), uniform bits; overwritten.
        more: A function that returns 128 further uniform bits for a row (first argument) and a round (second argument,
            starting with 1).
    """
    # One uniform number of 128 bits determines sign and size. With q = e^-rate, P(X <= -m) = q^m / (1 + q), which is at
    # most 1/2 for m >= 1. The top bit selects the end from which the code counts.
    positive = draws[:, 0] >= _SIGN
    draws[positive] = ~draws[positive]  # count from the other end, because P(X >= m) = P(X <= -m)
    magnitude = invert(laplace_tail(rate), draws, more)
    return np.where(positive, magnitude, -magnitude)


@proved("sequences.md#proof-for-grams")
def laplace_tail(rate: Fraction) -> Tail:
    """Return the one-sided tail, P(X >= m) = P(X <= -m) = exp(-rate m) / (1 + exp(-rate)) for m >= 1.

    Proof: "For integers a, b and every k, P(X = k - a) is at most exp(r |a - b|) P(X = k - b)."

    Args:
        rate: The rate of the noise, more than 0.

    Returns:
        The tail.
    """

    def exact(context: Any) -> tuple[Any, Any]:
        precise = context.mpf(rate.numerator) / rate.denominator
        return precise, context.log1p(context.exp(-precise))

    return Tail(float(rate), log1p(exp(-float(rate))), exact)


# This part samples Gumbel noise in whole cells. The order of items with this noise has the distribution of repeated
# exponential mechanisms.
#
# If E is exponential, -ln(E) / rate is Gumbel noise. The descending order of `count + noise` is the ascending order of
# E / w with w = e^(rate * count). Therefore item i is first with probability w_i / (sum of all w), and the same is true
# among the remaining items. docs/privacy/top.md describes the effect of cells and doubles.

CELLS: Final = 2**28
"""The number of cells per count of 1. Counts are below 2^33 and noise is below 2^27, so sums fit in 64 bits."""
LEAST_RATE: Final = 2.0**-20
"""The smallest rate. Noise with a smaller rate could exceed 64 bits."""
DOUBLES: Final = 2.0**-43
"""An upper bound on the error of the logarithm of E in doubles, except for draws of probability `LOST`."""
LOST: Final = 2.0**-77
"""The probability that a draw is within 2^50 steps of either end. For such draws, 128 bits do not suffice for
`DOUBLES`.
"""


@proved("top.md#what-integers-and-doubles-change")
def gumbel_cells(weights: Int64s, rate: float, unit: int, draws: Uint64s) -> Int64s:
    """Return counts plus Gumbel noise, rounded to whole cells (halves are rounded up).

    Proof: "Noise is -ln(E) / r in doubles, from 128 uniform bits, rounded to multiples of 2^-28 users."

    Args:
        weights: int64, the counts, in units. The counts themselves are below 2^33.
        rate: The rate of the noise, per count, at least `LEAST_RATE`.
        unit: The number of units in a count of 1, a divisor of `CELLS`.
        draws: uint64 (weights, 2), uniform bits from `Secret.draws`.

    Returns:
        int64, the noisy counts, in cells.

    Example:
        >>> noisy = gumbel_cells(np.array([16]), 1.0, 16, np.array([[2**63, 0]], dtype=np.uint64))
        >>> round(noisy.item() / CELLS, 6)  # 1 - ln(ln 2)
        1.366513
    """
    # Compute U from 128 bits, or 1 - U if it is smaller. Here, ~draws is 2^128 - 1 - draws.
    upper = draws[:, 0] >= np.uint64(1 << 63)
    high, low = np.where(upper[:, None], ~draws, draws).astype(np.float64).T
    tails = (high * 2.0**64 + low + 0.5) * 2.0**-128
    # In either case, E = -ln(1 - U) has the relative accuracy of the smaller side.
    exponential = np.where(upper, -np.log(tails), -np.log1p(-tails))
    noise = np.floor(-np.log(exponential) / rate * CELLS + 0.5)
    return np.asarray(weights * (CELLS // unit) + noise.astype(np.int64), np.int64)


@proved("top.md#what-integers-and-doubles-change")
def log_error(rate: float) -> float:
    """Return a bound on the error of ln E that cells and doubles cause, except for draws of probability `LOST`.

    Proof: "For each draw, except with probability 2^-77, the error of ln E is at most b = r 2^-28 + 2^-43"
    """
    return rate / CELLS + DOUBLES


# This part samples noisy weights on a coarse grid, and computes them exactly if doubles could be wrong.
#
# The rounded value of weight plus Gaussian noise is a function of the output of the exact Gaussian mechanism, so it has
# no additional privacy cost. The rounded value is drawn by inverting the distribution at 128 uniform bits. Doubles
# determine almost all values. If the noisy weight is too close to the border between two cells or far in a tail, it is
# computed again with eighty digits.

BORDER = 2.0**-36
"""Doubles are not used within this distance of a border, relative to the size of the value in cells. Outside the tails,
the error of doubles is below 2^-42 of this size (`tests/privacy/test_rounded_noise.py`).
"""
TAIL = 2.0**36
"""If the first word is within this distance of either end, too few bits remain for an inversion in doubles. This
affects one draw in 2^27.
"""


@proved("randomness.md#what-integers-and-doubles-change")
def noisy_cells(weights: Int64s, sigma: float, unit: int, cell: int, draws: Uint64s) -> Int64s:
    """Return weights plus Gaussian noise, rounded to whole cells (halves are rounded up).

    Proof: "Doubles, with a relative error of at most 2^-42, are used if the relative distance of the value to the
    border between two cells is above 2^-36."

    Args:
        weights: int64, the weights, in units.
        sigma: The standard deviation of the noise, in units of weight.
        unit: The number of units in a weight of 1.
        cell: The number of units in a cell.
        draws: uint64 (weights, 2), uniform bits from `Secret.draws`.

    Returns:
        int64, the noisy weights, in cells.

    Example:
        >>> noisy_cells(np.array([96]), 1.0, 16, 4, np.array([[2**63, 0]], dtype=np.uint64)).tolist()
        [24]
    """
    values, size, ends = _in_doubles(weights, sigma, unit, cell, draws)
    # Shape (weights,), in cells. floor(x + 1/2) rounds to the nearest cell, and halves up.
    cells: Int64s = np.floor(values).astype(np.int64)
    # Both conditions depend on the draw and the weight. They do not change the distribution, because the computation
    # with eighty digits gives the same value wherever doubles are accurate.
    doubtful = (np.abs(values - np.round(values)) <= BORDER * size) | (ends < TAIL)
    for index in np.flatnonzero(doubtful):
        with precise.ALONE:
            value = _exact(int(weights[index]), sigma, unit, cell, draws[index])
            cells[index] = int(precise.context.floor(value))
    return cells


@proved("randomness.md#what-integers-and-doubles-change")
def _in_doubles(weights: Int64s, sigma: float, unit: int, cell: int, draws: Uint64s) -> tuple[Floats, Floats, Floats]:
    """Return the noisy weights plus half a cell and their sizes, in cells, and each word's distance to the nearer end.

    Proof: "Doubles, with a relative error of at most 2^-42, are used if the relative distance of the value to the
    border between two cells is above 2^-36."
    """
    # Use only the upper 64 of 128 bits. Except in the tails, the lower bits change a deviation by less than BORDER.
    words = draws[:, 0].astype(np.float64)
    upper = draws[:, 0] >= np.uint64(1 << 63)
    # Count from the nearer end, where a double keeps its precision. This is possible because Phi^-1 is odd around 1/2.
    ends = np.where(upper, (~draws[:, 0]).astype(np.float64), words)
    deviations = np.where(upper, -1.0, 1.0) * ndtri((ends + 0.5) / 2.0**64)
    # This is (weight + sigma N) / cell + 1/2, with weight and cell in units of the grid.
    values = weights / cell + deviations * (sigma * unit / cell) + 0.5
    size = np.abs(weights / cell) + np.abs(deviations) * (sigma * unit / cell) + 1.0
    return values, size, ends


@proved("randomness.md#what-integers-and-doubles-change")
def _exact(weight: int, sigma: float, unit: int, cell: int, words: Uint64s) -> Any:
    """Return the noisy weight plus half a cell, in cells, computed with eighty digits.

    Proof: "Otherwise, and for the first and last 2^36 of 2^64 values of the bits, the number is computed with eighty
    digits."
    """
    # (2 u + 1) / 2^129 is the middle of the interval that 128 bits determine, and it is never 0 or 1.
    uniform = precise.number(2 * ((int(words[0]) << 64) | int(words[1])) + 1) / precise.number(1 << 129)
    deviation: Any = precise.normal_quantile(uniform)
    value = (precise.number(weight) + deviation * precise.number(sigma) * unit) / cell
    return value + precise.number(0.5)
