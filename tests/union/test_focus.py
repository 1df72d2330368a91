"""Focused rounds: what they promise, what they refuse, what they release."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

import voxpop as vp
from voxpop.errors import BudgetError, InputError, UnsoundError
from voxpop.privacy.evidence import novel_release
from voxpop.privacy.gaussian import delta as gaussian_delta
from voxpop.union.focus.planning import total_delta

FALSE_ALARM = 1e-9


@pytest.fixture(scope="module")
def plan(budget):
    return vp.SetUnion(limit=20, focus=True).plan(budget)


def test_the_plan_spends_its_budget_and_no_more(plan, budget):
    """Novel items and noise come to the budget, computed again from the numbers that run."""
    mu = np.hypot.reduce([1 / plan.opening.scale, *(1 / each.sigma for each in plan.rounds)])
    noise = gaussian_delta(budget.epsilon, float(mu))
    novel = novel_release(plan.evidence, 20)
    assert 0.9 * budget.delta < noise + novel < plan.delta <= budget.delta
    again = total_delta(plan.opening, plan.rounds, plan.evidence, budget)
    assert again <= plan.delta == pytest.approx(again)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("weighting", "epsilon", "delta", "limit"),
    [("count", 0.1, 1e-9, 2), ("weighted", 10, 1e-12, 50), ("l2-descent", 1, 1e-5, 300)],
)
def test_every_budget_is_kept(weighting, epsilon, delta, limit):
    """Small and large budgets and limits get a plan within them."""
    plan = vp.SetUnion(limit=limit, weighting=weighting, focus=True).plan(vp.Budget(epsilon, delta))
    assert 0.5 * delta < plan.delta <= delta
    assert plan.holders(0.5) < plan.holders(0.9) < plan.holders(0.99)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"noise": "laplace", "weighting": "weighted"}, UnsoundError),
        ({"rounds": 3}, InputError),
        ({"accounting": "published"}, InputError),
        ({"limit": 1}, InputError),
    ],
)
def test_what_has_no_proof_is_refused(wrong, error):
    """Laplace noise, other rounds and other accounting do not go with focus."""
    with pytest.raises(error, match="focus"):
        vp.SetUnion(**{"limit": 20, "focus": True, **wrong})


def test_a_delta_too_small_is_refused():
    """Below what finite arithmetic costs there is no plan."""
    with pytest.raises(BudgetError, match="at least"):
        vp.SetUnion(focus=True).plan(vp.Budget(1.0, 1e-24))


def test_it_releases_more_than_one_round(crowd, budget, plan):
    """On the same crowd and budget, focused rounds release more items, and none that nobody holds."""
    focused = plan.release(crowd, seed=1)
    once = vp.SetUnion(limit=20).release(crowd, budget, seed=1)
    assert len(focused) > 1.05 * len(once)
    held = set(crowd.vocabulary.to_pylist())
    assert set(focused) <= held


def test_the_same_secret_gives_the_same_release_in_any_order(budget, plan):
    """Neither the order of rows nor the number of threads changes what is released."""
    rng = np.random.default_rng(3)
    table = pl.DataFrame({"who": np.repeat(np.arange(2000), 12), "what": rng.zipf(1.4, 24_000).clip(0, 3000)})
    one = plan.release(vp.read(table, user="who", items="what"), seed=7)
    two = plan.release(vp.read(table.sample(fraction=1, shuffle=True, seed=1), user="who", items="what"), seed=7)
    assert list(one) == list(two)
    assert list(one) != list(plan.release(vp.read(table, user="who", items="what"), seed=8))


def crowd_and_stranger(novel):
    """Return 40 users who share 10 items, and one user with items of its own."""
    rows = [(f"u{user}", f"shared {item}") for user in range(40) for item in range(10)]
    rows += [("stranger", f"own {item}") for item in range(novel)]
    return vp.read(pl.DataFrame(rows, schema=["who", "what"], orient="row"), user="who", items="what")


def novel_runs(plan, novel, runs):
    """Return in how many of the releases something of the stranger came out."""
    corpus = crowd_and_stranger(novel)
    return sum(any(gram.startswith("own") for gram in plan.release(corpus, seed=seed)) for seed in range(runs))


WIDE = vp.Budget(epsilon=1.0, delta=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("novel", [1, 15])
def test_a_stranger_is_as_safe_as_the_plan_says(novel):
    """The real release names an item of one user alone no more often than was charged (false alarm 1e-9)."""
    plan = vp.SetUnion(limit=15, focus=True).plan(WIDE)
    charged = plan.delta - gaussian_delta(1.0, float(np.hypot.reduce([1 / plan.opening.scale, *mus(plan)])))
    runs = 150
    assert novel_runs(plan, novel, runs) <= binom.isf(FALSE_ALARM, runs, charged)


@pytest.mark.slow
def test_lower_thresholds_are_caught():
    """A twin whose thresholds lie one standard deviation lower names the stranger too often."""
    plan = vp.SetUnion(limit=15, focus=True).plan(WIDE)
    lower = tuple(threshold - 1.2 for threshold in plan.evidence.thresholds)
    broken = replace(plan, evidence=replace(plan.evidence, thresholds=lower))
    runs = 150
    assert novel_runs(broken, 15, runs) > binom.isf(FALSE_ALARM, runs, WIDE.delta)


def mus(plan):
    return [1 / each.sigma for each in plan.rounds]


def test_bounded_sets_of_others_do_not_depend_on_a_user():
    """Drawing the bounded sets once: at most `limit` each, candidates only, and the same without one user."""
    from voxpop.privacy.secret import Secret

    rng = np.random.default_rng(4)
    rows = [(f"u{user:03}", f"i{item:03}") for user in range(60) for item in rng.choice(200, 40, replace=False)]
    table = pl.DataFrame(rows, schema=["who", "what"], orient="row")

    def sets(frame):
        corpus = vp.read(frame, user="who", items="what")
        names = corpus.vocabulary.to_pylist()
        allowed = np.array([name[-1] != "3" for name in names], np.uint8)
        small = corpus.bounded(10, allowed, Secret.from_seed(5), "test")
        return {
            int(key): {names[i] for i in small.tokens[begin:end]}
            for key, begin, end in zip(small.user_key, small.user_start[:-1], small.user_start[1:], strict=True)
        }

    whole = sets(table)
    # The vocabulary must be the same for ids to be: leave out a user whose items others hold too.
    without = sets(table.filter(pl.col("who") != "u007"))
    assert all(len(items) == 10 and not any(name.endswith("3") for name in items) for items in whole.values())
    assert len(whole.keys() - without.keys()) == 1
    assert all(whole[key] == without[key] for key in without)
