"""The numbers of a plan are checked against the budget only during planning, so a changed plan has no guarantee."""

import copy
import inspect
import pickle
import sys
from contextlib import suppress
from dataclasses import fields, replace
from fractions import Fraction
from functools import cache

import pyarrow as pa
import pytest

import voxpop as vp
from support.corpora import corpus_of
from voxpop.errors import InputError, InternalError
from voxpop.mechanisms.counts.mechanism import CountsMechanism, TopMechanism
from voxpop.privacy.gaussian import sigma
from voxpop.privacy.passes import Counted, CountsProof
from voxpop.privacy.planned import Planned, certified, with_record
from voxpop.release.registry import MECHANISMS, load_object

BUDGET = vp.Budget(2, 1e-6)
CORPUS = corpus_of([[["tea", "milk"], ["tea"]]] * 400)
PROFILING = vp.ProfileMechanism({"what": "string"})
KEYED = replace(corpus_of([[["0|tea", "0|milk"], ["0|tea"]]] * 400), token_source=PROFILING.keys.token_source)
KEYS = vp.KeyCounts({"what": "string"}, [("what",)])
OF_KEYS = replace(KEYED, token_source=KEYS.keys.token_source)
WORDS = vp.papers.SetUnion(4, "weighted", accounting="joint").release(CORPUS, BUDGET, seed=1)
PLANS = {
    "items": vp.Items(max_items_per_user=4).plan(BUDGET),
    "items, data sets": vp.Items(max_items_per_user=4).plan_each(["one", "two"], BUDGET),
    "items, weighted": vp.papers.SetUnion(4, "weighted", accounting="joint").plan(BUDGET),
    "items, as published": vp.papers.SetUnion(4, "policy-laplace").plan(BUDGET),
    "items, one each": vp.papers.OptimalSelection().plan(vp.Budget(8, 1e-3)),
    "ngrams": vp.NGrams(max_length=2, max_phrases_per_user=4).plan(BUDGET),
    "DPNE": vp.papers.DPNE(max_length=2, max_phrases_per_user=4).plan(BUDGET),
    "hitters": vp.HeavyHitters(max_length=4).plan(BUDGET),
    "hitters, as published": vp.papers.TrieHH(max_length=3).plan(vp.Budget(4, 1e-3)),
    "sequences": vp.Sequences(alphabet=["tea", "milk"], max_gram=2).plan(vp.Budget(2)),
    "sequences, found": vp.Sequences(alphabet="find", max_gram=2).plan(BUDGET),
    "sequences, as published": vp.papers.VariableLengthNGrams(20, 3, alphabet=["tea", "milk"]).plan(vp.Budget(2)),
    "profile": PROFILING.plan(BUDGET),
    "keys": KEYS.plan(BUDGET),
    "count": CountsMechanism(counted_in_full=2).plan(BUDGET, WORDS),
    "top": TopMechanism(1).plan(BUDGET, WORDS),
}


def changed(plan):
    """Yield copies made by `dataclasses.replace`. A copy is unchanged, has another budget, or has one number halved."""
    yield replace(plan)
    yield replace(plan, budget=vp.Budget(0.01, plan.budget.delta))
    for each in fields(plan):
        if each.init and isinstance(value := getattr(plan, each.name), float):
            yield replace(plan, **{each.name: value / 2})


def given_to(plan):
    """Return data for the release of a plan."""
    if getattr(plan, "data_sets", ()):
        return dict.fromkeys(plan.data_sets, CORPUS)
    return {vp.ProfileMechanism: KEYED, vp.KeyCounts: OF_KEYS}.get(type(plan.mechanism), CORPUS)


@cache
def releases_of(name):
    """Return the release of a plan in a list, or its releases if it has several data sets."""
    released = PLANS[name].release(given_to(PLANS[name]), seed=1)
    return list(released.values()) if isinstance(released, dict) else [released]


@pytest.mark.parametrize("name", PLANS)
def test_a_changed_plan_has_no_guarantee_and_does_not_run(name, tmp_path):
    """The guarantee, the draws and every release of a changed plan raise an error, and no ledger is charged."""
    account = vp.Ledger(tmp_path / "ledger.json").open("data", vp.Budget(100, 1e-3), create=True)
    for plan in changed(PLANS[name]):
        for call in (
            lambda plan=plan: plan.guarantee,
            lambda plan=plan: plan.begin(None),
            lambda plan=plan: plan.release(given_to(plan)),
            lambda plan=plan: plan.release(given_to(plan), seed=1),
            lambda plan=plan: plan.release(given_to(plan), ledger=account),
        ):
            with pytest.raises(InputError, match="changed after it was made") as found:
                call()
            assert "plan again" in str(found.value)
    assert not account.entries


@pytest.mark.parametrize("name", PLANS)
def test_a_copied_or_pickled_plan_keeps_its_guarantee(name):
    """Copying and pickling do not change a plan."""
    plan = PLANS[name]
    for same in (copy.copy(plan), copy.deepcopy(plan), pickle.loads(pickle.dumps(plan))):
        assert same.guarantee == plan.guarantee
    if "batches" not in name:
        assert plan.begin(None)[1].private
    assert not plan.begin(0)[1].private


@pytest.mark.parametrize("name", PLANS)
def test_the_plan_of_a_release_has_the_guarantee_of_the_release(name):
    """The plan of a release also contains records of the release, such as executed lengths or a released alphabet."""
    for each in releases_of(name):
        assert replace(each.guarantee, private=True) == replace(each.plan.guarantee, private=True)
        with pytest.raises(InputError, match="changed"):
            replace(each.plan).release(given_to(PLANS[name]))


NAMES = {"classes": "choice", "first round": "threshold"}
"""The types of rows for steps of adaptive rounds that have other names in a transcript."""


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_has_a_row_for_every_pass_that_runs(name):
    """Each type of pass in the transcript of a release has a row in the plan."""
    kinds = {row["pass"] for row in PLANS[name].to_dict()["passes"]}
    for each in releases_of(name):
        ran = {step["pass"] for step in each.plan.transcript}
        assert ran
        assert {kind if kind in kinds else NAMES.get(kind) for kind in ran} <= kinds


def rate(text):
    """Return a fraction in a certificate as a float."""
    return float(Fraction(text))


def rows_of_keys(numbers):
    """Return the numbers of the certificate that rows of keys with counts contain."""
    parts = numbers["parts"]
    return {
        "classes": [{"edges": numbers["edges"], "rate": rate(numbers["choosing"])}],
        "numbers": [
            {"limit": each["limit"], "rate": rate(each["rate"]), "reach": each["reach"]} for each in numbers["menu"]
        ],
        "few": [{"rate": rate(parts["rate"]), "threshold": parts["threshold"]}],
        "sizes": [{"rate": rate(parts["sizing"])}],
        "counts": [{"mu_squared": numbers["rounds"]["later"]["counting"]}],
        "rest": [{"rate": rate(numbers["rest"])}],
    }


CERTIFIED = {
    "hitters": lambda numbers: {"votes": [numbers]},
    "hitters, as published": lambda numbers: {"votes": [numbers]},
    "count": lambda numbers: {
        "count": [{"limit": each["limits"][0], "sigma": each["sigma"]} for each in numbers["menu"]]
    },
    "top": lambda numbers: {"picks": [numbers]},
    "profile": lambda numbers: {
        "counts": [{"mu_squared": numbers["later"]["counting"]}],
        "cover": [numbers["later"]["cover"]],
    },
    "keys": rows_of_keys,
}
"""The numbers of a certificate that rows contain, by the type of the row."""


@pytest.mark.parametrize("name", CERTIFIED)
def test_rows_have_the_numbers_of_the_certificate(name):
    """The noise and the thresholds of rows are the numbers of the certificate."""
    plan = PLANS[name]
    for kind, every in CERTIFIED[name](plan.certificate.to_dict()["numbers"]).items():
        rows = [row for row in plan.to_dict()["passes"] if row["pass"] == kind]
        assert [{key: row[key] for key in each} for row, each in zip(rows, every, strict=True)] == every


def plan_classes(base=Planned):
    """Return every concrete class of plans that voxpop defines, after importing all mechanisms."""
    for each in MECHANISMS:
        load_object(each.config)
    below = [each for child in base.__subclasses__() for each in plan_classes(child)]
    # A dataclass with slots replaces the original class, but the original remains in the list of subclasses.
    own = getattr(sys.modules[base.__module__], base.__name__, None) is base and base.__module__.startswith("voxpop.")
    return {*below, *([base] if own and not inspect.isabstract(base) else [])}


def test_every_class_of_plans_is_tested_here():
    """The test fails if `PLANS` does not contain a new mechanism or a new class of plans."""
    assert {type(plan) for plan in PLANS.values()} == plan_classes()
    published = {"variable-length n-grams (CAC12)"}
    assert {plan.to_dict()["mechanism"] for plan in PLANS.values()} == {each.name for each in MECHANISMS} | published


def attempts(plan):
    """Return possible arguments for all public methods of a plan."""
    smaller = {"budget": vp.Budget(0.01, 0.0), "delta": 0.0}
    for each in fields(plan):
        value = getattr(plan, each.name)
        smaller.setdefault(each.name, value / 2 if isinstance(value, float) else value)
    known = [(), (0.0,), (0.5,), (1,), (1, 0.5), (given_to(plan),), (vp.Budget(0.01, 0.0),), (smaller,), (plan,)]
    return [
        *[(arguments, {}) for arguments in known],
        ((), smaller),
        *[((), {name: value}) for name, value in smaller.items()],
        ((given_to(plan),), {"seed": 1}),
        ((), {"private": True}),
    ]


def found_in(value):
    """Yield the plans in the result of a call."""
    if isinstance(value, Planned):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        yield from found_in(each)
    if isinstance(ran := getattr(value, "plan", None), Planned):
        yield ran


def public_calls(plan):
    """Read all public attributes of a plan, call all public methods with various arguments, and yield the results."""
    for name in dir(plan):
        if name.startswith("_"):
            continue
        try:
            value = getattr(plan, name)
        except InputError:
            continue  # A changed plan has no guarantee.
        yield value
        if not callable(value) or isinstance(value, type):
            continue
        for arguments, named in attempts(plan):
            with suppress(Exception):  # A call with wrong arguments can raise any error.
                yield value(*arguments, **named)


@pytest.mark.parametrize("name", PLANS)
def test_no_public_call_returns_a_plan_with_another_guarantee(name):
    """After any call or replacement, the plan is unchanged, and each new plan has the same guarantee or none."""
    plan, before = PLANS[name], copy.deepcopy(PLANS[name])
    seen = [plan, *changed(plan)]
    for start in list(seen):
        for value in public_calls(start):
            seen += [each for each in found_in(value) if type(each) is type(plan)]
    for each in list(seen):
        seen += changed(each)
    assert len(seen) > 10
    for each in seen:
        with suppress(InputError):
            assert each.guarantee == plan.guarantee
            assert each.guarantee.spend == plan.guarantee.spend
    assert plan.to_dict() == before.to_dict()
    assert plan.guarantee == before.guarantee
    for attribute in [each for each in dir(plan) if not each.startswith("_")]:
        with pytest.raises((AttributeError, TypeError)):
            setattr(plan, attribute, None)


@pytest.mark.parametrize("name", PLANS)
def test_a_release_records_only_declared_fields_in_its_plan(name):
    """A release that records the budget, the mechanism or a number of the guarantee raises an error."""
    plan = PLANS[name]
    for each in fields(plan):
        if each.name in type(plan)._recorded:
            assert with_record(plan, **{each.name: getattr(plan, each.name)}).guarantee == plan.guarantee
        else:
            with pytest.raises(InternalError, match="cannot record"):
                with_record(plan, **{each.name: getattr(plan, each.name)})


class Spending(Planned[str, object, object]):
    """A plan whose only number is its noise scale."""

    def _proof(self):
        return CountsProof((Counted((1,), self.mechanism),), 0.0)

    def _run(self, data, seed):
        return data

    def to_dict(self):
        return {"mechanism": self.mechanism}

    def __str__(self):
        return "a plan"


def test_planning_ends_with_a_check():
    """A plan raises an error if it spends more than the budget or if its numbers do not fit its proof."""
    enough = sigma(BUDGET.epsilon, BUDGET.delta * (1 - 1e-9))
    for scale, words in ((0.999 * enough, "exceed the budget"), (-1.0, "does not apply")):
        with pytest.raises(InternalError, match=words):
            certified(Spending(scale, BUDGET))
    with pytest.raises(ValueError, match="Out of range float"):
        certified(Spending(float("nan"), BUDGET))
    plan = Spending(enough, BUDGET)
    for lacking in ("guarantee", "certificate"):
        with pytest.raises(InputError, match="changed"):
            getattr(plan, lacking)
    assert certified(plan).guarantee == vp.Guarantee(2, 1e-6)
    assert Spending(enough, BUDGET) == plan, "two plans of the same numbers are equal, checked or not"


def test_the_plan_of_a_loaded_release_cannot_release(tmp_path):
    """A loaded plan is only a record, so it has no method `release`."""
    words = vp.Release.from_items(pa.array(["milk"]), PLANS["items"], PLANS["items"].guarantee)
    words.save(tmp_path / "words")
    assert not hasattr(vp.load(tmp_path / "words").plan, "release")
