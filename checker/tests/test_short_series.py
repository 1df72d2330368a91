"""Test of the bound on the probability that noise reaches a threshold in a series of two nights."""

from math import erfc, exp, pi, sqrt
from types import SimpleNamespace

from voxpop_check.nights import ever


def upper(x):
    return 0.5 * erfc(x / sqrt(2))


def test_the_bound_of_few_nights_is_close_to_the_exact_probability():
    """If its bound were too large, the checker would reject private releases, because releases contain the bound."""
    first, second, a, b = 1000.0, 1900.0, 6.8, 6.6
    spread = sqrt(first**2 + second**2)
    numbers = SimpleNamespace(
        factors=[1, 1], sigmas=[first, second], bits=0, cell=1, thresholds=[a * first, b * spread]
    )
    # Simpson's rule integrates over the scores of the first night that are below its threshold. Rounding moves the
    # thresholds.
    low, high, parts = -12.0, a - 0.5 / first, 40_000
    width, total = (high - low) / parts, 0.0
    for k in range(parts + 1):
        x = low + k * width
        value = exp(-x * x / 2) / sqrt(2 * pi) * upper((b * spread - 1 - first * x) / second)
        total += value * (1 if k in (0, parts) else 4 if k % 2 else 2)
    exact = upper(high) + total * width / 3
    assert 1 <= float(ever(numbers)) / exact <= 1 + 2e-7
