"""Tests that every object in the table of mechanisms exists, and that plans use only names in the table."""

from importlib import import_module

import pytest

import voxpop as vp
from voxpop.cli.app import EXAMPLES, WRITTEN
from voxpop.cli.options import options_of
from voxpop.privacy.gate.gate import GATES
from voxpop.privacy.passes import PROOFS
from voxpop.release.registry import MECHANISMS, load_object, mechanism_called


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda each: each.command)
def test_registered_names_exist(mechanism):
    """The configuration is public or run by a method of `Release`. All other entries can be loaded."""
    config = load_object(mechanism.config)
    assert getattr(vp, config.__name__, None) is config or callable(getattr(vp.Release, mechanism.command, None))
    places = (mechanism.describe, mechanism.story, mechanism.audit)
    assert all(callable(load_object(place)) for place in places if place is not None)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda each: each.command)
def test_the_table_marks_mechanisms_with_text_for_reports(mechanism):
    """If `told` were missing for a package with a function `story`, reports would omit its text without an error."""
    assert hasattr(import_module(mechanism.describe.split(":")[0]), "story") is mechanism.told


def test_every_mechanism_has_a_command():
    """A command is either generated from an example or written as a function."""
    assert {*EXAMPLES, *WRITTEN} == {each.command for each in MECHANISMS}
    assert EXAMPLES.keys().isdisjoint(WRITTEN)


def test_an_option_without_a_type_raises_an_error_with_its_name():
    """The type of `known` is imported only for type checkers, so the command needs a row in `CHOICES`."""
    with pytest.raises(vp.errors.InternalError, match="`known` must have a type"):
        options_of(vp.Items, {})


def test_every_proof_has_a_gate():
    """The classes of proofs and gates have the same names in certificates, and a gate runs the passes of its proof."""
    assert GATES.keys() == PROOFS.keys()
    for name, place in GATES.items():
        assert load_object(f"voxpop.privacy.gate.{place}")._proves is PROOFS[name]


@pytest.mark.parametrize("fields", [{}, {"alphabet": ["tea"]}])
def test_mechanisms_have_the_names_in_the_table(fields):
    """Each mechanism has the same name in the table and in plans, so reports can find the text of a loaded release."""
    for mechanism in MECHANISMS:
        if (mechanism.name == "sequences") == bool(fields):
            assert load_object(mechanism.config)(**fields).to_dict()["mechanism"] == mechanism.name
    assert mechanism_called("witchcraft") is None


@pytest.mark.parametrize(
    "plan",
    [
        vp.Items().plan(vp.Budget(2, 1e-7)),
        vp.NGrams(max_length=2, max_phrases_per_user=50).plan(vp.Budget(2, 1e-7)),
        vp.ProfileMechanism({"city": "string"}).plan(vp.Budget(2, 1e-7)),
    ],
    ids=lambda plan: type(plan).__name__,
)
def test_users_needed_assumes_the_same_number_of_items_for_every_plan(plan):
    """If `per_user` is not given, every plan assumes ten items per user."""
    assert plan.users_needed(0.9) == plan.users_needed(0.9, per_user=10) > plan.users_needed(0.9, per_user=1)


def test_users_needed_assumes_no_more_items_than_the_limit():
    """A limit below ten is the default number of items per user."""
    plan = vp.Items(max_items_per_user=3).plan(vp.Budget(2, 1e-7))
    assert plan.users_needed(0.9) == plan.users_needed(0.9, per_user=3)
