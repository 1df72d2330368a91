"""Tests that kernels equal reference implementations and do not exceed their guaranteed sensitivities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive import weighing as naive
from searches.sensitivity import neighbour_distance
from support.strategies import as_arrays, bounded_users
from voxpop.privacy.weightings.builtin import WEIGHTINGS
from voxpop.privacy.weightings.rule import RuleSetting

LIMIT = 6
CUTOFFS = st.floats(1.0, 6.0)
SOUND = [(name, each.norm) for name, each in WEIGHTINGS.items()]


def kernel_weights(name: str, norm: int, users: list[list[int]], cutoff: float) -> dict[int, float]:
    """Return the nonzero weights of the real kernel as floats."""
    weighting_rule = WEIGHTINGS[name]
    bits = weighting_rule.bits(cutoff)
    setting = RuleSetting(LIMIT, norm, bits, round(cutoff * 2**bits))
    histogram = np.zeros(8, np.int64)
    weighting_rule.add(histogram, *as_arrays(users), setting)
    return {item: weight / setting.unit for item, weight in enumerate(histogram) if weight}


def naive_weights(name: str, norm: int, users: list[list[int]], cutoff: float) -> dict[int, float]:
    """Return the weights that the paper's loops compute."""
    loops = {
        "count": lambda: naive.weigh_count(users, LIMIT, norm),
        "weighted": lambda: naive.weigh_weighted(users, norm),
        "policy-laplace": lambda: naive.weigh_l1_descent(users, cutoff),
        "policy-gaussian": lambda: naive.weigh_l2_descent(users, cutoff),
    }
    return loops[WEIGHTINGS[name].name]()


@pytest.mark.parametrize(("name", "norm"), SOUND)
@given(users=bounded_users(), cutoff=CUTOFFS)
def test_every_kernel_equals_the_loops_of_the_paper(name, norm, users, cutoff):
    """Every kernel gives weight to the same items as the reference implementation, with weights rounded to the grid."""
    ours, theirs = kernel_weights(name, norm, users, cutoff), naive_weights(name, norm, users, cutoff)
    assert ours.keys() == theirs.keys()
    tolerance = 2e-9 if WEIGHTINGS[name].sequential is False else 1e-12
    for item, weight in theirs.items():
        assert ours[item] == pytest.approx(weight, abs=tolerance)


@pytest.mark.parametrize(("name", "norm"), SOUND)
@given(users=bounded_users(), cutoff=CUTOFFS, data=st.data())
def test_one_user_changes_the_histogram_by_at_most_one(name, norm, users, cutoff, data):
    """Removing any user changes the real kernel's histogram by at most 1 in the norm of the noise, plus rounding."""
    extra = data.draw(st.integers(0, len(users) - 1))
    arrays = [np.array(user, np.int32) for user in users]
    distance = neighbour_distance(WEIGHTINGS[name], arrays, extra, cutoff, norm, LIMIT)
    assert distance <= 1.0 + 1e-13


@given(users=bounded_users(), cutoff=CUTOFFS, data=st.data())
def test_l1_descent_never_lowers_a_weight_when_a_user_joins(users, cutoff, data):
    """Every item has at least as many grid units with a user as without, which is the invariant of the l1 proof."""
    extra = data.draw(st.integers(0, len(users) - 1))
    more = kernel_weights("policy-laplace", 1, users, cutoff)
    less = kernel_weights("policy-laplace", 1, [u for i, u in enumerate(users) if i != extra], cutoff)
    assert all(more[item] >= weight for item, weight in less.items())


@given(users=bounded_users())
def test_additive_weights_do_not_depend_on_the_order_of_users(users):
    """Integer sums are exactly equal for any order of users."""
    for norm in (1, 2):
        assert kernel_weights("weighted", norm, users, 1.0) == kernel_weights("weighted", norm, users[::-1], 1.0)


@pytest.mark.parametrize(("name", "norm"), SOUND)
@pytest.mark.parametrize("held", [1, 2, 5, 6])
def test_weights_of_novel_items_are_within_the_declared_bounds(name, norm, held):
    """The weights of items of only one user are at least `least`.

    Their sum, or their sum of squares for l2, is at most 1.
    """
    weighting_rule = WEIGHTINGS[name]
    bits = weighting_rule.bits(3.0)
    novelty = weighting_rule.novelty(RuleSetting(LIMIT, norm, bits))
    weights = np.array(list(kernel_weights(name, norm, [list(range(held))], 3.0).values()))
    assert weights.size == held
    assert (weights >= novelty.least).all()
    assert (weights**norm).sum() <= 1.0 + 1e-14
