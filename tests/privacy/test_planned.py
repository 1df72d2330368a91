"""A plan's numbers were held against its budget once, when it was made: one that was changed since has no guarantee."""

import copy
import pickle
from dataclasses import fields, replace

import pyarrow as pa
import pytest

import voxpop as vp
from support.corpora import corpus_of
from voxpop.errors import InputError, InternalError
from voxpop.privacy.planned import Planned

BUDGET = vp.Budget(2, 1e-6)
CORPUS = corpus_of([[["tea", "milk"], ["tea"]]] * 400)
WORDS = vp.SetUnion(weighting="weighted", limit=4).release(CORPUS, BUDGET, seed=1)
BATCHES = vp.HeavyHitters(max_length=3, sampling="fixed", accounting="published")
PLANS = {
    "items": vp.SetUnion(limit=4).plan(BUDGET),
    "items, data sets": vp.SetUnion(limit=4).plan(BUDGET, ["one", "two"]),
    "items, rounds": vp.SetUnion(limit=4, weighting="weighted", rounds=2).plan(BUDGET),
    "items, one each": vp.SetUnion(limit=1, weighting="count").plan(BUDGET),
    "items, set only": vp.SetUnion(limit=4, accounting="set-only", weighting="weighted").plan(BUDGET),
    "ngrams": vp.NGrams(max_length=2, limit=4).plan(BUDGET),
    "ngrams, one vote": vp.NGrams(max_length=2, limit=4, words="once").plan(BUDGET),
    "hitters": vp.HeavyHitters(max_length=4).plan(BUDGET),
    "hitters, batches": BATCHES.plan(vp.Budget(4, 1e-3)),
    "sequences": vp.Sequences(alphabet=["tea", "milk"], max_gram=2).plan(vp.Budget(2)),
    "sequences, found": vp.Sequences(alphabet="find", max_gram=2).plan(BUDGET),
    "count": vp.Counts(limit=2).plan(BUDGET, WORDS),
    "top": vp.Top(1).plan(BUDGET, WORDS),
}


def changed(plan):
    """Yield what `dataclasses.replace` makes of a plan: as it is, with another budget, each number a little smaller."""
    yield replace(plan)
    yield replace(plan, budget=vp.Budget(0.01, plan.budget.delta))
    for each in fields(plan):
        if isinstance(value := getattr(plan, each.name), float):
            yield replace(plan, **{each.name: value / 2})


def given_to(plan):
    """Return what a plan releases from."""
    return dict.fromkeys(plan.data_sets, CORPUS) if getattr(plan, "data_sets", ()) else CORPUS


@pytest.mark.parametrize("name", PLANS)
def test_a_changed_plan_promises_charges_and_releases_nothing(name, tmp_path):
    """Whoever asks: the plan, a release with or without a seed, a ledger. Nobody draws for it."""
    account = vp.Ledger(tmp_path / "ledger.json").open("data", vp.Budget(100, 1e-2))
    for plan in changed(PLANS[name]):
        for call in (
            lambda plan=plan: plan.guarantee,
            lambda plan=plan: plan.guaranteed(private=True),
            lambda plan=plan: plan.release(given_to(plan)),
            lambda plan=plan: plan.release(given_to(plan), seed=1),
            lambda plan=plan: account.release(plan, given_to(plan)),
        ):
            with pytest.raises(InputError, match="changed after it was made") as found:
                call()
            assert "plan again" in str(found.value)
    assert not account.entries


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_that_travels_is_the_same_plan(name):
    """Copied, or sent to another process: nothing was changed. What a release ran can be asked for its guarantee."""
    plan = PLANS[name]
    for same in (copy.copy(plan), copy.deepcopy(plan), pickle.loads(pickle.dumps(plan))):
        assert same.guarantee == plan.guarantee
    if "batches" not in name:
        assert plan.guaranteed(private=True).private
    assert not plan.guaranteed(private=False).private


@pytest.mark.parametrize("name", PLANS)
def test_the_plan_of_a_release_has_the_guarantee_that_it_was_released_with(name):
    """With what the release noted in it: lengths that ran, an alphabet that was found."""
    released = PLANS[name].release(given_to(PLANS[name]), seed=1)
    for each in released.values() if isinstance(released, dict) else [released]:
        assert replace(each.guarantee, private=True) == replace(each.plan.guarantee, private=True)
        with pytest.raises(InputError, match="changed"):
            replace(each.plan).release(given_to(PLANS[name]))


class Spending(Planned[str]):
    """A plan without numbers."""

    def _guaranteed(self):
        return vp.Guarantee(self.budget.epsilon, self.budget.delta)

    def __str__(self):
        return "a plan"


def test_planning_ends_with_a_check():
    """What spends more than the budget is no plan, and what cannot be compared is not, either."""
    for delta in (1.1e-6, 1.0, float("nan")):
        with pytest.raises(InternalError, match="exceed the budget"):
            Spending("mechanism", BUDGET).checked(delta)
    plan = Spending("mechanism", BUDGET)
    with pytest.raises(InputError, match="changed"):
        plan.guarantee  # noqa: B018
    assert plan.checked(1e-6).guarantee == vp.Guarantee(2, 1e-6)
    assert Spending("mechanism", BUDGET) == plan, "two plans of the same numbers are equal, checked or not"


def test_a_loaded_release_says_what_it_was_made_with(tmp_path):
    """Its plan is a record: nothing is released by it."""
    words = vp.Release.from_items(pa.array(["milk"]), PLANS["items"], PLANS["items"].guarantee)
    words.save(tmp_path / "words")
    assert not hasattr(vp.load(tmp_path / "words").plan, "release")
