"""Set union under set-only accounting: the whole path, what it refuses, and what it gains."""

import json
import math

import numpy as np
import polars as pl
import pytest

import voxpop as vp
from voxpop.privacy.budget import Budget
from voxpop.union.set_only import CAP, LEAST_UNITS
from voxpop.weighting.capped import CappedRule
from voxpop.weighting.rule import RuleSetting


def set_only(**fields):
    return vp.SetUnion(**{"limit": 10, "weighting": "weighted", "accounting": "set-only", **fields})


@pytest.mark.parametrize("fields", [{}, {"cap": 1.0}, {"cap": 0.2, "rounds": 3}, {"weighting": "count"}, {"limit": 1}])
def test_it_releases_common_items_and_no_rare_ones(crowd, budget, fields):
    """The most common items are released, items of one user never, in the order of their bytes, within the budget."""
    union = set_only(**fields)
    items = union.release(crowd, budget, seed=1).to_list()
    assert "item 0000" in items
    assert items == sorted(set(items))
    assert len(items) < 1000
    assert 0.9 * budget.delta < union.plan(budget).delta <= budget.delta


@pytest.mark.jit
def test_it_releases_more_than_joint_accounting(crowd, budget):
    """The point of it: at least a tenth more, in one round and in three."""
    for rounds in (1, 3):
        joint = vp.SetUnion(limit=10, weighting="weighted", rounds=rounds).release(crowd, budget, seed=1)
        assert len(set_only(rounds=rounds).release(crowd, budget, seed=1)) > 1.1 * len(joint)


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_the_real_path_releases_with_the_planned_probability(probability, budget):
    """An item comes out as often as its plan says; false alarm below 1e-9 (7 standard deviations)."""
    plan = set_only(limit=2).plan(budget)
    held = plan.holders(probability, items=2)
    table = pl.DataFrame({"who": list(range(held)) * 2, "what": ["a"] * held + ["b"] * held})
    corpus = vp.read(table, user="who", items="what")
    unit = plan.rounds[0].shares.setting.unit
    expected = float(plan.rounds[0].rule(budget).probability(np.array([held * (unit // 2)]))[0][0])
    runs = 150
    seen = sum(len(plan.release(corpus, seed)) for seed in range(runs))
    assert probability <= expected < 1
    assert abs(seen - 2 * runs * expected) < 7 * math.sqrt(2 * runs * expected * (1 - expected)) + 7


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"weighting": "l2-descent"}, "number of its items alone"),
        ({"noise": "laplace"}, "no noise"),
        ({"weighting": "l1-descent", "noise": "laplace"}, "no noise"),
        ({"cap": 0.0}, "`cap`"),
        ({"cap": 1.5}, "`cap`"),
        ({"cap": math.nan}, "`cap`"),
        ({"accounting": "joint", "cap": 0.5}, "set-only"),
        ({"limit": 5000}, "`limit`"),
    ],
)
def test_what_has_no_proof_is_refused_with_the_reason(fields, words):
    """Policies, Laplace, noisy weights, caps out of range."""
    with pytest.raises(vp.errors.InputError, match=words):
        set_only(**fields)


def test_weightings_of_your_own_are_refused():
    """A class from outside may look at weights; nothing says that it does not."""

    class Mine(vp.Weighting):
        def least(self, limit):
            return 0.1

        def share(self, weights, cutoff):
            return np.full(len(weights), 0.1)

    with pytest.raises(vp.errors.UnsoundError, match="Mine"):
        set_only(weighting=Mine())


def test_phrases_have_no_set_only_accounting():
    """N-grams publish noisy weights to their own forecasts: refused."""
    with pytest.raises(vp.errors.InputError, match="accounting"):
        vp.NGrams(accounting="set-only")


def test_a_small_budget_is_refused_with_advice():
    """Where the table would be endless, the message names the other accounting."""
    with pytest.raises(vp.errors.BudgetError, match="joint"):
        set_only(limit=2).plan(Budget(1e-4, 1e-9))


def test_shares_are_capped_and_rounded_down():
    """Never above an even share or the cap, never below the least, and the grid is fine enough."""
    plan = set_only(limit=300, cap=0.3).plan(vp.Budget(3, 1e-6))
    setting = plan.rounds[0].shares.setting
    table = plan.rounds[0].shares.weighting_rule.table(setting) / setting.unit
    even = np.arange(1, 301) ** -0.5
    assert (table[1:] <= np.minimum(even, 0.3)).all()
    assert (table[1:] > np.minimum(even, 0.3) * (1 - 1 / LEAST_UNITS)).all()
    count = CappedRule(1.0, own=False)
    assert set(count.table(RuleSetting(4, 2, 6))[1:].tolist()) == {32}


def test_the_plan_can_be_read_and_saved(crowd, budget, tmp_path):
    """Its numbers are public and complete; the same after a round trip."""
    union = set_only(cap=0.25)
    release = union.release(crowd, budget, seed=3)
    numbers = release.plan.to_dict()
    first = numbers["round_plans"][0]
    assert (numbers["cap"], first["noise"], first["scale"]) == (0.25, "set-only", 0.0)
    assert first["order"] > 1
    assert 0 < first["novel_delta"] <= budget.delta
    assert "table of probabilities" in str(release.plan)
    release.save(tmp_path / "words")
    assert vp.load(tmp_path / "words").plan.to_dict() == json.loads(json.dumps(numbers))
    assert set_only().plan(budget).holders(0.5, items=1) == math.ceil(set_only().plan(budget).threshold / CAP)


@pytest.mark.slow
@pytest.mark.data
def test_real_posts(data_dir, budget):
    """Over a tenth more than joint accounting on half a million posts, in one round."""
    posts = vp.read(data_dir / "reddit_posts.parquet", user="user", text="text")
    joint = vp.SetUnion(weighting="weighted").release(posts, budget)
    assert len(set_only(limit=100).release(posts, budget)) > 1.08 * len(joint)
