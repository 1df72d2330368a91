"""One-dimensional searches that always keep a valid bracket, and the cost of finite arithmetic."""

import math
from collections.abc import Callable
from fractions import Fraction

from voxpop.kernels.proved import proved

Curve = Callable[[float], float]
_GOLDEN = 0.6180339887498949


def crossing(curve: Curve, low: float, high: float, tolerance: float = 1e-15) -> float:
    """Return a point at which a decreasing curve reaches zero, rounded to the side where the curve is at most 0.

    The search takes secant steps with the Illinois rule, and every fourth step is a bisection.

    Args:
        curve: A decreasing function that is at most 0 at `high`.
        low: The start of the bracket.
        high: The end of the bracket.
        tolerance: The relative width of the final bracket.

    Returns:
        A point at which the curve is at most 0. It is above the first such point by at most the relative tolerance.

    Example:
        >>> round(crossing(lambda x: 2 - x * x, 0.0, 2.0), 12)
        1.414213562373
    """
    left, right = curve(low), curve(high)
    if left <= 0:
        return low
    left_moved: bool | None = None
    for step in range(200):
        middle = _secant(low, high, left, right) if step % 4 < 3 else low + (high - low) / 2
        if high - low <= tolerance * abs(high) or middle in (low, high):
            break
        value = curve(middle)
        if value > 0:
            # The Illinois rule halves the value at an end that is kept twice, so that the secant converges quickly.
            right = right / 2 if left_moved is True else right
            low, left, left_moved = middle, value, True
        else:
            left = left / 2 if left_moved is False else left
            high, right, left_moved = middle, value, False
    return high


def around(curve: Curve, low: float, high: float, least: float, most: float) -> tuple[float, float]:
    """Widen a guessed bracket until it contains a zero of a decreasing curve.

    Args:
        curve: A decreasing function that is at most 0 at `most`.
        low: The start of the guessed bracket.
        high: The end of the guessed bracket.
        least: The lower bound on the start of the bracket.
        most: The upper bound on the end of the bracket.

    Returns:
        A bracket for `crossing`. The curve is above 0 at the start of the bracket, unless the start is `least`, and at
        most 0 at the end.

    Example:
        >>> around(lambda x: 2 - x * x, 0.5, 0.75, 0.0, 9.0)
        (0.75, 1.75)
    """
    step = high - low
    low = min(max(low, least), most)
    high = max(min(high, most), low)
    while low > least and curve(low) <= 0:
        low, high, step = max(low - step, least), low, 4 * step
    while high < most and curve(high) > 0:
        low, high, step = high, min(high + 4 * step, most), 4 * step
    return low, high


def _secant(low: float, high: float, left: float, right: float) -> float:
    middle = high + right * (high - low) / (left - right) if math.isfinite(left - right) else low
    return middle if low < middle < high else low + (high - low) / 2


def lowest(curve: Curve, low: float, high: float, steps: int = 24) -> float:
    """Return the point at which a unimodal curve is lowest, by golden-section search.

    Args:
        curve: A function that decreases and then increases.
        low: The start of the bracket.
        high: The end of the bracket.
        steps: The number of times that the bracket shrinks by 0.618.

    Returns:
        The better of the two inner points of the final bracket.

    Example:
        >>> round(lowest(lambda x: (x - 1) ** 2, 0.0, 3.0), 3)
        1.0
    """
    # Because of the golden ratio, one of the two inner points is also an inner point of the smaller bracket.
    inner, outer = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_inner, at_outer = curve(inner), curve(outer)
    for _ in range(steps):
        if at_inner <= at_outer:
            high, outer, at_outer = outer, inner, at_inner
            inner = high - _GOLDEN * (high - low)
            at_inner = curve(inner)
        else:
            low, inner, at_inner = inner, outer, at_outer
            outer = low + _GOLDEN * (high - low)
            at_outer = curve(outer)
    return inner if at_inner <= at_outer else outer


def falling_to(curve: Curve, start: float, tolerance: float) -> float:
    """Return a point at which the logarithm of a tail is zero or just below zero, with few evaluations.

    Args:
        curve: A function that decreases roughly like the logarithm of a normal tail, with a slope near -x at x.
        start: The first point of the search, above 0.
        tolerance: The largest distance of the curve below zero at the result.

    Returns:
        A point at which the curve is at most 0. The curve is at least minus the tolerance there if such a point is
        found.

    Example:
        >>> round(falling_to(lambda x: 8 - x * x / 2, 3.0, 1e-6), 6)
        4.0
    """
    low, high, place, slope = 0.0, math.inf, start, -start
    value = curve(place)
    for _ in range(60):
        if -tolerance <= value <= 0.0 or high <= low * (1 + 1e-12):
            break
        low, high = (place, high) if value > 0 else (low, place)
        # Take a Newton step towards the middle of the tolerated interval.
        there = place - (value + tolerance / 2) / slope
        if not low < there < high or there > place + 4.0:
            # If the step leaves the bracket, or is very large because the curve is flat, halve the bracket instead. If
            # the bracket has no upper end, take a bounded step.
            there = min(place + 4.0, (low + high) / 2)
        reached = curve(there)
        risen = (reached - value) / (there - place)
        place, value, slope = there, reached, risen if risen < 0 else -there
    return place if value <= 0.0 else high


def least_whole(reached: Callable[[int], bool], below: int, guess: int, most: int) -> int | None:
    """Return the smallest whole number that satisfies a condition, by doubling followed by bisection.

    Args:
        reached: The condition, which is False up to some number and True for all larger numbers.
        below: A number that does not satisfy the condition.
        guess: A number above `below`, from which doubling starts.
        most: The largest number that doubling tries.

    Returns:
        The number, or None if doubling exceeds `most` before the condition holds.

    Example:
        >>> least_whole(lambda number: number * number >= 50, 0, 1, 10**6)
        8
    """
    low, high = below, guess
    while not reached(high):
        low, high = high, 2 * high
        if high > most:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


MOST_PASSES = 58
"""The maximum number of passes of one release. There are at most 32 lengths of n-grams, four screening votes, a
second-chance pass and 21 adaptive rounds. `walk_slack` charges each pass.
"""
_LOG_SLACK = -97 * math.log(2)  # 2^31 items, and an error of 2^-128 for each decision


@proved("randomness.md#exact-decisions")
def numerical_slack(epsilon: float) -> float:
    """Return the part of delta that covers decisions with 128 random bits instead of infinitely many.

    Proof: "(1 + e^epsilon) 2^31 2^-128 is charged to delta"

    The release probability of each item has an error of at most 2^-128. Therefore, for each of two neighbours, the
    distribution of a release is within 2^31 * 2^-128 of the exact distribution in total variation, if up to 2^31 items
    differ. By the triangle inequality, this adds (1 + e^epsilon) times this distance to delta. `secret.py` gives the
    cost of AES.

    Args:
        epsilon: The epsilon of the guarantee.

    Returns:
        The charge to delta.

    Example:
        >>> numerical_slack(3.0) < 1.5e-28
        True
    """
    # Compute (1 + e^eps) 2^-97 with exponents, because e^eps can exceed the range of doubles.
    return math.exp(_LOG_SLACK) + math.exp(min(_LOG_SLACK + epsilon, 0.0))


def optimal_delta(epsilon: float, delta: float) -> float:
    """Return the delta that remains for optimal selection after charging for decisions with 128 bits.

    The result is always less than the given delta.

    Args:
        epsilon: The epsilon of the guarantee.
        delta: The delta of the guarantee.

    Returns:
        The delta of the selection rule.

    Example:
        >>> 0 < 1e-7 - optimal_delta(1.0, 1e-7) < 1e-22
        True
    """
    # Rounding can remove the slack or increase the difference. Therefore this loop ensures that the exact sum is at
    # most delta.
    slack = math.nextafter(numerical_slack(epsilon), 1.0)
    rest = min(delta - slack, math.nextafter(delta, 0.0))
    while Fraction(rest) + Fraction(slack) > Fraction(delta):
        rest = math.nextafter(rest, 0.0)
    return rest


@proved("README.md#proofs")
def walk_slack(epsilon: float, passes: int) -> float:
    """Return the cost of finite arithmetic in a walk through the lengths of grams, in addition to `numerical_slack`.

    Proof: "A mechanism with several passes or rounds charges 2^-74 in total variation for each of them"

    A pass is a vote with the measurement before it. In each pass, the distribution of a release is within 2^-74 of the
    exact distribution in total variation. This distance covers up to 2^31 candidates, and measured weights. A candidate
    costs 2^-128 for each of fewer than 2^7 cutpoints, and a measured weight costs 2^-128 for each of fewer than 2^20
    cells that are not almost impossible. The distance also covers the gaps between unsupported candidates (2^-128 for
    each of up to 2^46 candidates, and for 88 times as many positions beyond them).

    Args:
        epsilon: The epsilon of the guarantee.
        passes: The number of votes: one per length, the screening votes, and a second-chance pass.

    Returns:
        The charge to delta.

    Example:
        >>> walk_slack(4.0, 9) < 1e-19
        True
    """
    # This is passes * 2^-74 in total variation, on both sides of the inequality.
    log_each = -74 * math.log(2) + math.log(passes)
    return math.exp(log_each) + math.exp(min(log_each + epsilon, 0.0))


@proved("known.md#what-integers-and-doubles-change")
def paired_pool(pool: int, listed: int) -> int:
    """Return the size of a pool with at least as many pairs as one user has pairs of items that could share 64 bits.

    Proof: "A user has at most W (N + W) pairs of a novel item and another item."

    Args:
        pool: The maximum number of items per user that are not on a public list.
        listed: The number of items on the list.

    Example:
        >>> paired_pool(25, 0), paired_pool(25, 1000)
        (25, 227)
    """
    return pool if listed == 0 else math.isqrt(2 * pool * (listed + pool)) + 1


@proved("adaptive.md#what-integers-and-doubles-change")
def draw_slack(pool: int, rounds: int) -> float:
    """Return the charge to delta for drawing items with 64 bits, if a proof averages over draws.

    Proof: "covers items of a pool that share 64 bits."

    Draws are uniform unless two items of a pool share the 64 bits that name them, or share the 64 bits that order them
    in some round.

    Args:
        pool: The maximum number of items in the pool of one user.
        rounds: The number of rounds.

    Returns:
        The charge to delta.

    Example:
        >>> draw_slack(60, 14) < 2e-15
        True
    """
    # This is a birthday bound for W^2 / 2 pairs, each equal with probability 2^-64, in R rounds and once for the names.
    return (rounds + 1) * pool * pool * 2.0**-65


def with_rounding(error: float, cell: float = 1.0) -> float:
    """Return the standard deviation of noise plus rounding to a cell. The rounding error is approximately uniform."""
    # The variance of a uniform variable on an interval of length 1 is 1 / 12.
    return math.hypot(error, cell * math.sqrt(1 / 12))
