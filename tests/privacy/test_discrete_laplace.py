"""Tests of integer noise, which is exact at boundaries, even beyond 128 bits, and has the planned distribution."""

from fractions import Fraction
from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import MPContext

from voxpop.privacy.sampling import LARGEST_DRAW, Tail, invert, laplace_noise, laplace_tail
from voxpop.privacy.secret import Secret

SIGMAS = 7.0  # A normal deviate exceeds this in absolute value with probability 2.6e-12.
context = MPContext()
context.prec = 2000


def words(*values):
    return np.array([(value >> 64, value & (2**64 - 1)) for value in values], dtype=np.uint64).reshape(-1, 2)


def boundary(tail, m):
    """Return the 128-bit number below which the variable is at least m, and the next 128 bits."""
    rate, offset = tail.exact(context)
    scaled = context.exp(-offset - rate * m) * context.mpf(2) ** 128
    whole = int(context.floor(scaled))
    return whole, int(context.floor((scaled - whole) * context.mpf(2) ** 128))


def rates():
    return st.fractions(min_value=Fraction(1, 10**6), max_value=Fraction(5), max_denominator=10**6)


@settings(max_examples=60)
@given(rates(), st.floats(0.0, 80.0))
def test_values_change_at_the_same_point_as_the_exact_tail(rate, depth):
    """A draw that is off by 2^-128 gives another value, from the middle of the distribution to tails of 2^-115.

    At the boundary, the next 128 bits determine the value.
    """
    tail = laplace_tail(rate)
    m = max(1, int(min(depth / max(tail.rate, 1e-300), LARGEST_DRAW)))
    if m >= LARGEST_DRAW >> 2:
        return
    whole, next_bits = boundary(tail, m)

    def more(row, turn):
        return next_bits + (1 if row == 3 else -1) if turn == 1 else 0

    if not 2 <= whole < 2**128 - 1:
        return
    values = invert(tail, words(whole - 1, whole + 1, whole, whole), more)
    assert values[0] >= m > values[1]
    assert values[2] >= m > values[3]


def test_a_draw_of_zero_requires_more_bits():
    """After 128 zero bits, all larger values are possible, so further bits determine the value."""
    tail = laplace_tail(Fraction(1))
    asked = []

    def more(row, turn):
        asked.append(turn)
        return 0 if turn < 3 else 1 << 60

    value = int(invert(tail, words(0), more)[0])
    assert asked == [1, 2, 3]
    assert value == pytest.approx(452 * log(2) - log(1 + exp(-1)), abs=2)


@settings(max_examples=40)
@given(rates(), st.integers(0, 10**6))
def test_fast_and_exact_values_agree(rate, seed):
    """The values are the same with the default band and with a band so wide that all values are computed exactly."""
    tail = laplace_tail(rate)
    draws = Secret.from_seed(seed).draws("x", np.arange(20, dtype=np.uint64), 0)
    never = lambda row, turn: 0  # noqa: E731
    assert invert(tail, draws, never).tolist() == invert(tail, draws, never, band=1e30).tolist()


@pytest.mark.parametrize("rate", [Fraction(1, 20), Fraction(1), Fraction(7, 2)])
def test_noise_has_the_planned_distribution(rate):
    """The frequency of each value among 400,000 is within 7 standard deviations (false alarm below 1e-9 in total)."""
    numbers = np.arange(400_000)
    noise = laplace_noise(rate, Secret.fresh(), "x", numbers, numbers * 0)
    a = exp(-rate)
    for k in range(-60, 61):
        chance = (1 - a) / (1 + a) * a ** abs(k)
        if chance * numbers.size > 50:
            deviation = (noise == k).sum() - chance * numbers.size
            assert abs(deviation) < SIGMAS * (numbers.size * chance * (1 - chance)) ** 0.5 + 1, k


def test_noise_depends_only_on_purpose_and_pair():
    """The same pairs in any order give the same noise. Another pair or purpose gives different noise."""
    secret, numbers = Secret.from_seed(1), np.arange(200)
    noise = laplace_noise(Fraction(1, 50), secret, "x", numbers, numbers + 1)
    assert (
        laplace_noise(Fraction(1, 50), secret, "x", numbers[::-1], numbers[::-1] + 1)[::-1].tolist() == noise.tolist()
    )
    for other in (("y", numbers, numbers + 1), ("x", numbers + 1, numbers)):
        assert (laplace_noise(Fraction(1, 50), secret, *other) != noise).mean() > 0.9


def test_very_large_values_are_clipped():
    """Values are clipped to 2^62, which is above every possible count."""
    slow = Tail(2.0**-62, 0.0, lambda context: (context.mpf(2) ** -62, context.mpf(0)))
    assert invert(slow, words(2**120, 1), lambda row, turn: 0).tolist() == [LARGEST_DRAW, LARGEST_DRAW]
