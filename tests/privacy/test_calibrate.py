"""Tests that calibration gives known values, spends the whole budget but never more, and raises clear errors."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxpop.errors import BudgetError
from voxpop.privacy.budget import Budget
from voxpop.privacy.calibrate import calibrate, total_delta
from voxpop.privacy.gaussian import UniqueItems

PAPER = Budget(3, math.exp(-10))


def novelty(shape="symmetric", limit=100, norm=2):
    return UniqueItems(limit=limit, shape=shape, least=limit ** (-1 / norm) * (1 - 2**-30), norm=norm)


@pytest.mark.parametrize(
    ("budget", "limit", "sigma", "threshold"),
    [
        (PAPER, 100, 1.33279, 6.82366),
        (PAPER, 300, 1.33279, 7.05613),
        (Budget(1, 1e-5), 100, 3.88414, 20.78974),
        (Budget(4, 1e-7), 100, 1.32790, 8.21271),
    ],
)
@pytest.mark.parametrize("shape", ["symmetric", "even"])
def test_noise_and_threshold_equal_the_published_values(budget, limit, sigma, threshold, shape):
    """The budget split of the papers gives the numbers of the papers."""
    found = calibrate(budget, novelty(shape, limit), accounting="published")
    assert found.scale == pytest.approx(sigma, abs=5.1e-6)
    assert found.threshold == pytest.approx(threshold, abs=5.1e-6)


@pytest.mark.parametrize(
    ("budget", "limit", "sigma", "threshold"),
    [
        (PAPER, 100, 1.28240, 6.39736),
        (PAPER, 300, 1.28242, 6.62599),
        (Budget(1, 1e-5), 100, 3.73067, 19.49700),
        (Budget(4, 1e-7), 100, 1.29786, 7.88429),
    ],
)
@pytest.mark.parametrize("shape", ["symmetric", "even", "fixed"])
def test_joint_accounting_gives_the_tabulated_noise_and_threshold(budget, limit, sigma, threshold, shape):
    """The relative error is at most 1e-4."""
    found = calibrate(budget, novelty(shape, limit))
    assert found.scale == pytest.approx(sigma, rel=1e-4)
    assert found.threshold == pytest.approx(threshold, rel=1e-4)


def test_the_published_threshold_of_fixed_weights_scales_with_the_weight():
    """If weights and sensitivity are ten times as large, noise and threshold are ten times as large, too."""
    found = calibrate(PAPER, UniqueItems(100, "fixed", 1.0, 2), accounting="published", sensitivity=10.0)
    scaled = calibrate(PAPER, UniqueItems(100, "fixed", 0.1, 2), accounting="published")
    assert found.scale == pytest.approx(10 * scaled.scale, rel=1e-12)
    assert found.threshold == pytest.approx(10 * scaled.threshold, rel=1e-8)


@pytest.mark.jit
@settings(max_examples=30)
@given(
    epsilon=st.floats(0.1, 8),
    log_delta=st.floats(-14, -2),
    limit=st.integers(1, 700),
    shape=st.sampled_from(["fixed", "even", "symmetric"]),
    noise=st.sampled_from(["gaussian", "laplace"]),
    accounting=st.sampled_from(["joint", "published"]),
    sensitivity=st.sampled_from([1.0, 1.0001]),
)
def test_the_budget_is_not_exceeded(epsilon, log_delta, limit, shape, noise, accounting, sensitivity):
    """For any parameters, the certified delta of the final numbers is within the budget."""
    budget = Budget(epsilon, 10**log_delta)
    case = novelty(shape, limit, 1 if noise == "laplace" else 2)
    arguments = {"noise": noise, "sensitivity": sensitivity}
    scale = calibrate(budget, case, accounting=accounting, **arguments)
    assert math.ldexp(scale.threshold, 32) == int(math.ldexp(scale.threshold, 32))
    assert scale.delta == total_delta(scale, epsilon, case, **arguments) <= budget.delta


@pytest.mark.parametrize("shape", ["fixed", "even", "symmetric"])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_nearly_the_whole_budget_is_spent(shape, noise):
    """Delta is spent to a relative error of 1e-6.

    A threshold that is lower by 0.001 or less noise exceeds the budget.
    """
    case = novelty(shape, norm=1 if noise == "laplace" else 2)
    scale = calibrate(PAPER, case, noise=noise)
    assert total_delta(scale, 3, case, noise=noise) == pytest.approx(PAPER.delta, rel=1e-6)
    for change in ({"threshold": scale.threshold - 1e-3}, {"scale": scale.scale * 0.999}):
        assert total_delta(replace(scale, **change), 3, case, noise=noise) > PAPER.delta


@pytest.mark.parametrize("shape", ["fixed", "even", "symmetric"])
def test_joint_accounting_needs_less_noise_and_a_lower_threshold(shape):
    """The comparison is with published accounting at the same budget."""
    old, new = calibrate(PAPER, novelty(shape), accounting="published"), calibrate(PAPER, novelty(shape))
    assert new.scale < old.scale
    assert new.threshold < old.threshold


def test_the_chosen_sigma_is_optimal_according_to_the_documented_rule():
    """No larger sigma gives a lower weight at which an item is released with probability 0.9."""
    case = novelty("even", 20)
    budget = Budget(1, 1e-3)
    found = calibrate(budget, case)
    cost = found.threshold + 1.2815515655446004 * found.scale
    for factor in (1.0003, 1.001, 1.003, 1.01, 1.03, 1.1):
        sigma = found.scale * factor
        rival = replace(found, scale=sigma, threshold=cost - 1e-4 - 1.2815515655446004 * sigma)
        assert total_delta(rival, 1, case, noise="gaussian") > budget.delta


def test_the_laplace_scale_is_sensitivity_over_epsilon():
    """Joint and published accounting give the same Laplace scale."""
    for accounting in ("joint", "published"):
        found = calibrate(PAPER, novelty(norm=1), noise="laplace", accounting=accounting, sensitivity=1.0)
        assert found.scale == pytest.approx(1 / 3, rel=1e-12)
        assert found.scale >= 1 / 3


def test_the_mu_of_other_releases_increases_delta():
    """The mu of releases of known items is added. Laplace noise has no mu, so `mu_rest` raises an error."""
    case, scale = novelty(), calibrate(PAPER, novelty())
    alone = total_delta(scale, 3, case, noise="gaussian")
    assert total_delta(scale, 3, case, noise="gaussian", mu_rest=0.3) > alone * 2
    laplace = calibrate(PAPER, novelty(norm=1), noise="laplace")
    with pytest.raises(BudgetError, match="mu_rest"):
        total_delta(laplace, 3, novelty(norm=1), noise="laplace", mu_rest=0.3)


@pytest.mark.parametrize(
    ("budget", "changes", "message"),
    [
        (Budget(3, 0), {}, "delta"),
        (Budget(3, 1e-30), {}, "128 random bits"),
        (Budget(60, 1e-7), {}, "128 random bits"),
        (PAPER, {"noise": "cauchy"}, "noise"),
        (PAPER, {"accounting": "hopeful"}, "accounting"),
        (PAPER, {"noise": "laplace"}, "norm"),
        (PAPER, {"sensitivity": math.inf}, "sensitivity"),
        (PAPER, {"sensitivity": 0.5}, "smallest weight"),
        (PAPER, {"grid": 1e-19}, "threshold"),
    ],
)
def test_invalid_requests_are_rejected(budget, changes, message):
    """Calibration raises a `BudgetError` that names the wrong parameter."""
    with pytest.raises(BudgetError, match=message):
        calibrate(budget, novelty(), **changes)


@pytest.mark.parametrize("limit", [1, 10**6])
@pytest.mark.parametrize("shape", ["fixed", "even", "symmetric"])
def test_extreme_limits_can_be_calibrated(limit, shape):
    """The limits are one item and a million items."""
    found = calibrate(PAPER, novelty(shape, limit))
    assert 0.999 * PAPER.delta < found.delta <= PAPER.delta


@pytest.mark.parametrize("budget", [Budget(1e-3, 1e-20), Budget(1e-3, 0.1), Budget(20, 1e-6), Budget(0.5, 0.9)])
def test_extreme_budgets_can_be_calibrated(budget):
    """The budgets are very small or very large."""
    case = novelty(limit=30)
    scale = calibrate(budget, case)
    assert total_delta(scale, budget.epsilon, case, noise="gaussian") <= budget.delta


@pytest.mark.parametrize(
    ("accounting", "sigma", "threshold"), [("published", 3.98371, 24.4381), ("joint", 3.89353, 23.5613)]
)
def test_the_first_of_nine_lengths_has_the_tabulated_noise_and_threshold(accounting, sigma, threshold):
    """In this setting, DPNE has nine lengths with equal noise, at epsilon 4, delta 1e-7 and limit 100.

    Each accounting has its own noise and threshold for the first length.
    """
    found = calibrate(Budget(4, 1e-7), novelty(), accounting=accounting, rest=math.sqrt(8))
    assert found.scale == pytest.approx(sigma, abs=2e-5)
    assert found.threshold == pytest.approx(threshold, abs=3e-4)
    spent = total_delta(found, 4, novelty(), noise="gaussian", mu_rest=math.sqrt(8) / found.scale)
    assert spent <= 1e-7


def test_budget_for_later_rounds_increases_the_noise_of_the_first_round():
    """Laplace noise does not support later rounds."""
    alone, beside = (calibrate(PAPER, novelty(), rest=rest) for rest in (0.0, 1.0))
    assert beside.scale > 1.3 * alone.scale
    with pytest.raises(BudgetError, match="rest"):
        calibrate(PAPER, novelty(norm=1), noise="laplace", rest=1.0)
