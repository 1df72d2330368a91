"""Tests of the bound on the probability that noise ever reaches a threshold, and of the noisy readings of a night."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from voxpop.privacy.secret import Secret
from voxpop.privacy.upcrossing import NightReading, ever_reached

NODES, WEIGHTS = np.polynomial.legendre.leggauss(20)


def fine(spreads, thresholds):
    """Return the sum of upcrossing probabilities, computed by a much finer Gauss-Legendre quadrature."""
    total = np.sqrt(np.cumsum(np.square(spreads)))
    levels = thresholds / total
    found = ndtr(-levels[0])
    for t in range(1, len(spreads)):
        s, r = spreads[t] / total[t], total[t - 1] / total[t]
        # There are 80 panels over eight standard deviations of the sum.
        x = levels[t] + (np.arange(80)[:, None] + (NODES + 1) / 2) / 10
        density = np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
        found += float((ndtr((levels[t - 1] - r * x) / s) * density * WEIGHTS / 20).sum())
    return float(found)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 40), st.floats(2.0, 7.0))
@example(1178825972, 23, 2.0)  # With short steps, thresholds decrease in this example.
@example(3614318297, 37, 2.0)
def test_the_bound_is_slightly_above_a_fine_quadrature(seed, nights, level):
    """The bound exceeds the quadrature by less than half a percent, even for decreasing thresholds."""
    rng = np.random.default_rng(seed)
    spreads = rng.uniform(0.05, 1, nights)
    thresholds = np.sqrt(np.cumsum(np.square(spreads))) * (level + rng.uniform(0, 0.5, nights))
    assert 1 - 1e-9 <= ever_reached(spreads, thresholds) / fine(spreads, thresholds) < 1.005


def test_the_bound_is_above_simulated_noise():
    """The share of 200,000 simulated paths is within six standard errors of 0.0004 (false alarm 1e-9)."""
    rng, spreads = np.random.default_rng(1), np.linspace(0.2, 1.0, 12)
    total = np.sqrt(np.cumsum(np.square(spreads)))
    thresholds = 2.5 * total
    paths = np.cumsum(rng.standard_normal((200_000, 12)) * spreads, axis=1)
    share = float((paths >= thresholds).any(axis=1).mean())
    assert share - 0.0024 <= ever_reached(spreads, thresholds) < 2 * share


def test_readings_are_repeatable_and_have_the_planned_noise():
    """Readings are multiples of the factor and depend on the night and the item.

    The variance of 20,000 readings is within 6 standard errors (false alarm 1e-8).
    """
    names = np.arange(40_000, dtype=np.uint64).reshape(-1, 2)
    none = np.zeros(20_000, np.int64)
    one = NightReading(3, 5, 2.0, 2**20, 2**9, Secret.from_seed(1))
    scores = one(none, names, none)
    assert (scores % 5 == 0).all()
    assert (one(none, names, none) == scores).all()
    assert (NightReading(4, 5, 2.0, 2**20, 2**9, Secret.from_seed(1))(none, names, none) != scores).any()
    spread = 2.0 * 2**11 * 5
    assert abs(float(np.var(scores)) / spread**2 - 1) < 0.06
    shifted = one(none + 2**20, names, none)
    assert (shifted - scores == 5 * 2**11).mean() > 0.99
