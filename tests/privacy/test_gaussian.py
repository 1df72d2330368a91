"""Tests that compare the analytic Gaussian mechanism with computations to eighty digits and with dp-accounting."""

import math

import numpy as np
import oracle
import pytest
from dp_accounting import gaussian_mechanism
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st

from voxpop.errors import BudgetError
from voxpop.privacy import precise
from voxpop.privacy.gaussian import delta, log_delta, sigma

EPSILONS = (1e-3, 0.01, 0.3, 1.0, 3.0, 10.0, 50.0)
DELTAS = (1e-300, 1e-100, 1e-12, 1e-7, 1e-3, 0.1)


def relative_error(epsilon, mu):
    exact = oracle.gaussian_delta(epsilon, mu)
    if exact < 1e-300:
        return 0.0
    return abs(float(precise.context.expm1(precise.number(float(log_delta(epsilon, mu))) - precise.context.log(exact))))


@settings(max_examples=300)
@given(st.floats(-4, 2), st.floats(-6, 1.3), st.sampled_from([1, 1, -1]))
def test_delta_is_accurate_to_eleven_digits(log_epsilon, log_mu, sign):
    """For epsilon of either sign and mu over seven decades, the relative error is below 1e-11."""
    assert relative_error(sign * 10**log_epsilon, 10**log_mu) < 1e-11


@pytest.mark.parametrize("mu", [0.2499999, 0.25, 1e-9, 12.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-12, -1e-12, 1e-3, -5.0])
def test_delta_is_correct_at_the_boundary_of_two_formulas(epsilon, mu):
    """Delta is also accurate at values of epsilon near 0."""
    assert relative_error(epsilon, mu) < 1e-11


def test_delta_without_a_shift_is_zero():
    """With a mu of 0, both distributions are the same, so delta is 0, or 1 - e^epsilon if epsilon is negative."""
    assert delta(1.0, 0.0) == 0.0
    assert delta(-1.0, 0.0) == pytest.approx(1 - math.exp(-1), rel=1e-15)


def test_delta_is_never_nan():
    """Extreme arguments underflow to 0 or saturate at 1."""
    values = np.exp(log_delta([700.0, 700.0, -700.0, 1e-300, 1.0], [1e-300, 1e3, 1e-300, 1e-300, 1e-160]))
    assert not np.isnan(values).any()
    assert values[0] == 0
    assert values[1:3].tolist() == [1, 1]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta_target", DELTAS)
def test_sigma_is_the_smallest_private_sigma(epsilon, delta_target):
    """Computed to eighty digits, delta is at most the target at sigma, but not if sigma is smaller by 1e-12."""
    found = sigma(epsilon, delta_target)
    assert oracle.gaussian_delta(epsilon, 1 / precise.number(found)) <= delta_target
    assert oracle.gaussian_delta(epsilon, 1 / precise.number(found * (1 - 1e-12))) > delta_target


@pytest.mark.parametrize(("epsilon", "delta_target"), [(3, math.exp(-10)), (1, 1e-5), (0.01, 1e-6), (8, 1e-12)])
def test_sigma_agrees_with_dp_accounting(epsilon, delta_target):
    """The relative error is at most 1e-9."""
    expected = gaussian_mechanism.get_sigma_gaussian(epsilon, delta_target)
    assert sigma(epsilon, delta_target) == pytest.approx(expected, rel=1e-9)
    assert sigma(epsilon, delta_target, 7.0) == pytest.approx(7 * expected, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "scale"), [(3.0, 1.28), (1.0, 3.9), (0.5, 2.0)])
def test_delta_agrees_with_the_privacy_loss_distribution(epsilon, scale):
    """The relative error is at most 1e-6."""
    loss = privacy_loss_distribution.from_gaussian_mechanism(scale, value_discretization_interval=1e-3)
    assert delta(epsilon, 1 / scale) == pytest.approx(loss.get_delta_for_epsilon(epsilon), rel=1e-6)


def test_sigma_equals_known_values():
    """The known value is for epsilon 3 and delta e^-10 / 2, as in the papers."""
    assert sigma(3, math.exp(-10) / 2) == pytest.approx(1.33279, abs=5e-6)


@pytest.mark.parametrize(
    ("epsilon", "delta_target", "sensitivity"),
    [(0, 1e-5, 1), (float("nan"), 1e-5, 1), (1, 0, 1), (1, 1, 1), (1, 1e-301, 1), (1, 1e-5, 0), (1e9, 1e-5, 1)],
)
def test_parameters_of_sigma_out_of_range_are_rejected(epsilon, delta_target, sensitivity):
    """Parameters out of range raise a `BudgetError` instead of returning NaN."""
    with pytest.raises(BudgetError):
        sigma(epsilon, delta_target, sensitivity)
