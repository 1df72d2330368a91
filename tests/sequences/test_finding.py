"""Tests of releases that find their alphabet under one budget and one guarantee."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import voxpop as vp

pytestmark = pytest.mark.usefixtures("fixed_secrets")

PAGES = ["home", "news", "sport", "weather"]


def test_one_call_finds_the_alphabet_and_counts(visits):
    """The guarantee is for the whole budget, and the alphabet of the model consists of released symbols."""
    model = vp.Sequences(max_length=8, max_gram=3, alphabet="find").release(visits, vp.Budget(4, 1e-6))
    assert list(model.alphabet) == PAGES
    assert model.guarantee == vp.Guarantee(4, 1e-6)
    assert model.n_users == pytest.approx(6000, rel=0.1)
    numbers = model.plan.to_dict()
    assert (numbers["epsilon"], numbers["delta"], numbers["alphabet_size"]) == (4, 1e-6, 4)
    assert numbers["passes"][0] == {"pass": "finding", "epsilon": 1, "delta": 1e-6}
    assert numbers["epsilon_to_count"] == 3
    assert "finding the alphabet" in str(model.plan)
    assert "an alphabet of 4 symbols" in str(model.plan)
    assert not vp.Sequences(alphabet="find").release(visits, vp.Budget(4, 1e-6), seed=1).guarantee.private


@settings(max_examples=10)
@given(st.floats(1e-3, 1e3))
def test_both_steps_spend_at_most_the_budget(epsilon):
    """In exact fractions, the sum of the epsilons of both steps is at most the budget and close to it."""
    try:
        plan = vp.Sequences(alphabet="find").plan(vp.Budget(epsilon, 1e-7))
    except vp.errors.BudgetError:
        # If a quarter of epsilon is so large that finite arithmetic costs more than delta, planning raises an error.
        assert epsilon > 100
        return
    spent = Fraction(plan.finding.epsilon) + Fraction(plan.counting.epsilon)
    assert spent <= Fraction(epsilon)
    assert float(spent) == pytest.approx(epsilon)
    assert plan.finding.delta == plan.guarantee.delta == 1e-7


def test_an_alphabet_cannot_be_found_without_a_delta_or_with_too_few_users(visits):
    """Planning requires a delta. If too few users share a symbol, the release raises an error."""
    with pytest.raises(vp.errors.BudgetError, match="delta"):
        vp.Sequences(alphabet="find").plan(vp.Budget(1))
    with pytest.raises(vp.errors.InputError, match="no alphabet"):
        vp.Sequences(alphabet="find").release(visits, vp.Budget(0.01, 1e-9))
