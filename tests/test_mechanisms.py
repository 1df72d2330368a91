"""Every object named in the table of mechanisms exists, and plans use only names in the table."""

import pytest

import voxpop as vp
from voxpop.release.registry import MECHANISMS, load, mechanism_called


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda each: each.command)
def test_what_is_registered_exists(mechanism):
    """The configuration is public, or a method of `Release` runs it; its other entries can be loaded."""
    config = load(mechanism.config)
    assert getattr(vp, config.__name__, None) is config or callable(getattr(vp.Release, mechanism.command, None))
    places = (mechanism.describe, mechanism.story, mechanism.audit)
    assert all(callable(load(place)) for place in places if place is not None)


@pytest.mark.parametrize("fields", [{}, {"alphabet": ["tea"]}])
def test_plans_say_which_mechanism_they_are_of(fields):
    """A plan states the name of its mechanism in the table, so that the report of a loaded release has its text."""
    for mechanism in MECHANISMS:
        if (mechanism.name == "sequences") == bool(fields):
            assert load(mechanism.config)(**fields).to_dict()["mechanism"] == mechanism.name
    assert mechanism_called("witchcraft") is None
