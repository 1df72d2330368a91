"""Tests of `min_users`, including simulations of the worst case and broken variants that must be detected."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import voxpop as vp
from support.look import read_engine
from voxpop.cli import main
from voxpop.errors import InputError, InternalError
from voxpop.mechanisms.rounds.users_needed import MinUsersBound, check_promise
from voxpop.mechanisms.set_union.plan import plan_adaptive
from voxpop.papers.dpsu import plan_round
from voxpop.privacy.cumulative import CumulativeScore, any_release, novel_release, whole_caps
from voxpop.privacy.weightings.builtin import WEIGHTINGS

FALSE_ALARM = 1e-9
FEW, BETA, ITEMS = 6, 0.02, 3_000
GENEROUS = vp.Budget(4.0, 0.01)
UNIONS = {
    "adaptive": vp.Items(max_items_per_user=3),
    "adaptive, one of a pool": vp.Items(max_items_per_user=1),
    "optimal": vp.papers.OptimalSelection(),
    **{name: vp.papers.SetUnion(3, name, each.alpha or 0.0, "joint") for name, each in WEIGHTINGS.items()},
}


def planned(union, budget, users, beta):
    """Return a plan with `min_users` and a failure probability that differs from the public constant."""
    union, promise = replace(union, min_users=users), MinUsersBound(users, beta)
    if isinstance(union, vp.Items):
        return plan_adaptive(union, budget, promise=promise)
    return plan_round(union, budget, promise) if isinstance(union, vp.papers.SetUnion) else union.plan(budget)


@pytest.fixture(scope="module")
def few():
    """Return a corpus of 3,000 items with five users each.

    Users have no other items, so weights are the largest possible.
    """
    users = np.arange(ITEMS * (FEW - 1))
    return read_engine(pl.DataFrame({"who": users, "what": users % ITEMS}), user="who", items="what")


@pytest.mark.jit
@pytest.mark.parametrize("name", UNIONS)
def test_items_of_few_users_are_released_with_at_most_the_failure_probability(few, name):
    """The test runs every mechanism that has thresholds (false alarm 1e-9)."""
    plan = planned(UNIONS[name], GENEROUS, FEW, BETA)
    assert plan.released_with_few() <= BETA
    assert len(plan.release(few, seed=1)) <= binom.isf(FALSE_ALARM, ITEMS, plan.released_with_few())


@pytest.mark.jit
@pytest.mark.parametrize("name", UNIONS)
def test_items_of_few_users_are_released_without_min_users(few, name):
    """Without `min_users`, the count exceeds the bound, so the tests detect plans that ignore `min_users`."""
    released = len(UNIONS[name].plan(GENEROUS).release(few, seed=1))
    assert released > binom.isf(FALSE_ALARM, ITEMS, BETA)


@pytest.mark.jit
@pytest.mark.parametrize("name", ["adaptive", "policy-gaussian"])
def test_thresholds_for_one_user_fewer_are_detected(few, name):
    """A broken variant with thresholds for at most four users is detected (false alarm 1e-9), so the bound is close."""
    plan = planned(UNIONS[name], vp.Budget(12.0, 0.2), FEW - 1, BETA / 4)
    assert len(plan.release(few, seed=2)) > binom.isf(FALSE_ALARM, ITEMS, BETA)


def test_the_bound_is_close_to_the_number_of_released_items(few):
    """A single pass releases more than half of the allowed number of items (false alarm 1e-9)."""
    plan = planned(UNIONS["policy-gaussian"], GENEROUS, FEW, BETA)
    assert len(plan.release(few, seed=3)) > binom.isf(1 - FALSE_ALARM, ITEMS, BETA / 2)


@pytest.mark.parametrize("name", UNIONS)
def test_items_of_enough_users_are_still_released(name):
    """Items with enough users for probability 0.99 are released as often as planned (false alarm 1e-9)."""
    plan = replace(UNIONS[name], min_users=FEW).plan(GENEROUS)
    users = np.arange(300 * plan.users_needed(0.99))
    corpus = read_engine(pl.DataFrame({"who": users, "what": users % 300}), user="who", items="what")
    assert len(plan.release(corpus, seed=4)) > binom.isf(1 - FALSE_ALARM, 300, 0.95)
    assert plan.miss_probability() < 1e-6


@pytest.mark.slow
@given(
    epsilon=st.floats(0.05, 8),
    delta=st.floats(-12, -2).map(lambda power: 10**power),
    min_users=st.integers(1, 10**5),
    beta=st.floats(-12, -0.4).map(lambda power: 10**power),
    name=st.sampled_from([name for name in UNIONS if not name.startswith("adaptive")]),
    limit=st.sampled_from([1, 7, 100]),
)
def test_plans_with_min_users_are_within_the_budget_and_the_failure_probability(
    epsilon, delta, min_users, beta, name, limit
):
    """Only thresholds and cutoffs depend on `min_users`, so the budget is not exceeded."""
    union, budget = UNIONS[name], vp.Budget(epsilon, delta)
    union = union if name == "optimal" else replace(union, max_items_per_user=limit + 1)
    plan = planned(union, budget, min_users, beta)
    assert plan.released_with_few() <= beta
    assert plan.delta_spent <= delta
    without = union.plan(budget)
    assert plan.threshold >= without.threshold
    assert (plan.users_needed(0.5) or 10**13) >= (without.users_needed(0.5) or 0)


@pytest.mark.jit
@pytest.mark.parametrize("min_users", [1, 2, 10, 50, 10_000])
@pytest.mark.parametrize(("epsilon", "delta"), [(3, 1e-5), (0.2, 1e-9)])
def test_adaptive_rounds_also_satisfy_min_users(min_users, epsilon, delta):
    """Plans satisfy both bounds, drop thresholds are below thresholds, and `min_users=1` has little effect."""
    plan = vp.Items(min_users=min_users).plan(vp.Budget(epsilon, delta))
    without = vp.Items().plan(vp.Budget(epsilon, delta))
    assert plan.delta_spent <= delta
    assert plan.released_with_few() <= 1e-6
    rules = plan.last.score
    assert all(floor < threshold for floor, threshold in zip(rules.drop_thresholds, rules.thresholds, strict=False))
    assert plan.users_needed(0.5) >= max(min_users, without.users_needed(0.5))
    assert plan.miss_probability() < 1e-6
    if min_users == 1:
        assert plan.users_needed(0.5) <= 1.02 * without.users_needed(0.5) + 1


def test_optimal_selection_never_releases_an_item_with_few_users():
    """Up to 19 users, the probability is exactly 0. For 19 + n users, it equals the usual probability for n users."""
    budget = vp.Budget(1.0, 1e-5)
    rule = vp.papers.OptimalSelection(min_users=20).plan(budget).last.rule(budget)
    plain = vp.papers.OptimalSelection().plan(budget).last.rule(budget)
    assert [rule.exact(users) for users in range(20)] == [0] * 20
    assert [rule.exact(19 + users) for users in range(40)] == [plain.exact(users) for users in range(40)]
    assert rule.probability(np.arange(60))[0][19:].tolist() == plain.probability(np.arange(41))[0].tolist()


@given(
    mus=st.lists(st.floats(0.05, 1.5), min_size=1, max_size=4),
    threshold=st.floats(3, 9),
    floor=st.floats(-2, 2),
    pool=st.integers(1, 30),
)
@settings(max_examples=40, deadline=None)
def test_the_crude_bound_is_above_the_other_bound(mus, threshold, floor, pool):
    """The crude bound can replace the other bound, because it is larger.

    The grid is so fine that its error is below 5 percent in every round.
    """
    count, fineness = len(mus), min(1 / 80, min(mus) / max(mus) / 8)
    rounds = CumulativeScore(tuple(mus), tuple(mus), (threshold,) * count, (floor,) * (count - 1), margin=0.01)
    assert any_release(rounds, pool) >= novel_release(rounds, whole_caps(count, pool), fineness) / 1.05


def test_a_plan_that_violates_min_users_is_rejected():
    """The check uses the executed numbers and does not depend on the planner."""
    with pytest.raises(InternalError, match="min_users allows"):
        check_promise(MinUsersBound(50, 1e-6), 1.1e-6)


@pytest.mark.parametrize("wrong", [0, 2.5, True, 10**8])
def test_min_users_out_of_range_is_rejected(wrong):
    """The cases are 0, a fraction, a Boolean and a very large number."""
    with pytest.raises(InputError, match="min_users"):
        vp.Items(min_users=wrong)


def test_the_plan_shows_the_cost_of_min_users(capsys):
    """The numbers of users needed with and without `min_users` are in the text, in JSON and on the command line."""
    plan = vp.Items(max_items_per_user=10, min_users=40).plan(vp.Budget(1, 1e-7))
    numbers = plan.to_dict()
    assert (numbers["min_users"], numbers["failure_probability"]) == (40, 1e-6)
    needed, before = (rows[0]["users"] for rows in (numbers["users_needed"], numbers["users_needed_without_promise"]))
    assert f"{needed} instead of {before}" in str(plan)
    call = [
        "plan",
        "items",
        "--epsilon",
        "1",
        "--delta",
        "1e-7",
        "--max-items-per-user",
        "10",
    ]
    assert main([*call, "--min-users", "40"]) == 0
    assert capsys.readouterr().out.strip() == str(plan)
