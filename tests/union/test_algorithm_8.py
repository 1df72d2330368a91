"""Counterexamples that show why Algorithm 8 of DPSU, which is not as private as claimed, is rejected."""

import pytest

import voxpop as vp
from naive import weighing as naive
from voxpop.privacy.weightings.builtin import PolicyGaussian, PolicyLaplace
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting


def two_user_distance(cutoff: float) -> float:
    """Return the distance for an extra user with four items and a second user with two of them, one near the cutoff."""
    start = {1: cutoff - 0.5**0.5}
    larger = naive.weigh_algorithm_8([[1, 2, 3, 4], [1, 2]], cutoff, start)
    smaller = naive.weigh_algorithm_8([[1, 2]], cutoff, start)
    return naive.distance(larger, smaller, 2)


@pytest.mark.parametrize("cutoff", [3.0, 10.0, 1000.0])
def test_one_user_changes_the_weights_of_algorithm_8_by_more_than_one(cutoff):
    """The l2 distance is 1.0463... for every cutoff, but Proposition 5.1 of the paper claims at most 1."""
    assert two_user_distance(cutoff) == pytest.approx(1.0463112700, abs=1e-9)


def many_users(fresh: int) -> list[list[int]]:
    """Return later users, each with item 100 and `fresh` of the items 1 to 99 that no other later user has."""
    return [[100, *range(first, first + fresh)] for first in range(1, 100 - fresh + 1, fresh)]


@pytest.mark.parametrize(("cutoff", "fresh", "expected"), [(10.0, 9, 4.9931), (13.0, 6, 5.7736), (16.0, 4, 6.1007)])
def test_more_users_exceed_the_bound_several_times(cutoff, fresh, expected):
    """With limit 100, later users give the last item more weight if the extra user raised the other items."""
    start = {item: cutoff - (fresh + 1) ** -0.5 for item in range(1, 100)}
    later = many_users(fresh)
    everything = list(range(1, 101))
    worst = max(
        naive.distance(
            naive.weigh_algorithm_8([everything, *later[:users]], cutoff, start),
            naive.weigh_algorithm_8(later[:users], cutoff, start),
            2,
        )
        for users in range(1, len(later) + 1)
    )
    assert worst == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("cutoff", [3.0, 10.0, 1000.0])
def test_l2_descent_has_a_distance_of_at_most_one_for_the_same_users(cutoff):
    """l2-descent, which replaces Algorithm 8, has a distance of at most 1 for the same users."""
    start_users = [[1]] * (int(cutoff) - 1)
    larger = naive.weigh_l2_descent([*start_users, [1, 2, 3, 4], [1, 2]], cutoff)
    smaller = naive.weigh_l2_descent([*start_users, [1, 2]], cutoff)
    assert naive.distance(larger, smaller, 2) <= 1.0 + 1e-12


def test_l1_descent_with_gaussian_noise_is_rejected():
    """The error contains the name of the weighting and the norm."""
    with pytest.raises(TypeError, match="noise"):
        PolicyLaplace(noise="gaussian")
    with pytest.raises(vp.errors.InternalError, match="policy-laplace weighting has no proof in the norm 2"):
        CalibratedRule(PolicyLaplace(), RuleSetting(limit=4, norm=2))


def test_l2_descent_with_laplace_noise_is_rejected():
    """The proof of l2-descent covers only the l2 norm."""
    with pytest.raises(vp.errors.InternalError, match="norm 1"):
        CalibratedRule(PolicyGaussian(), RuleSetting(limit=4, norm=1))
