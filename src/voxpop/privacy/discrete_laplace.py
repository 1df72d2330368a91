"""Integer noise: P(X = k) proportional to exp(-|k| rate), exactly.

Adding it to integer counts of l1 sensitivity s is epsilon-private with rate = epsilon / s. Nothing hides in low-order
bits, for there are none, and the tails are right however far out (see `inversion`).

Where most counts are 0 and only noisy values of at least some `least` matter, `exceeding_zeros` draws just those: which
of the zeros get there follows from exact geometric gaps, which is a binomial number of them in places chosen uniformly,
and how high each gets follows from an exact geometric, because the tail of this noise has no memory.
"""

from collections.abc import Callable
from fractions import Fraction
from math import exp, log1p
from typing import Any

import numpy as np

from voxpop.arrays import Int64s
from voxpop.errors import InternalError
from voxpop.privacy.inversion import LARGEST, Tail, further_bits, invert
from voxpop.privacy.secret import Source

_SIGN = np.uint64(1 << 63)


def laplace_noise(rate: Fraction, secret: Source, purpose: str, first: Int64s, second: Int64s) -> Int64s:
    """Noise for each pair of numbers.

    Args:
        rate: Epsilon over sensitivity, more than 0; exact.
        secret: Where the bits come from.
        purpose: What the noise is for.
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
    # the top bit says from which end to count.
    positive = draws[:, 0] >= _SIGN
    draws[positive] = ~draws[positive]  # count from the other end: X >= m is as likely as X <= -m
    magnitude = invert(laplace_tail(rate), draws, further_bits(secret, purpose, first, second))
    return np.where(positive, magnitude, -magnitude)


def exceeding_zeros(
    rate: Fraction, least: int, zeros: Int64s, secret: Source, purpose: str, rows: Int64s
) -> tuple[Int64s, Int64s, Int64s]:
    """The noisy values of at least `least` among counts that are all 0, without drawing the others.

    Args:
        rate: Of the noise.
        least: At least 1.
        zeros: How many zeros each row has.
        secret: Where the bits come from.
        purpose: What the noise is for.
        rows: The number that names each row in draws, at least 0 and distinct.

    Returns:
        For each value that gets there: the row (a place in `zeros`), which of its zeros (from 0), and the noisy value;
        in order.
    """
    if least < 1:
        raise InternalError(f"zeros can only be left out below a threshold of at least 1, got {least}.")
    # A zero gets there with p = q^least / (1 + q). Zeros between two that do: geometric, P(gap >= k) = (1 - p)^k.
    # How far above `least`: P(height >= k) = q^k, as the tail has no memory.
    skips, heights = _skip_tail(rate, least), Tail(float(rate), 0.0, _exact_rate(rate))
    found: list[tuple[Int64s, Int64s]] = []
    most = int(zeros.max(initial=0))
    active, place = np.arange(zeros.size), np.full(zeros.size, -1, np.int64)
    turn = 0
    while active.size:
        names, turns = rows[active], np.full(active.size, turn, np.int64)
        pass_name = f"{purpose}/gap"
        draws = secret.draws(pass_name, names.astype(np.uint64), turns.astype(np.uint64))
        gaps = invert(skips, draws, further_bits(secret, pass_name, names, turns), most=most)
        # Next place that gets there; a row is done once that lies beyond its zeros.
        place = place + 1 + np.minimum(gaps, LARGEST >> 1)
        reached = place < zeros[active]
        active, place = active[reached], place[reached]
        found.append((active, place))
        turn += 1
    row = np.concatenate([np.empty(0, np.int64), *(each for each, _ in found)])
    rank = np.concatenate([np.empty(0, np.int64), *(each for _, each in found)])
    order = np.lexsort((rank, row))
    row, rank = row[order], rank[order]
    pass_name = f"{purpose}/height"
    draws = secret.draws(pass_name, rows[row].astype(np.uint64), rank.astype(np.uint64))
    above = invert(heights, draws, further_bits(secret, pass_name, rows[row], rank))
    return row, rank, least + above


def laplace_tail(rate: Fraction) -> Tail:
    """The tail of one side: P(X >= m) = P(X <= -m) = exp(-rate m) / (1 + exp(-rate)) for m >= 1.

    Args:
        rate: More than 0.

    Returns:
        The tail.
    """

    def exact(context: Any) -> tuple[Any, Any]:
        precise = _number(context, rate)
        return precise, context.log1p(context.exp(-precise))

    return Tail(float(rate), log1p(exp(-float(rate))), exact)


def _skip_tail(rate: Fraction, least: int) -> Tail:
    """How many zeros in a row stay below `least`: P(at least m) = (1 - P(X >= least))^m."""

    def exact(context: Any) -> tuple[Any, Any]:
        precise = _number(context, rate)
        chance = context.exp(-precise * least) / (1 + context.exp(-precise))
        return -context.log1p(-chance), context.mpf(0)

    return Tail(float(exact(_context())[0]), 0.0, exact)


def _context() -> Any:
    from voxpop.privacy.precise import context

    return context


def _exact_rate(rate: Fraction) -> Callable[[Any], tuple[Any, Any]]:
    return lambda context: (_number(context, rate), context.mpf(0))


def _number(context: Any, value: Fraction) -> Any:
    return context.mpf(value.numerator) / value.denominator
