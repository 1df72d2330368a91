"""Tests that several data sets about the same users share one budget, one guarantee and one ledger entry."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

import voxpop as vp
from support.deltas import total_delta
from support.look import read_engine
from voxpop.errors import InputError
from voxpop.privacy.cumulative import novel_release
from voxpop.privacy.gaussian import delta as gaussian_delta

pytestmark = pytest.mark.usefixtures("fixed_secrets")

NAMES = ("words", "tags", "places")


@pytest.fixture(scope="module")
def union():
    return vp.Items(max_items_per_user=20)


@pytest.fixture(scope="module")
def plan(union, budget):
    return union.plan_each(NAMES, budget)


def test_all_data_sets_together_are_within_the_budget(plan, budget):
    """The test adds up the probabilities of novel items and the squares of mu, computed again from the plan."""
    mu = np.hypot.reduce([1 / plan.last.first_round.scale, *(1 / each.sigma for each in plan.last.rounds)])
    noise = gaussian_delta(budget.epsilon, float(mu * 3**0.5))
    novel = 3 * novel_release(plan.last.score, plan.passes[0].caps)
    assert 0.9 * budget.delta < noise + novel < plan.delta_spent <= budget.delta


def test_rounds_of_a_single_data_set_cost_too_much_for_several(union, budget):
    """In this broken variant, each data set uses the numbers of a plan for a single data set."""
    alone = union.plan(budget)
    assert total_delta(alone.passes[0], budget, data_sets=1) <= budget.delta
    assert total_delta(alone.passes[0], budget, data_sets=2) > 3 * budget.delta


def test_noise_increases_with_the_root_of_the_number_of_data_sets(union, plan, budget):
    """A single named data set has the same plan as a data set without a name."""
    alone, one = union.plan(budget), union.plan_each(["words"], budget)
    assert plan.sigma == pytest.approx(3**0.5 * alone.sigma, rel=1e-3)
    assert (one.sigma, one.last.score, one.delta_spent) == (alone.sigma, alone.last.score, alone.delta_spent)
    assert plan.users_needed(0.5) > alone.users_needed(0.5)


def test_each_data_set_is_released_under_its_name(crowd, union, budget, tmp_path):
    """Each data set has its own types and tokenizer. The common guarantee is charged once."""
    rows = {"who": list(range(3000)), "place": [7, 8, 9] * 1000}
    places = read_engine(pl.DataFrame(rows), user="who", items="place")
    account = vp.Ledger(tmp_path / "team.ledger").open("people", vp.Budget(3.5, 1e-4), create=True)
    found = union.release_each({"items": crowd, "places": places}, budget, ledger=account)
    assert list(found) == ["items", "places"]
    assert found["places"].to_list() == [7, 8, 9]
    assert set(found["items"]) <= set(crowd.vocabulary.to_pylist())
    assert all(each.guarantee == vp.Guarantee(budget.epsilon, budget.delta) for each in found.values())
    assert found["items"].plan.to_dict()["data_sets"] == ["items", "places"]
    assert [(entry.mechanism, entry.state) for entry in account.entries] == [("items", "finished")]


@pytest.mark.jit
def test_more_items_are_released_than_with_half_the_budget_each(crowd, union, budget):
    """The data sets divide the sum of the squares of mu instead of epsilon."""
    together = union.release_each({"one": crowd, "two": crowd}, budget, seed=1)
    half = union.release(crowd, vp.Budget(budget.epsilon / 2, budget.delta / 2), seed=1)
    assert all(len(each) > 1.2 * len(half) for each in together.values())


@pytest.mark.jit
def test_data_sets_share_no_randomness(crowd, union, budget):
    """The same data set under two names gets different noise, even with a seed."""
    for seed in (None, 5):
        found = union.release_each({"one": crowd, "two": crowd}, budget, seed=seed)
        assert found["one"].to_list() != found["two"].to_list()
        assert found["one"].guarantee.private == (seed is None)
    again = union.release_each({"one": crowd, "two": crowd}, budget, seed=5)
    assert {name: each.to_list() for name, each in again.items()} == {
        name: each.to_list() for name, each in found.items()
    }


def test_min_users_applies_to_each_data_set(budget):
    """More data sets require more noise, so the thresholds are higher."""
    both = vp.Items(min_users=50).plan_each(["one", "two"], budget)
    assert both.released_with_few() <= 1e-6
    assert both.users_needed(0.5) >= vp.Items(min_users=50).plan(budget).users_needed(0.5)
    assert both.delta_spent <= budget.delta


def test_the_plan_states_that_data_sets_share_the_budget(plan):
    """The text of the plan and its dict contain the names of the data sets."""
    assert "One guarantee covers words, tags, places together" in str(plan)
    assert "Noise in each is 1.73 times" in " ".join(str(plan).split())
    assert plan.to_dict()["data_sets"] == list(NAMES)


@pytest.mark.parametrize("names", [["a", "a"], [""], [7], "words"])
def test_invalid_names_are_rejected(union, budget, names):
    """Names must be a list of distinct, nonempty strings."""
    with pytest.raises(InputError, match="`data_sets`"):
        union.plan_each(names, budget)


def test_wrong_calls_are_rejected(crowd, union, plan, budget):
    """The cases are no data sets, names other than planned, and data that was not read by `voxpop.read`."""
    with pytest.raises(InputError, match="data_sets"):
        union.release_each({}, budget)
    with pytest.raises(InputError, match="words, tags, places"):
        plan.release({"words": crowd})
    with pytest.raises(InputError, match="dictionary"):
        plan.release(crowd)
    with pytest.raises(InputError, match=r"voxpop\.read"):
        union.plan(budget).release({"words": crowd})
    with pytest.raises(InputError, match=r"voxpop\.read"):
        union.release_each({"one": crowd, "two": ["a"]}, budget)


LOST_RUNS, FALSE_ALARM = 100, 1e-9


def crowd_and_stranger(novel):
    """Return a corpus of 40 users who share 10 items, and one user with novel items."""
    rows = [(f"u{user}", f"shared {item}") for user in range(40) for item in range(10)]
    rows += [("stranger", f"own {item}") for item in range(novel)]
    return read_engine(pl.DataFrame(rows, schema=["who", "what"], orient="row"), user="who", items="what")


@pytest.mark.slow
def test_novel_items_in_both_data_sets_are_released_with_at_most_the_charged_probability():
    """The test counts releases that contain a novel item in either data set.

    The probability of a false alarm is 1e-9.
    """
    plan = vp.Items(max_items_per_user=15).plan_each(["one", "two"], vp.Budget(1.0, 0.2))
    mu = np.hypot.reduce([1 / plan.last.first_round.scale, *(1 / each.sigma for each in plan.last.rounds)])
    charged = plan.delta_spent - gaussian_delta(1.0, float(mu * 2**0.5))
    corpora = {"one": crowd_and_stranger(15), "two": crowd_and_stranger(1)}
    lost = 0
    for seed in range(LOST_RUNS):
        found = plan.release(corpora, seed=1000 * seed)
        lost += any(gram.startswith("own") for release in found.values() for gram in release)
    assert 0 < lost <= binom.isf(FALSE_ALARM, LOST_RUNS, charged)
