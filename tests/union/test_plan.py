"""Tests of plans and their numbers, which are computed without data."""

import numpy as np
import pytest

import voxpop as vp
from voxpop.errors import InputError
from voxpop.privacy.weightings.builtin import WEIGHTINGS

PAPER = vp.Budget(epsilon=3, delta=np.exp(-10))


@pytest.mark.parametrize("weighting", ["weighted", "policy-gaussian"])
def test_published_accounting_has_the_numbers_of_the_paper(weighting):
    """At epsilon 3, delta e^-10 and limit 100, the formulas of the paper give sigma 1.33279 and threshold 6.82366."""
    plan = vp.papers.SetUnion(weighting=weighting).plan(PAPER)
    assert plan.sigma == pytest.approx(1.33279, rel=3e-5)
    assert plan.threshold == pytest.approx(6.82366, rel=3e-5)


def test_joint_accounting_lowers_the_noise_and_the_threshold():
    """The exact bound of docs/privacy/set-union.md gives a sigma near 1.2824 and a threshold near 6.3974."""
    plan = vp.papers.SetUnion(100, "policy-gaussian", 5.0, "joint").plan(PAPER)
    assert plan.sigma < 1.2960
    assert plan.threshold < 6.41
    assert plan.threshold + plan.sigma < 6.39736 + 1.28240 + 2e-3


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("accounting", ["joint", "published"])
def test_no_plan_spends_more_than_its_budget(weighting, accounting):
    """The plans also spend a large part of the budget."""
    plan = vp.papers.SetUnion(20, weighting, accounting=accounting).plan(PAPER)
    assert plan.delta_spent <= PAPER.delta
    assert plan.delta_spent > (0.98 if accounting == "joint" else 0.4) * PAPER.delta


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 2, 1000, 10**6])
@pytest.mark.parametrize("epsilon", [0.01, 1, 20])
@pytest.mark.parametrize("delta", [1e-12, 1e-3])
def test_extreme_parameters_have_finite_plans(limit, epsilon, delta):
    """Sigma and threshold are finite, and delta is within the budget."""
    plan = vp.papers.SetUnion(limit, "policy-gaussian", 5.0, "joint").plan(vp.Budget(epsilon, delta))
    assert 0 < plan.delta_spent <= delta
    assert np.isfinite([plan.sigma, plan.threshold]).all()


def test_the_number_of_users_needed_depends_on_the_threshold_and_the_share():
    """A user with n items gives each item 1/sqrt(n), so 100 items per user need ten times as many users."""
    plan = vp.papers.SetUnion(100, "policy-gaussian", 5.0, "joint").plan(PAPER)
    assert plan.users_needed(0.5, per_user=1) == int(np.ceil(plan.threshold))
    assert plan.users_needed(0.5, per_user=100) == int(np.ceil(plan.threshold * 10))
    assert plan.users_needed(0.9, per_user=10) > plan.users_needed(0.5, per_user=10)
    assert plan.users_needed(0.5, per_user=10_000) > 50 * plan.users_needed(0.5, per_user=100)


def test_no_number_of_users_reaches_the_threshold_if_weights_are_too_low():
    """With alpha 0, the cutoff is the threshold, so the probability is at most 0.5 for any number of users."""
    plan = vp.papers.SetUnion(100, "policy-gaussian", 0.0, "joint").plan(PAPER)
    assert plan.users_needed(0.9) is None
    assert "never" in str(plan)


def test_optimal_selection_needs_fewer_users_than_gaussian_noise():
    """With one item per user, no Gaussian noise is necessary."""
    optimal = vp.papers.OptimalSelection().plan(PAPER)
    published = vp.papers.SetUnion(1, "policy-gaussian").plan(PAPER)
    assert optimal.last.noise == "optimal"
    assert optimal.users_needed(0.5) < published.users_needed(0.5)


def test_the_text_of_a_plan_contains_its_numbers():
    """The text contains the weighting, the guarantee, sigma and the number of users needed."""
    text = str(vp.papers.SetUnion(100, "policy-gaussian", 5.0, "joint").plan(vp.Budget(4, 1e-7)))
    for part in ("policy-gaussian", "(4, 1e-07)-DP", "sigma", "0.99", "items of each"):
        assert part in text


@pytest.mark.parametrize(
    "mechanism", [vp.Items(), vp.papers.SetUnion(100, "policy-gaussian", 5.0, "joint"), vp.NGrams(2), vp.HeavyHitters()]
)
@pytest.mark.parametrize("budget", ["4", 4, None, (4, 1e-7)])
def test_values_that_are_not_budgets_are_rejected(mechanism, budget):
    """The error message of every mechanism mentions `Budget`."""
    with pytest.raises(InputError, match="Budget"):
        mechanism.plan(budget)
