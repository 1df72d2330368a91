"""Tests of selection by Rényi divergence at one order, including the exact privacy of worst cases."""

from itertools import product
from math import exp

import numpy as np
import pytest
from benchmarks.baselines.held import PrivatePairs
from benchmarks.baselines.renyi import (
    Selection,
    divergence_at,
    one_round,
    private_mad2r_renyi,
    private_policy_renyi,
    private_weighted_renyi,
    selection,
    two_rounds,
)
from scipy.stats import binom

from support.strategies import as_arrays
from voxpop.privacy.budget import Budget
from voxpop.privacy.secret import Secret

pytestmark = [pytest.mark.jit, pytest.mark.slow]

BUDGET = Budget(3, exp(-10))


def worst_delta(chosen: Selection, epsilon: float, sizes: tuple[int, ...] = (1, 4, 16)) -> float:
    """Return the largest exact delta of a user with n items.

    Some items are novel, and the remaining items have the same weight.
    """
    found = []
    for held, weight in product(sizes, np.arange(0.25, 12, 0.25)):
        share = held**-0.5
        for novel in {0, 1, held // 2, held}:
            with_user = [(novel, chance(chosen, share)), (held - novel, chance(chosen, weight + share))]
            without = [(novel, 0.0), (held - novel, chance(chosen, weight))]
            p, q = (np.outer(*(binom.pmf(range(n + 1), n, each) for n, each in law)) for law in (with_user, without))
            found += [np.maximum(p - exp(epsilon) * q, 0).sum(), np.maximum(q - exp(epsilon) * p, 0).sum()]
    return float(max(found))


def chance(chosen: Selection, weight: float) -> float:
    """Return the release probability of a weight, rounded down to the grid."""
    return float(chosen.chances[min(int(weight / chosen.step + 1e-9), chosen.chances.size - 1)])


@pytest.mark.parametrize("budget", [BUDGET, Budget(1, 1e-5)], ids=str)
def test_exact_delta_of_even_shares_is_within_the_budget(budget, record_property):
    """At a limit of 16, the delta of users with 1, 4 and 16 items is at most the budget and close to it."""
    found = worst_delta(one_round(budget, 16), budget.epsilon)
    assert 0.9 * budget.delta < found <= budget.delta * (1 + 1e-6)
    record_property("figure", f"{found / budget.delta:.4f} of delta")


def test_a_selection_at_twice_the_divergence_is_detected():
    """The exact search finds that the delta of a broken variant exceeds the budget."""
    tau = divergence_at(6.5, BUDGET.epsilon, BUDGET.delta)
    broken = selection(6.5, 2 * tau, BUDGET.delta, 0.25, 0.05)
    assert worst_delta(broken, BUDGET.epsilon) > 2 * BUDGET.delta


def test_weights_for_two_release_probabilities_equal_independent_values():
    """For (3, e^-10) and limit 100, the weights are 6.06 and 7.50. These values were computed without the grid."""
    chosen = one_round(BUDGET, 100)
    assert chosen.weight_of(0.5) == pytest.approx(6.06, abs=0.04)
    assert chosen.weight_of(0.9) == pytest.approx(7.50, abs=0.04)
    assert (np.diff(chosen.chances) >= 0).all()


def test_the_second_of_two_rounds_releases_at_higher_weights():
    """The first round uses a tenth of the divergence, so its noise is large."""
    scale, second = two_rounds(BUDGET, 100)
    assert one_round(BUDGET, 100).weight_of(0.5) < second.weight_of(0.5) < 1.4 * one_round(BUDGET, 100).weight_of(0.5)
    assert scale.threshold > second.weight_of(0.5)


@pytest.mark.parametrize("algorithm", [private_weighted_renyi, private_policy_renyi, private_mad2r_renyi])
def test_common_items_are_released_and_unique_items_are_not(algorithm):
    """Two thousand users have items 0 to 9, and only user j has item 10 + j (false alarm below 1e-8)."""
    items, starts = as_arrays([[*range(10), 10 + j] for j in range(2000)])
    released = algorithm(
        PrivatePairs(items, starts, np.ones_like(items), 2010), Budget(3, 1e-9), 100, Secret.from_seed(1)
    )
    assert released[:10].all()
    assert not released[10:].any()
