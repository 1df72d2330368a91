"""Tests of `StoredPlan`, which contains the numbers of a loaded release."""

import copy
import pickle

import pytest

from voxpop.release.result import StoredPlan

NUMBERS = {"sigma": 1.23456789, "cutoff": None, "users_needed": [{"items": 1, "users": None}], "budgets": [0.5, 0.5]}


def test_every_number_of_a_stored_plan_is_an_attribute():
    """Stored values can be read as attributes."""
    plan = StoredPlan(NUMBERS)
    assert (plan.sigma, plan.cutoff, plan.users_needed) == (1.23456789, None, [{"items": 1, "users": None}])


def test_an_unknown_name_raises_an_attribute_error():
    """The error for a name that was not stored contains the next step."""
    with pytest.raises(AttributeError, match=r"no 'release'; `to_dict\(\)` shows"):
        _ = StoredPlan(NUMBERS).release


def test_to_dict_is_a_copy():
    """A change to the result of `to_dict` does not change the plan."""
    plan = StoredPlan(NUMBERS)
    plan.to_dict()["users_needed"][0]["items"] = 99
    plan.users_needed.append("more")
    assert plan.to_dict() == NUMBERS


def test_the_text_has_one_line_per_number():
    """The text of a plan of an unknown mechanism shows every number with its name."""
    assert str(StoredPlan(NUMBERS)).splitlines() == [
        "sigma: 1.23456789",
        "cutoff: None",
        "users needed: [{'items': 1, 'users': None}]",
        "budgets: [0.5, 0.5]",
    ]


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda plan: pickle.loads(pickle.dumps(plan))])
def test_a_plan_can_be_copied(again):
    """Copies and pickles equal the original."""
    assert again(StoredPlan(NUMBERS)) == StoredPlan(NUMBERS)
