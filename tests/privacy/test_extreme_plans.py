"""Tests that planning raises a `BudgetError` or gives a valid guarantee at extreme values of every parameter.

The tests compute the guarantee again from only the public numbers of the plan (noise, threshold, sensitivity of one
user). They apply the formulas of docs/privacy to each case, without the accounting of the library.
"""

import json
import math
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

import voxpop as vp
from voxpop.errors import BudgetError
from voxpop.mechanisms.sequences.releasing import part_of_lengths, part_of_variety
from voxpop.privacy import precise
from voxpop.privacy.path_budget import PathBudget
from voxpop.privacy.weightings.builtin import WEIGHTINGS

mp = precise.context
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
"""Planning is slow, so shrinking a failing example would take many minutes."""
CELLS = list(WEIGHTINGS)
EPSILONS = st.one_of(st.sampled_from([1e-3, 50.0]), st.floats(math.log(1e-3), math.log(50)).map(math.exp))
DELTAS = st.one_of(
    st.sampled_from([1e-300, 1e-28, 0.1]),
    st.floats(math.log(1e-300), math.log(0.1)).map(math.exp),
    st.floats(math.log(1e-20), math.log(0.1)).map(math.exp),
)
LIMITS = st.one_of(st.sampled_from([1, 2, 10**7]), st.floats(0, math.log(10**7)).map(lambda log: int(math.exp(log))))
ALPHAS = st.one_of(st.sampled_from([0.0, 3.0, 5.0, 1000.0]), st.floats(0, math.log(1000)).map(math.exp))


def planned(mechanism, budget):
    """Return the plan, or None if planning raises an error without "nan" in its message."""
    refused = ""
    try:
        plan = mechanism.plan(budget)
    except BudgetError as refusal:
        refused = str(refusal)
    if refused:
        assert "nan" not in refused.lower()
        return None
    assert str(plan)
    json.dumps(plan.to_dict(), allow_nan=False)
    return plan


def gaussian_delta(epsilon, mu):
    """Return the delta of a Gaussian mechanism with this mu."""
    if mu == 0:
        return max(mp.mpf(0), 1 - mp.exp(epsilon))
    return precise.normal_below(mu / 2 - epsilon / mu) - mp.exp(epsilon) * precise.normal_below(-mu / 2 - epsilon / mu)


def both_ways(epsilon, hit, mu):
    """Return the delta if a novel item is released with probability `hit`, or else a Gaussian is shifted by mu."""
    epsilon, log_none = mp.mpf(epsilon), mp.log1p(-hit)
    forward = hit + (1 - hit) * gaussian_delta(epsilon - log_none, mu)
    return max(forward, gaussian_delta(epsilon + log_none, mu))


def hit_chance(one, items, weight):
    """Return the probability that one of `items` items of this weight reaches the threshold."""
    below = precise.normal_below if one.noise == "gaussian" else precise.laplace_below
    each = below((mp.mpf(one.threshold) - weight) / mp.mpf(one.scale))
    return -mp.expm1(items * mp.log(each)) if each > mp.mpf("0.5") else 1 - each**items


def sensitivity_of(one):
    return mp.mpf(one.shares.weighting_rule.sensitivity(one.shares.setting))


def novel_cases(one, counts):
    """Yield pairs of a number of novel items and their weight.

    The weights are the smallest and largest weights of the weighting, and values between them.
    """
    setting, name, most = one.shares.setting, one.shares.weighting_rule.name, sensitivity_of(one)
    root = 1 if setting.norm == 1 else 2
    least = mp.mpf(one.shares.weighting_rule.novelty(setting).least)
    for items in {min(count, setting.limit) for count in counts}:
        top = most * mp.mpf(items) ** (-mp.mpf(1) / root)
        if name == "count":
            yield items, least
        elif name == "weighted":
            for held in {items, max(items, setting.limit // 2), setting.limit}:
                yield items, mp.mpf(held) ** (-mp.mpf(1) / root)
        else:
            for part in (0.0, 0.3, 0.9, 1.0):
                yield items, least + (top - least) * mp.mpf(part)


def check_union(plan, counts):
    epsilon, delta, one = plan.budget.epsilon, plan.budget.delta, plan.last
    if one.noise == "optimal":
        check_selection(epsilon, delta, plan)
    elif one.noise == "laplace":
        assert Fraction(float(sensitivity_of(one))) / Fraction(one.scale) <= Fraction(epsilon)
        assert max(hit_chance(one, items, weight) for items, weight in novel_cases(one, counts)) <= delta
    else:
        check_joint(one, epsilon, delta, counts, rest=0.0)


def check_joint(one, epsilon, delta, counts, rest):
    """Check one round and the budget of later rounds, without novel items and for several numbers of novel items."""
    most, sigma = sensitivity_of(one), mp.mpf(one.scale)
    assert gaussian_delta(mp.mpf(epsilon), mp.sqrt(most**2 / sigma**2 + mp.mpf(rest))) <= delta
    for items, weight in novel_cases(one, counts):
        left = max(most**2 - items * weight**2, mp.mpf(0))
        mu = mp.sqrt(left / sigma**2 + mp.mpf(rest))
        assert both_ways(epsilon, hit_chance(one, items, weight), mu) <= delta


def check_selection(epsilon, delta, plan):
    """Check that neighbouring counts have close release probabilities, from no users to certain release."""
    rule = plan.last.rule(plan.budget)
    count, before, factor = 0, mp.mpf(0), mp.exp(mp.mpf(epsilon))
    # At a small epsilon, there are thousands of counts, so only the first three hundred are checked.
    while before < 1 and count < 300:
        count += 1
        chance = rule.exact(count)
        assert 0 <= before <= chance <= 1
        assert chance <= factor * before + delta
        assert 1 - before <= factor * (1 - chance) + delta
        before = chance


@pytest.mark.slow
@example("policy-gaussian", 0.001, 1e-28, 1, "joint", 1.339180808892613, [4, 10_000_000, 1])
@example("policy-gaussian", 0.006944858170726684, 1e-28, 1595, "joint", 1.0, [10_000_000, 1, 10_000_000])
@settings(max_examples=60, phases=UNSHRUNK)
@given(
    st.sampled_from(CELLS),
    EPSILONS,
    DELTAS,
    LIMITS,
    st.sampled_from(["joint", "published"]),
    ALPHAS,
    st.lists(LIMITS, min_size=3, max_size=3),
)
def test_plans_of_set_union_satisfy_their_guarantee(cell, epsilon, delta, limit, accounting, alpha, counts):
    """Plans with every weighting and both accountings satisfy their guarantee."""
    union = vp.papers.SetUnion(limit, cell, alpha, accounting)
    plan = planned(union, vp.Budget(epsilon, delta))
    if plan is not None:
        assert 0 < plan.delta_spent <= delta
        check_union(plan, [1, limit, *counts])
        assert plan.last.shares.setting.cutoff < 2**62


@pytest.mark.slow
@settings(max_examples=20, phases=UNSHRUNK)
@given(
    EPSILONS,
    DELTAS,
    LIMITS,
    st.integers(1, 32),
    st.sampled_from(["weighted", "policy-gaussian"]),
    st.sampled_from([1.0, 1.2, 0.2, 5.0]),
    ALPHAS,
    st.lists(LIMITS, min_size=2, max_size=2),
)
def test_plans_of_dpne_satisfy_their_guarantee(epsilon, delta, limit, lengths, weighting, ratio, alpha, counts):
    """The first length and the cap of later lengths satisfy the guarantee, and later lengths are within the cap."""
    dpne = vp.papers.DPNE(lengths, limit, weighting=weighting, ratio=ratio, alpha=alpha)
    plan = planned(dpne, vp.Budget(epsilon, delta))
    if plan is None:
        return
    assert 0 < plan.delta_spent <= delta
    check_joint(plan.first, epsilon, delta, [1, limit, *counts], rest=plan.later)
    assert sum(1 / Fraction(each.sigma) ** 2 for each in plan.lengths[1:]) <= Fraction(plan.later)
    assert all(each.sigma > 0 and each.lowest_threshold <= each.highest_threshold for each in plan.lengths)


@pytest.mark.slow
@settings(max_examples=10, phases=UNSHRUNK)
@given(EPSILONS, DELTAS, LIMITS, st.integers(1, 32))
def test_plans_of_n_grams_are_within_their_budget(epsilon, delta, limit, lengths):
    """The delta of a plan is within the budget, and all noise is positive.

    tests/privacy/test_individual.py contains the tests of the cap of each user.
    """
    plan = planned(vp.NGrams(lengths, limit), vp.Budget(epsilon, delta))
    if plan is None:
        return
    assert 0 < plan.delta_spent <= delta
    assert all(each.sigma > 0 and each.lowest_threshold <= each.highest_threshold for each in plan.lengths)


MOST_HOLDERS = 160  # Computations with more users and eighty digits take too long.


def survival_of(ballot, wanted):
    """Return the survival probability of a prefix in a round by its number of users, as sums to eighty digits."""
    tails = [1, *map(mp.mpf, ballot.tails), 0]
    chances = [tail - after for tail, after in pairwise(tails)][: ballot.theta]
    below, survives = [mp.mpf(1)] + [mp.mpf(0)] * (ballot.theta - 1), {0: mp.mpf(0)}
    for holders in range(1, max(wanted) + 2):
        below = [
            mp.fsum(below[votes - more] * chances[more] for more in range(min(len(chances), votes + 1)))
            for votes in range(ballot.theta)
        ]
        survives[holders] = 1 - mp.fsum(below)
    return survives


@pytest.mark.slow
@settings(max_examples=4, phases=UNSHRUNK)
@given(
    st.floats(math.log(0.05), math.log(50)).map(math.exp),
    st.floats(math.log(1e-12), math.log(0.1)).map(math.exp),
    st.sampled_from([1, 3]),
)
def test_plans_of_heavy_hitters_satisfy_their_guarantee(epsilon, delta, rounds):
    """For any number of users of a prefix, one more user in every round costs at most the delta of the plan.

    The computed delta is exact for one round, and a lower bound for several rounds.
    """
    hitters = vp.HeavyHitters(max_length=2 * rounds, unit=2)
    plan = planned(hitters, vp.Budget(epsilon, delta))
    if plan is None:
        return
    factor, theta = mp.exp(mp.mpf(epsilon)), plan.theta
    assert 0 < plan.delta_spent <= delta
    likely = int(theta / plan.sampling_rate)
    doubted = [*range(8), *range(theta - 1, theta + 8), *(int(likely * part) for part in (0.3, 1, 2))]
    survives = survival_of(plan.rules.ballot, [holders for holders in doubted if holders < MOST_HOLDERS])
    for others in doubted:
        if others + 1 not in survives:
            continue
        without, joined = survives[others] ** rounds, survives[others + 1] ** rounds
        assert joined <= factor * without + delta
        assert 1 - without <= factor * (1 - joined) + delta


@given(st.floats(1e-3, 50), st.integers(1, 10_000), st.integers(1, 16))
def test_plans_of_sequences_satisfy_their_guarantee(epsilon, longest, gram):
    """The noise at the root costs exactly the root's share of epsilon, for the largest change by one user."""
    plan = planned(vp.papers.VariableLengthNGrams(longest, gram, ["a", "b", "c"]), vp.Budget(epsilon))
    if plan is None:
        return
    paths = PathBudget(plan._limits)
    assert paths.rate(paths.spend(0, Fraction(1, gram))) * longest * gram == Fraction(epsilon)
    assert plan.scale == pytest.approx(longest * gram / epsilon)
    assert plan.threshold >= 0
    contexts = vp.Sequences(longest, gram, ["a", "b", "c"]).plan(vp.Budget(epsilon))
    lengths, variety = part_of_lengths(Fraction(epsilon)), part_of_variety(Fraction(epsilon), 0)
    assert 0 < lengths < 1
    assert 0 < variety < 1
    # Two user statistics precede the root. The root spends a part of the remaining epsilon, or all of it if it has no
    # children.
    rest = (1 - lengths) * (1 - variety)
    root = rest * (Fraction(1, 20) if gram > 1 else 1)
    assert contexts.scale == float(longest / (Fraction(epsilon) * root))


@pytest.mark.parametrize("epsilon", [1e-3, 50.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-30])
def test_a_delta_below_the_limit_of_128_bits_is_rejected(epsilon, delta):
    """Every mechanism that needs a delta raises an error that names the parameter."""
    budget = vp.Budget(epsilon, delta)
    mechanisms = [vp.Items(), vp.Items(max_items_per_user=1), vp.NGrams(), vp.HeavyHitters()]
    for mechanism in mechanisms:
        with pytest.raises(BudgetError, match="delta"):
            mechanism.plan(budget)


@pytest.mark.slow
def test_a_cutoff_that_does_not_fit_its_grid_is_rejected():
    """With many items per user, the grid is coarse. Rounding then requires more noise and a larger cutoff."""
    with pytest.raises(BudgetError, match="cutoff"):
        vp.papers.SetUnion(10**6, "policy-gaussian", 1000.0, "joint").plan(vp.Budget(1e-3, 1.2265865115027022e-12))


def test_a_length_with_almost_no_budget_is_rejected():
    """With almost no budget for a length, the threshold would not fit the grid of weights."""
    shares = vp.papers.DPNE(max_length=24, max_phrases_per_user=1, ratio=5.0)
    with pytest.raises(BudgetError, match="so little of the budget"):
        shares.plan(vp.Budget(1e-3, 0.1))


def test_published_numbers_of_heavy_hitters_are_rejected_if_unconfirmed():
    """A sampling rate of one in millions would require hundreds of millions of cases, so planning raises an error."""
    with pytest.raises(BudgetError, match="too small to be accounted for"):
        vp.papers.TrieHH(max_length=64).plan(vp.Budget(1e-3, 1e-8))
