"""One budget for several releases, in which all targets are reached, and the total is the budget without waste."""

import pytest

import voxpop as vp
from voxpop.errors import BudgetError, InputError
from voxpop.ledger.caps import AccountLimits
from voxpop.mechanisms.counts.mechanism import CountsMechanism

BUDGET = vp.Budget(2, 1e-7)
AIMS = {
    "words": vp.Target(vp.Items(max_items_per_user=100), users=120, per_user=10),
    "heavy": vp.Target(vp.Items(max_items_per_user=1, weighting=vp.weightings.Count()), users=100),
    "counts": vp.Target(error=60, counted_in_full=16),
    "profile": vp.Target(vp.ProfileMechanism({"city": "string", "year": "int64"}, joint=[("city", "year")]), users=400),
}


@pytest.fixture(scope="module")
def parts():
    """Return the budget in parts."""
    return vp.split_budget(BUDGET, AIMS)


@pytest.mark.slow
def test_all_aims_are_reached_within_the_budget(parts):
    """The plans reach all targets, and an epsilon that is 3 percent larger for each does not fit."""
    assert set(parts) == set(AIMS)
    assert AIMS["words"].mechanism.plan(parts["words"]).users_needed(0.9, per_user=10) <= 120
    assert AIMS["heavy"].mechanism.plan(parts["heavy"]).users_needed(0.9) <= 100
    larger = [
        target.guarantee(vp.Budget(1.03 * parts[name].epsilon, parts[name].delta)) for name, target in AIMS.items()
    ]
    assert not AccountLimits.of(BUDGET).hold(larger)


@pytest.mark.parametrize("order", [list(AIMS), list(reversed(AIMS))])
def test_a_ledger_of_the_budget_admits_its_allocations(parts, order, tmp_path):
    """Each release of an allocation can be charged, one after the other, in any order."""
    account = vp.Ledger(tmp_path / "team.ledger").open("people", BUDGET, create=True)
    for name in order:
        account.charge(AIMS[name].guarantee(parts[name]), name)
    assert len(account.entries) == len(AIMS)


def test_the_error_of_counts_is_that_of_counts(parts):
    """A count with the allocated part has the requested error, and its guarantee is at most the composed one."""
    part = parts["counts"]
    table = {"u": list(range(2000)), "x": [[str(number % 40)] for number in range(2000)]}
    words = vp.Items(max_items_per_user=16).release(vp.read(table, user="u", items="x"), vp.Budget(4, 1e-6))
    plan = CountsMechanism(counted_in_full=16).plan(part, words)
    assert plan.error <= 60 * 1.001
    composed = AIMS["counts"].guarantee(part)
    assert plan.guarantee.spend.mu <= composed.spend.mu * 1.001


def test_targets_beyond_the_budget_are_rejected():
    """A target that is beyond the budget, by itself or in total, raises an error that contains the required epsilon."""
    with pytest.raises(BudgetError, match='target of "words"'):
        vp.split_budget(BUDGET, {"words": vp.Target(vp.Items(max_items_per_user=100), users=5, per_user=100)})
    close = {name: vp.Target(error=5, counted_in_full=1) for name in ("a", "b", "c", "d")}
    with pytest.raises(BudgetError, match="need epsilon"):
        vp.split_budget(vp.Budget(1.3, 1e-7), close)


@pytest.mark.parametrize(
    "wrong", [{}, {"users": 3}, {"mechanism": vp.Items()}, {"error": 3, "users": 3}, {"error": 0.1}]
)
def test_invalid_targets_are_rejected(wrong):
    """A target that is empty, incomplete, double or below the rounding error raises an error."""
    with pytest.raises(InputError):
        vp.Target(**wrong)
    with pytest.raises(InputError, match="target for each release"):
        vp.split_budget(BUDGET, {})
