"""Tests that the error of one user's integer step is at most the error that the plan charges."""

from math import ceil, log2, sqrt

import numpy as np
import pytest
from mpmath import MPContext

from voxpop.privacy.weightings.builtin import PolicyGaussian, PolicyLaplace
from voxpop.privacy.weightings.rule import RuleSetting, bits_below

fifty = MPContext()
fifty.dps = 50


def some_weights(rng, size, cutoff):
    """Return weights of a user's items.

    The weights are random, equal, just below the cutoff, or have very small gaps.
    """
    kind = rng.integers(5)
    if kind == 0:
        return (rng.random(size) * cutoff).astype(np.int64)
    if kind == 1:
        return np.full(size, int(rng.random() * cutoff))
    if kind == 2:
        return cutoff - rng.integers(0, 3, size)
    if kind == 3:
        return cutoff - (2.0 ** rng.uniform(0, log2(cutoff), size)).astype(np.int64)
    return np.where(rng.random(size) < 0.1, 0, cutoff - rng.integers(0, 2**20, size))


def exact_l2_step(gaps, unit):
    """Return the projection of the gaps onto the unit ball, in grid units."""
    length = fifty.sqrt(fifty.fsum(fifty.mpf(int(gap)) ** 2 for gap in gaps)) / unit
    return [fifty.mpf(int(gap)) / max(length, fifty.mpf(1)) for gap in gaps]


@pytest.mark.parametrize("top", [1.0, 10.0, 3000.0, 2.0**20])
def test_the_error_of_an_l2_descent_step_is_at_most_the_charged_error(top, record_property):
    """The test covers 1 to 2000 items and weights up to the cutoff, and records the largest share of the charge."""
    rng, worst = np.random.default_rng(ceil(top)), 0.0
    for _ in range(120):
        size = int(rng.choice([1, 2, 3, 10, 100, 2000], p=[0.2, 0.2, 0.2, 0.2, 0.15, 0.05]))
        setting = RuleSetting(size, 2, bits_below(top), round(top * 2 ** bits_below(top)))
        weights = some_weights(rng, size, setting.cutoff).clip(0, setting.cutoff)
        histogram = weights.copy()
        PolicyGaussian().add(histogram, np.arange(size, dtype=np.int32), np.array([0, size]), setting)
        exact = exact_l2_step(setting.cutoff - weights, setting.unit)
        apart = fifty.sqrt(
            fifty.fsum((int(new - old) - step) ** 2 for new, old, step in zip(histogram, weights, exact, strict=True))
        )
        charged = PolicyGaussian().step_error(setting) * setting.unit
        worst = max(worst, float(apart / charged))
        assert (histogram <= setting.cutoff).all()
    assert worst <= 1.0
    record_property("figure", f"cutoff {top:g}: {worst:.2f} of the charged error")


@pytest.mark.parametrize("top", [1.0, 10.0, 2.0**20])
def test_a_step_of_l1_descent_leaves_less_than_a_unit_per_item(top):
    """All items rise by the same integer amount, up to the cutoff, and by at most 1 in total.

    Less than one grid unit per item remains.
    """
    rng = np.random.default_rng(ceil(top))
    for _ in range(300):
        size = int(rng.choice([1, 2, 3, 10, 100]))
        setting = RuleSetting(size, 1, bits_below(top), round(top * 2 ** bits_below(top)))
        weights = some_weights(rng, size, setting.cutoff).clip(0, setting.cutoff)
        histogram = weights.copy()
        PolicyLaplace().add(histogram, np.arange(size, dtype=np.int32), np.array([0, size]), setting)
        steps, gaps = histogram - weights, setting.cutoff - weights
        level = int(steps.max())
        assert (steps == np.minimum(gaps, level)).all()
        assert int(steps.sum()) <= setting.unit
        assert int(steps.sum()) > setting.unit - size or (steps == gaps).all()


def test_the_charged_error_is_small():
    """For typical parameters, the total charge for 2^33 users is below 2e-5."""
    setting = RuleSetting(100, 2, bits_below(10.0))
    assert PolicyGaussian().sensitivity(setting) - 1 < 2e-5
    assert PolicyGaussian().step_error(setting) == 8 * 2.0**-53 + sqrt(100) / setting.unit
