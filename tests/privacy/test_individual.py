"""Tests of individual budgets. Costs are whole numbers, and bounds and noise are rounded to the safe side."""

from fractions import Fraction
from math import isqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxpop.errors import InternalError
from voxpop.privacy.individual import BOUND_STEPS, MOST_BOUND, WHOLE, IndividualFilter

CAPS = st.floats(1e-6, 1e3)
COSTS = st.one_of(st.integers(1, WHOLE), st.sampled_from([1, 2, WHOLE - 1, WHOLE]))
SENSITIVITIES = st.one_of(st.just(1.0), st.floats(1.0, 2.0), st.floats(1e-12, 1e-3).map(lambda more: 1.0 + more))
PACES = st.none() | st.lists(st.integers(0, BOUND_STEPS), min_size=1, max_size=6).map(tuple)
LEFT = st.one_of(st.integers(0, WHOLE), st.sampled_from([0, 1, WHOLE]))


def naive_cost(charge, left, holds, run):
    """Return the payment of one user, computed with Python integers."""
    if not holds:
        return 0
    if charge.rates is None:
        return min(charge.cost, left)
    part = charge.rates[min(run, len(charge.rates) - 1)]
    return min(left * part // 2**20, MOST_BOUND**2 * charge.cost, left)


def naive_reach(charge, cost):
    """Return the largest number of steps r with r + (S - 1) <= S sqrt(cost / charge), computed with integer roots."""
    sensitivity = Fraction(charge.sensitivity)
    scaled = isqrt(int(sensitivity**2 * cost * 2**120 / charge.cost))  # S sqrt(cost / charge) 2^60, rounded down
    return max(0, min((Fraction(scaled, 2**60) - (sensitivity - 1)) * BOUND_STEPS // 1, MOST_BOUND * BOUND_STEPS))


@given(CAPS, COSTS, SENSITIVITIES, PACES, st.lists(st.tuples(LEFT, st.booleans(), st.integers(0, 9)), min_size=1))
def test_costs_equal_the_reference_and_are_at_most_the_remaining_budget(cap, cost, sensitivity, rates, users):
    """Costs are integers, in units of 2^-40 of the cap."""
    charge = IndividualFilter(cap).charge(cost, sensitivity, rates)
    left, holds, runs = (np.array(column) for column in zip(*users, strict=True))
    costs = charge.costs(left, holds, runs)
    assert costs.tolist() == [naive_cost(charge, *user) for user in users]
    assert (costs <= left).all()


@given(CAPS, COSTS, SENSITIVITIES, PACES, st.lists(LEFT, min_size=1))
def test_no_user_moves_the_weights_further_than_charged(cap, cost, sensitivity, rates, left):
    """In exact fractions, (bound + S - 1)^2 / sigma^2 is at most the mu^2 that the user paid."""
    keeper = IndividualFilter(cap)
    charge = keeper.charge(cost, sensitivity, rates)
    costs = charge.costs(np.array(left), np.ones(len(left), bool), np.full(len(left), 3))
    for paid, steps in zip(costs.tolist(), charge.bounds(costs).tolist(), strict=True):
        bound = Fraction(steps, BOUND_STEPS)
        assert 0 <= steps <= naive_reach(charge, paid) <= steps + max(1, steps // 2**40) + 1
        moved = bound + Fraction(sensitivity) - 1 if steps else 0
        assert (moved / Fraction(charge.sigma)) ** 2 <= keeper.square(paid)
    assert charge.square == Fraction(cap) * cost / WHOLE
    assert (Fraction(sensitivity) / Fraction(charge.sigma)) ** 2 <= charge.square


@given(CAPS, st.lists(st.tuples(COSTS, SENSITIVITIES, PACES, st.booleans(), st.integers(0, 9)), max_size=40))
def test_no_sequence_of_charges_spends_more_than_the_cap(cap, passes):
    """For any charges in any order, the squares add up to at most the cap, in exact fractions."""
    keeper, left, total = IndividualFilter(cap), np.array([WHOLE]), Fraction(0)
    for cost, sensitivity, rates, holds, run in passes:
        charge = keeper.charge(cost, sensitivity, rates)
        costs = charge.costs(left, np.array([holds]), np.array([run]))
        steps = int(charge.bounds(costs)[0])
        if steps:
            total += ((Fraction(steps, BOUND_STEPS) + Fraction(sensitivity) - 1) / Fraction(charge.sigma)) ** 2
        left = left - costs
        assert 0 <= left[0] <= WHOLE
    assert total <= Fraction(cap)


def test_a_user_without_candidates_pays_nothing_and_adds_no_weight():
    """Users without candidates keep their budget for other passes."""
    charge = IndividualFilter(1.0).charge(WHOLE // 2, 1.001)
    costs = charge.costs(np.array([WHOLE, WHOLE]), np.array([True, False]))
    assert costs.tolist() == [WHOLE // 2, 0]
    assert charge.bounds(costs).tolist() == [BOUND_STEPS - 1, 0]


def test_users_who_pay_less_than_the_rounding_error_add_no_weight():
    """Such a small payment does not cover the rounding errors in the weights of later users."""
    charge = IndividualFilter(1.0).charge(WHOLE, 1.1)
    assert charge.bounds(np.array([WHOLE // 200])).tolist() == [0]


@pytest.mark.parametrize(("cost", "rates"), [(0, None), (WHOLE + 1, None), (1, (BOUND_STEPS + 1,)), (1, (-1,))])
def test_charges_and_rates_out_of_range_are_rejected(cost, rates):
    """A charge of zero, a charge above the whole budget, and rates outside of [0, 1] raise an error."""
    with pytest.raises(InternalError, match="charged"):
        IndividualFilter(1.0).charge(cost, 1.0, rates)


def test_rates_require_runs():
    """With rates, a payment depends on the longest run of the user, so missing runs raise an error."""
    charge = IndividualFilter(1.0).charge(1, 1.0, (0, 1))
    assert charge.by_runs
    with pytest.raises(InternalError, match="runs"):
        charge.costs(np.array([WHOLE]), np.array([True]))
