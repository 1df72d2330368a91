"""Tests of adaptive rounds, which are the default, including guarantees, rejected plans and released items."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

import voxpop as vp
from support.deltas import total_delta
from support.look import read_engine
from support.twins import with_rounds
from voxpop.errors import BudgetError, InternalError
from voxpop.kernels.arrays import ONE_CAP
from voxpop.mechanisms.rounds.adaptive import Terms, plan_rounds
from voxpop.mechanisms.rounds.plan import SHARES, schedule_of
from voxpop.privacy.cumulative import Caps, novel_release
from voxpop.privacy.gaussian import delta as gaussian_delta
from voxpop.privacy.numerics import walk_slack

pytestmark = pytest.mark.usefixtures("fixed_secrets")

FALSE_ALARM = 1e-9


@pytest.fixture(scope="module")
def plan(budget):
    return vp.Items(max_items_per_user=20).plan(budget)


def test_the_plan_spends_at_most_its_budget(plan, budget):
    """The test computes the delta of novel items and noise again from the numbers of the plan."""
    mu = np.hypot.reduce([1 / plan.last.first_round.scale, *mus(plan)])
    noise = gaussian_delta(budget.epsilon, float(mu))
    novel = novel_release(plan.last.score, plan.passes[0].caps)
    assert 0.9 * budget.delta < noise + novel < plan.delta_spent <= budget.delta
    again = total_delta(plan.passes[0], budget)
    assert again <= plan.delta_spent == pytest.approx(again)
    assert plan.delta_spent - again >= walk_slack(budget.epsilon, 1 + len(plan.last.rounds)) * (1 - 1e-9)


def test_a_round_with_less_noise_than_was_charged_is_rejected(plan, budget):
    """The check uses the executed numbers and does not depend on the planner."""
    louder = (replace(plan.last.rounds[0], sigma=0.99 * plan.last.rounds[0].sigma), *plan.last.rounds[1:])
    with pytest.raises(InternalError, match="proof does not apply"):
        total_delta(replace(plan.passes[0], rounds=louder), budget)


@pytest.mark.parametrize("limit", [1, 20, 300])
def test_levels_for_more_items_exceed_the_budget(budget, limit):
    """A plan is charged for the largest number of items of each level.

    Ten percent more items at any level are detected.
    """
    plan = vp.Items(max_items_per_user=limit).plan(budget)
    caps = plan.passes[0].caps
    for level in range(0, len(caps.items) - 1, 5):
        most = caps.items[level] * 11 // 10 + 1
        kept = [level, *(other for other in range(level + 1, len(caps.items)) if caps.items[other] > most)]
        items = (most, *(caps.items[other] for other in kept[1:])) if len(kept) > 1 else (caps.items[-1],)
        more = Caps(items, *(tuple(column[other] for other in kept) for column in (caps.weights, caps.chances)))
        rounds = tuple(replace(each, shares=replace(each.shares, caps=more)) for each in plan.last.rounds)
        assert novel_release(plan.last.score, more) > novel_release(plan.last.score, caps)
        if level:
            assert total_delta(replace(plan.passes[0], rounds=rounds), budget) > budget.delta


def test_caps_that_are_not_on_the_lattice_are_rejected(plan, budget):
    """The charge includes the projection error only for caps on the lattice."""
    caps = plan.passes[0].caps
    first = 99 * ONE_CAP // 100, *caps.weights[0][1:]
    off = replace(caps, weights=(first, *caps.weights[1:]))
    rounds = tuple(replace(each, shares=replace(each.shares, caps=off)) for each in plan.last.rounds)
    with pytest.raises(InternalError, match="proof does not apply"):
        total_delta(replace(plan.passes[0], rounds=rounds), budget)


@pytest.mark.parametrize(("limit", "used"), [(1, (1, 100)), (300, (300, 300))])
def test_limit_and_pool_are_public_constants(budget, limit, used):
    """If the caller gives a limit, the limit and the pool are constants. test_limit.py tests the choice of a limit."""
    plan = vp.Items(max_items_per_user=limit).plan(budget)
    assert (plan.last.limit, plan.last.pool) == used
    assert (plan.to_dict()["max_items_per_user"], plan.to_dict()["pool"]) == used


@pytest.mark.jit
@pytest.mark.parametrize(
    ("epsilon", "delta", "limit"), [(0.1, 1e-9, 2), (10, 1e-12, 50), (1, 1e-5, 300), (0.01, 1e-6, 1), (20, 1e-9, 1000)]
)
def test_plans_for_every_budget_are_within_the_budget(epsilon, delta, limit):
    """Items with many more users than needed are missed with a probability below 1e-6."""
    plan = vp.Items(max_items_per_user=limit).plan(vp.Budget(epsilon, delta))
    assert 0.99 * delta < plan.delta_spent <= delta
    assert plan.users_needed(0.5) <= plan.users_needed(0.9) <= plan.users_needed(0.99) < 10 * plan.users_needed(0.5)
    assert plan.miss_probability() < 1e-6


def test_a_delta_that_is_too_small_is_rejected():
    """The delta is smaller than the cost of finite arithmetic."""
    with pytest.raises(BudgetError, match="at least"):
        vp.Items().plan(vp.Budget(1.0, 1e-24))


@pytest.mark.jit
def test_adaptive_rounds_release_more_than_every_classic_mechanism(crowd, budget, plan):
    """With the same users and budget, adaptive rounds release more items, and only items that users have."""
    adaptive = plan.release(crowd, seed=1)
    classic = [
        vp.papers.SetUnion(20, "policy-gaussian", 5.0, "joint"),
        vp.papers.SetUnion(20, "weighted", accounting="joint"),
    ]
    assert all(len(adaptive) > 1.05 * len(each.release(crowd, budget, seed=1)) for each in classic)
    held = set(crowd.vocabulary.to_pylist())
    assert set(adaptive) <= held


@pytest.mark.jit
def test_no_common_key_is_missed():
    """Ten releases miss none of 3,000 keys with ten times the required users, in rounds and in a single pass.

    The probability of a false alarm is 30,000 times the miss probability of the plans, which is below 1e-8 in total.
    """
    budget, keys = vp.Budget(2.0, 1e-6), 3000
    for union in (
        vp.Items(max_items_per_user=2),
        vp.papers.SetUnion(2, "policy-gaussian", 5.0, "joint"),
    ):
        plan = union.plan(budget)
        users = 10 * plan.users_needed(0.5)
        rows = np.arange(keys * users) % keys
        corpus = read_engine(pl.DataFrame({"who": np.arange(rows.size), "what": rows}), user="who", items="what")
        assert plan.miss_probability() < 1e-6
        assert all(len(plan.release(corpus)) == keys for _ in range(10))


def test_the_same_secret_gives_the_same_release_in_any_order(budget, plan):
    """Neither the order of rows nor the number of threads changes the release."""
    rng = np.random.default_rng(3)
    table = pl.DataFrame({"who": np.repeat(np.arange(2000), 12), "what": rng.zipf(1.4, 24_000).clip(0, 3000)})
    one = plan.release(read_engine(table, user="who", items="what"), seed=7)
    two = plan.release(read_engine(table.sample(fraction=1, shuffle=True, seed=1), user="who", items="what"), seed=7)
    assert list(one) == list(two)
    assert list(one) != list(plan.release(read_engine(table, user="who", items="what"), seed=8))


def crowd_and_stranger(novel):
    """Return a corpus of 40 users who share 10 items, and one user with novel items."""
    rows = [(f"u{user}", f"shared {item}") for user in range(40) for item in range(10)]
    rows += [("stranger", f"own {item}") for item in range(novel)]
    return read_engine(pl.DataFrame(rows, schema=["who", "what"], orient="row"), user="who", items="what")


def novel_runs(plan, novel, runs):
    """Return the number of releases that contain an item of only one user."""
    corpus = crowd_and_stranger(novel)
    return sum(any(gram.startswith("own") for gram in plan.release(corpus, seed=seed)) for seed in range(runs))


WIDE = vp.Budget(epsilon=1.0, delta=0.2)
LOST_RUNS = 150


def charged_for_novel_items(plan):
    return plan.delta_spent - gaussian_delta(
        plan.budget.epsilon, float(np.hypot.reduce([1 / plan.last.first_round.scale, *mus(plan)]))
    )


@pytest.mark.slow
@pytest.mark.parametrize(("novel", "limit"), [(1, 15), (15, 15), (40, 1), (40, 3)])
def test_novel_items_are_released_with_at_most_the_charged_probability(novel, limit):
    """The test counts the releases of the real code that contain novel items (false alarm 1e-9)."""
    plan = vp.Items(max_items_per_user=limit).plan(WIDE)
    most = binom.isf(FALSE_ALARM, LOST_RUNS, charged_for_novel_items(plan))
    assert novel_runs(plan, novel, LOST_RUNS) <= most


@pytest.mark.slow
@pytest.mark.parametrize(("novel", "limit"), [(15, 15), (40, 3)])
def test_lower_thresholds_are_detected(novel, limit):
    """If thresholds are lower by two standard deviations, novel items are released too often (false alarm 1e-9)."""
    plan = vp.Items(max_items_per_user=limit).plan(WIDE)
    lower = tuple(threshold - 2.0 for threshold in plan.last.score.thresholds)
    broken = with_rounds(plan, score=replace(plan.last.score, thresholds=lower))
    assert novel_runs(broken, novel, LOST_RUNS) > binom.isf(FALSE_ALARM, LOST_RUNS, WIDE.delta)


@pytest.mark.jit
def test_a_bound_that_is_constant_at_1_does_not_abort_planning():
    """At a large delta and limit, the search begins at values where the bound is constant at 1."""
    budget = vp.Budget(1.0, 0.03)
    assert vp.Items(max_items_per_user=102_400).plan(budget).delta_spent <= budget.delta


@pytest.mark.jit
def test_a_bound_below_all_doubles_does_not_abort_planning():
    """The search for thresholds can reach 42 standard deviations, at which the bound underflows to 0."""
    budget = vp.Budget(0.001, 0.09999999999999998)
    assert vp.Items(max_items_per_user=10**7).plan(budget).delta_spent <= budget.delta


def mus(plan):
    return [1 / each.sigma for each in plan.last.rounds]


@pytest.mark.parametrize("rounds", [2, 7, 20])
def test_any_number_of_rounds_is_within_the_budget(budget, rounds):
    """The shares of the budget add up, drop thresholds increase, and thresholds decrease."""
    schedule = schedule_of(rounds)
    assert sum(share**2 for share in schedule.shares) == pytest.approx(sum(share**2 for share in SHARES))
    assert list(schedule.drop_thresholds) == sorted(schedule.drop_thresholds)
    assert list(schedule.falls) == sorted(schedule.falls, reverse=True)
    assert total_delta(plan_rounds(Terms(budget.epsilon, budget.delta), 20, 60, schedule), budget) <= budget.delta
