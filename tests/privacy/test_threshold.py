"""Tests of thresholds for novel items in one round."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxpop.errors import BudgetError
from voxpop.privacy import precise
from voxpop.privacy.gaussian import UniqueItems, cells, exceeded_with, log_below, lowest_threshold, release_probability

SHAPES = ("fixed", "even", "symmetric")


def novelty(shape="symmetric", limit=100, norm=2):
    return UniqueItems(limit=limit, shape=shape, least=limit ** (-1 / norm), norm=norm)


@pytest.mark.parametrize(("limit", "threshold"), [(100, 6.82366), (300, 7.05613)])
def test_the_gaussian_threshold_equals_the_published_threshold(limit, threshold):
    """The threshold equals that of the papers at epsilon 3 and delta e^-10."""
    found = lowest_threshold(novelty(limit=limit), "gaussian", 1.3327913294, math.exp(-10) / 2, 1.0)
    assert found == pytest.approx(threshold, abs=5e-6)


def test_the_laplace_threshold_equals_the_published_formula():
    """The relative error is at most 1e-9."""
    epsilon, delta = 3.0, math.exp(-10)
    expected = max(1 / t + math.log(1 / (2 * (1 - (1 - delta) ** (1 / t)))) / epsilon for t in range(1, 101))
    found = lowest_threshold(novelty(norm=1), "laplace", 1 / epsilon, delta, 1.0)
    assert found == pytest.approx(expected, rel=1e-9)


def test_the_laplace_threshold_can_be_below_the_weight():
    """If delta is above one half, the threshold is below the weight, and the tail formula of the papers is wrong."""
    single = novelty(limit=1, norm=1)
    threshold = lowest_threshold(single, "laplace", 1.0, 0.9, 1.0)
    assert threshold == pytest.approx(1 + math.log(0.2), rel=1e-12)
    assert release_probability(single, "laplace", 1.0, threshold, 1.0) == pytest.approx(0.9, rel=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@given(scale=st.floats(0.1, 30), log_delta=st.floats(-12, -0.1), limit=st.integers(1, 3000))
def test_the_threshold_releases_novel_items_with_the_given_probability(shape, noise, scale, log_delta, limit):
    """At the threshold for delta, the probability that a novel item is released equals delta to 1e-9."""
    case = novelty(shape, limit, 1 if noise == "laplace" else 2)
    threshold = lowest_threshold(case, noise, scale, 10**log_delta, 1.0)
    found = release_probability(case, noise, scale, threshold, 1.0)
    assert found == pytest.approx(10**log_delta, rel=1e-9)


@given(st.integers(1, 10**6))
def test_cells_cover_every_number_once(limit):
    """Cells are contiguous from 1 to the limit, contain one number up to 1024, and are at most half a percent wide."""
    fewest, most = cells(limit)
    assert fewest[0] == 1
    assert most[-1] == limit
    assert (fewest[1:] == most[:-1] + 1).all()
    assert (most[fewest <= min(limit, 1024)] <= fewest[fewest <= min(limit, 1024)]).all()
    assert (most <= np.maximum(fewest, fewest * 1.005)).all()


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_noise_tails_are_accurate_to_twelve_digits(noise):
    """The logarithm of the distribution function agrees with a computation to eighty digits in both tails."""
    exact = precise.normal_below if noise == "gaussian" else precise.laplace_below
    points = np.linspace(-30, 30, 241)
    found = log_below(noise, points)
    for x, value in zip(points.tolist(), found.tolist(), strict=True):
        assert value == pytest.approx(float(precise.context.log(exact(precise.number(x)))), rel=1e-12)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@given(log_p=st.floats(-25, -0.001))
def test_noise_exceeds_its_quantile_with_the_requested_probability(noise, log_p):
    """The relative error is at most 1e-9."""
    x = exceeded_with(noise, np.array([10**log_p]))
    exact = precise.normal_below if noise == "gaussian" else precise.laplace_below
    assert float(exact(-precise.number(float(x[0])))) == pytest.approx(10**log_p, rel=1e-9)


@pytest.mark.parametrize(
    "fields",
    [
        {"limit": 0},
        {"shape": "odd"},
        {"least": 0.0},
        {"least": float("nan")},
        {"norm": 3},
    ],
)
def test_invalid_novelty_bounds_are_rejected(fields):
    """The cases are one invalid value of each field."""
    with pytest.raises(BudgetError):
        UniqueItems(**({"limit": 10, "shape": "even", "least": 0.1, "norm": 2} | fields))
