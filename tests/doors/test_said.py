"""Tests of messages about budgets that are too large, ledgers that reject a charge, and available choices."""

import re

import pytest

import voxpop as vp
from voxpop.cli import main
from voxpop.errors import BudgetError

PLANS = {
    "adaptive": lambda budget: vp.Items(max_items_per_user=2).plan(budget),
    "count, Laplace": lambda budget: vp.papers.SetUnion(2, "count-laplace", accounting="joint").plan(budget),
    "weighted": lambda budget: vp.papers.SetUnion(2, "weighted", accounting="joint").plan(budget),
    "n-grams": lambda budget: vp.NGrams(max_length=2, max_phrases_per_user=2).plan(budget),
    "n-grams as published": lambda budget: vp.papers.DPNE(max_length=2, max_phrases_per_user=2).plan(budget),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_an_epsilon_without_a_possible_delta_is_reported_as_too_large(plan):
    """The message never suggests a delta of 1 or more."""
    with pytest.raises(BudgetError, match="epsilon 200 is too large") as caught:
        plan(vp.Budget(200, 1e-7))
    asked = re.findall(r"at least ([\d.e-]+)", str(caught.value))
    assert all(float(number) < 1 for number in asked)


def test_a_full_ledger_raises_an_error_with_an_explanation(tmp_path):
    """The message shows the budget that is closest to its limit, with the amounts spent, left and requested."""
    ledger = vp.Ledger(tmp_path / "ledger.json")
    account = ledger.open("posts", vp.Budget(3, 1e-6), create=True)
    plan = vp.papers.SetUnion(2, "count", accounting="joint").plan(vp.Budget(1.5, 1e-8))
    for number in range(20):
        if not account.fits(plan.guarantee):
            break
        account.charge(plan.guarantee, f"release {number}")
    with pytest.raises(BudgetError) as caught:
        account.check(plan.guarantee)
    said = str(caught.value)
    assert re.search(r"Gaussian noise: 0\.\d+ of 1 spent, 0\.\d+ left, 0\.\d+ requested", said)
    assert "mu squared" not in said


def test_the_error_for_an_unknown_audit_lists_all_arguments(capsys):
    """The arguments include the one that runs all audits."""
    assert main(["audit", "foo"]) == 2
    said = capsys.readouterr().err
    assert all(f'"{name}"' in said for name in ("items", "ngrams", "heavy-hitters", "sequences", "top", "all"))


def test_the_plan_prints_never_if_no_number_of_users_suffices():
    """The printed plan contains "never" instead of None."""
    plan = vp.papers.SetUnion(2, "policy-gaussian", 0.0, "joint").plan(vp.Budget(1, 1e-8))
    assert plan.users_needed(0.999) is None
    assert "never" in str(plan)
    assert vp.Items(max_items_per_user=2).plan(vp.Budget(1, 1e-8)).users_needed(0.999) > 10
