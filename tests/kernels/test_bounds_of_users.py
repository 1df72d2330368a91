"""Tests that kernels for users with individual bounds respect these bounds and agree with reference implementations."""

from math import isqrt, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searches.bound_search import search_reaches
from support.strategies import as_arrays, bounded_users
from voxpop.errors import InternalError
from voxpop.kernels.weigh import ONE_BOUND, candidate_runs
from voxpop.privacy.weightings.builtin import Count, PolicyGaussian, PolicyLaplace, Weighted
from voxpop.privacy.weightings.rule import RuleSetting

LIMIT = 6
REACHES = st.one_of(st.integers(0, 4 * ONE_BOUND), st.sampled_from([0, 1, ONE_BOUND, 4 * ONE_BOUND]))


def weights_of(rule, users, setting, bounds):
    histogram = np.zeros(8, np.int64)
    rule.add_within(histogram, *as_arrays(users), setting, np.array(bounds, np.int64))
    return histogram


@given(bounded_users(), st.floats(1.0, 6.0), st.data())
def test_the_descent_kernel_equals_plain_loops(users, cutoff, data):
    """The kernel runs Algorithm 7 of DPSU with the user's own bound as the radius of the ball."""
    bounds = data.draw(st.lists(REACHES, min_size=len(users), max_size=len(users)))
    bits = PolicyGaussian().bits(cutoff)
    found = weights_of(PolicyGaussian(), users, RuleSetting(LIMIT, 2, bits, round(cutoff * 2**bits), 4), bounds)
    weights = dict.fromkeys(range(8), 0.0)
    for items, steps in zip(users, bounds, strict=True):
        gaps = {item: cutoff - weights[item] for item in items}
        length, bound = sqrt(sum(gap * gap for gap in gaps.values())), steps / ONE_BOUND
        for item in items if bound else ():
            weights[item] += gaps[item] if length <= bound else gaps[item] * bound / length
    assert found / 2**bits == pytest.approx(list(weights.values()), abs=1e-12)


@given(bounded_users(), st.data())
def test_even_shares_equal_exact_integer_arithmetic(users, data):
    """A share is the even share times the user's bound, rounded down twice. Squares never exceed the squared bound."""
    bounds = data.draw(st.lists(REACHES, min_size=len(users), max_size=len(users)))
    setting = RuleSetting(LIMIT, 2)
    found = weights_of(Weighted(), users, setting, bounds)
    weights = [0] * 8
    for items, steps in zip(users, bounds, strict=True):
        for item in items:
            share = isqrt(setting.unit**2 // len(items)) * steps // ONE_BOUND
            assert len(items) * share**2 * ONE_BOUND**2 <= (setting.unit * steps) ** 2
            weights[item] += share
    assert found.tolist() == weights


@given(bounded_users(), st.floats(1.0, 6.0))
def test_a_sensitivity_of_1_gives_the_published_step(users, cutoff):
    """With a sensitivity of 1, the result equals that of the published step exactly."""
    bits = PolicyGaussian().bits(cutoff)
    setting = RuleSetting(LIMIT, 2, bits, round(cutoff * 2**bits))
    plain = np.zeros(8, np.int64)
    PolicyGaussian().add(plain, *as_arrays(users), setting)
    assert plain.tolist() == weights_of(PolicyGaussian(), users, setting, [ONE_BOUND] * len(users)).tolist()


@pytest.mark.parametrize("rule", [Count(), PolicyLaplace()])
def test_individual_bounds_are_rejected_for_other_weightings(rule):
    """Weightings without a proof for individual bounds are rejected."""
    with pytest.raises(InternalError, match="unequal bounds"):
        weights_of(rule, [[0]], RuleSetting(LIMIT, 2), [1])


@given(st.lists(st.lists(st.integers(-1, 4), max_size=9), min_size=1), st.sets(st.integers(0, 4)) | st.none())
def test_lengths_of_runs_equal_plain_loops(users, wanted):
    """The lengths of runs equal those that loops compute, for all candidates or some of them."""
    ids = np.array([place for user in users for place in user], np.int32)
    starts = np.cumsum([0, *map(len, users)])
    mask = np.empty(0, np.uint8) if wanted is None else np.array([each in wanted for each in range(5)], np.uint8)
    counts = []
    for user in users:
        marks = "".join("x" if place >= 0 and (wanted is None or place in wanted) else " " for place in user)
        counts.append(max((len(run) for run in marks.split()), default=0))
    assert candidate_runs(ids, starts, mask, True).tolist() == counts
    assert candidate_runs(ids, starts, mask, False).tolist() == [min(each, 1) for each in counts]


@pytest.mark.parametrize("weighting", ["policy-gaussian", "weighted"])
@pytest.mark.parametrize("limit", [3, 6, 20])
def test_the_distance_of_neighbours_is_at_most_the_bound_of_the_user(weighting, limit):
    """For thousands of pairs and any bounds of other users, the distance is at most the user's bound.

    The distance of the worst pair is close to the bound.
    """
    found = search_reaches(weighting, pairs=20_000, limit=limit, seed=limit)
    assert found.beyond < 1e-12
    assert found.closest > 0.999
