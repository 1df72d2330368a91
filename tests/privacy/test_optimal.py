"""Tests of the optimal rule for one item per user, including its closed form, its recursion and both tails."""

from bisect import bisect_left

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxpop.errors import BudgetError
from voxpop.privacy import precise
from voxpop.privacy.decisions import exact_probability, selection_probability


def recursion(epsilon, delta, most):
    """Return the probabilities by their definition, to eighty digits."""
    mp = precise.context
    growth, mass, values = mp.exp(mp.mpf(epsilon)), mp.mpf(delta), [mp.mpf(0)]
    for _ in range(most):
        last = values[-1]
        values.append(min(growth * last + mass, 1 - (1 - last - mass) / growth, mp.mpf(1)))
    return values


@settings(max_examples=50)
@given(st.floats(-2, 1.3), st.floats(-30, -0.05))
def test_the_closed_form_equals_the_recursion(log_epsilon, log_delta):
    """Computed to eighty digits, the closed form and the recursion agree exactly.

    In doubles, the relative error of the smaller probability is at most 1e-12.
    """
    epsilon, delta = 10**log_epsilon, 10**log_delta
    most = min(400, int(-7 * log_delta / epsilon) + 8)
    values = recursion(epsilon, delta, most)
    counts = range(0, most + 1, max(1, most // 60))
    released, missed = selection_probability(epsilon, delta, np.array(counts))
    for place, count in enumerate(counts):
        expected = values[count]
        assert abs(exact_probability(epsilon, delta, count) - expected) < 1e-60
        near, exact = (released, expected) if expected <= 0.5 else (missed, 1 - expected)
        assert float(near[place]) == pytest.approx(float(exact), rel=1e-12, abs=1e-300)


@given(st.floats(0.05, 5), st.floats(-12, -1))
def test_small_probabilities_of_a_miss_are_accurate(epsilon, log_delta):
    """For the largest counts that can be missed, the probability of a miss has a relative error of at most 1e-9."""
    delta = 10**log_delta
    always = bisect_left(range(2000), 1, key=lambda count: exact_probability(epsilon, delta, count))
    counts = np.array([*range(max(1, always - 4), always + 1), 2000])
    _, missed = selection_probability(epsilon, delta, counts)
    assert [one > 0 for one in missed.tolist()] == [*[True] * (len(counts) - 2), False, False]
    for count, miss in zip(counts.tolist(), missed.tolist(), strict=True):
        assert miss == pytest.approx(float(1 - exact_probability(epsilon, delta, count)), rel=1e-9, abs=0)


@settings(max_examples=25)
@given(st.floats(0.05, 5), st.floats(-12, -1))
def test_the_rule_is_private_and_tight(epsilon, log_delta):
    """For c and c + 1 users, P exceeds e^epsilon Q by at most delta for every event.

    For some event, the excess is exactly delta, unless the item is always released.
    """
    delta, mp = 10**log_delta, precise.context
    growth = mp.exp(mp.mpf(epsilon))
    for count in range(60):
        low, high = (exact_probability(epsilon, delta, c) for c in (count, count + 1))
        costs = [high - growth * low, (1 - low) - growth * (1 - high)]
        assert max(costs) <= mp.mpf(delta) + mp.mpf(10) ** -60
        assert high == 1 or max(costs) > mp.mpf(delta) * (1 - mp.mpf(10) ** -20)


def test_values_equal_known_values():
    """The probability is 0 without users, delta for one user, and 1 for 10^15 users."""
    released, missed = selection_probability(1.0, 1e-5, np.array([0, 1, 2, 10**15]))
    assert released[:2].tolist() == pytest.approx([0, 1e-5], rel=1e-13)
    assert released[2] == pytest.approx(1e-5 * (1 + np.e), rel=1e-13)
    assert (released[3], missed[3]) == (1, 0)
    assert exact_probability(1.0, 1e-5, -1) == 0


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 1e-5), (1, 0), (1, 1), (float("nan"), 1e-5)])
def test_invalid_parameters_are_rejected(epsilon, delta):
    """For example, a delta of 0 is invalid, because unknown items require a positive delta."""
    with pytest.raises(BudgetError):
        selection_probability(epsilon, delta, np.arange(3))
