"""Tests of the private choice of the limit, including its caps, its rule, and its histogram on every engine."""

from dataclasses import replace
from math import hypot, sqrt

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings

import voxpop as vp
from audits.limit_cases import counted, limit_cases
from support.deltas import pair, total_delta
from support.engine_contract import naive_of
from support.exact import Exact
from support.look import read_engine
from support.twins import passed_off
from voxpop.engine.local import pools
from voxpop.errors import BudgetError, InternalError
from voxpop.kernels.arrays import Int64s
from voxpop.mechanisms.rounds.adaptive import Terms
from voxpop.mechanisms.rounds.menu import (
    CERTAIN_SIGMAS_OF_CLASSES,
    LIMITS,
    SHARE_OF_CHOICE,
    TYPICAL_OF_CLASSES,
    Menu,
    planned_rounds,
    users_needed_by,
)
from voxpop.privacy.decisions import CellNoise
from voxpop.privacy.gate import rounds as gated
from voxpop.privacy.gaussian import delta as gaussian_delta
from voxpop.privacy.secret import Secret
from voxpop.testing.auditing import examine

BUDGETS = [vp.Budget(3, 4.5e-5), vp.Budget(1, 1e-5), vp.Budget(0.5, 1e-7)]
ENDS = (LIMITS[0], LIMITS[3], LIMITS[-1])
MEMORY = {"memory": None, "limited memory": "3GiB"}
TRIALS = 20_000


def menu_of(budget: vp.Budget, **settings) -> Menu:
    planned = planned_rounds(Terms(budget.epsilon, budget.delta, **settings), None)
    assert isinstance(planned, Menu)
    return planned


def holders(sizes: list[int], memory: str | None = None):
    """Return a corpus of users with these numbers of items, in which every row occurs twice."""
    rows = [(user, f"i{item}") for user, size in enumerate(sizes) for item in range(size) for _ in range(2)]
    table = pl.DataFrame(rows or [(0, None)], schema={"who": pl.Int64, "what": pl.String}, orient="row")
    return read_engine(table, user="who", items="what", options=vp.ReadOptions(memory=memory))


def classes(engine, edges: tuple[int, ...]) -> list[int]:
    """Return the exact numbers of users by class."""
    weights = engine.pools(Secret.fresh()).sizes(edges)
    return weights.measured(Exact(), len(edges) + 1).tolist()


# Tests of charges.


@pytest.mark.jit
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("settings", [{}, {"data_sets": 3}, {"share": 0.1, "novelty": 0.15}], ids=str)
def test_every_entry_is_within_the_caps_and_the_caps_are_within_the_budget(budget, settings):
    """The test computes the largest novel probability and the largest mu^2 again from the rounds that would run."""
    menu, sets = menu_of(budget, **settings), settings.get("data_sets", 1)
    entries = [menu.entry(limit) for limit in ENDS]
    novel, square = max(pair(entry)[0] for entry in entries), max(entry.square for entry in entries)
    assert 0.99 * menu.novel < novel <= menu.novel
    assert (1 - 1e-6) * menu.square < square <= menu.square
    # `rest` is the budget for later releases if the rounds use only a part of the budget.
    share = settings.get("share", 1 - SHARE_OF_CHOICE)
    rest = max(0.0, sets * (menu.square * (1 / share - 1) * (1 - 1e-9) - menu.sigma**-2))
    assert ("share" in settings) == (rest > 1e-6)
    by_hand = sets * novel + gaussian_delta(budget.epsilon, sqrt(sets * (menu.sigma**-2 + square) + rest))
    assert 0.99 * budget.delta < by_hand <= total_delta(menu, budget, sets, rest) <= budget.delta


@pytest.mark.jit
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_the_spend_of_a_plan_covers_the_choice_and_the_rounds(budget):
    """The histogram gets a fixed share of the total mu^2."""
    plan = vp.Items().plan(budget)
    assert 0.99 * budget.delta < plan.delta_spent <= budget.delta
    menu, spend = plan.passes[0], plan.guarantee.spend
    assert menu.sigma**-2 / (menu.sigma**-2 + menu.square) == pytest.approx(SHARE_OF_CHOICE, rel=1e-6)
    assert spend.mu >= hypot(1 / menu.sigma, sqrt(menu.square)) * (1 - 1e-12)
    assert spend.novel >= menu.novel


@pytest.mark.jit
@pytest.mark.usefixtures("fixed_secrets")
def test_the_charge_to_a_ledger_is_the_same_for_every_choice(tmp_path):
    """The charge depends on the caps instead of the chosen entry.

    Otherwise, the account would depend on private data.
    """
    account = vp.Ledger(tmp_path / "team.ledger").open("people", vp.Budget(9, 1e-3), create=True)
    crowds = [2] * 2000, [600] * 200
    releases = [vp.Items().release(holders(each), BUDGETS[0], ledger=account) for each in crowds]
    assert releases[0].plan.last.limit < releases[1].plan.last.limit
    one, other = (entry.guarantee for entry in account.entries)
    assert one == other == releases[0].guarantee == releases[1].guarantee


@pytest.mark.jit
def test_a_release_with_the_plan_of_another_release_chooses_again():
    """The plan of a release contains the choice and the chosen rounds. A release with this plan makes a new choice."""
    plan = vp.Items().plan(BUDGETS[0])
    first = plan.release(holders([600] * 200), seed=1).plan
    again = first.release(holders([2] * 2000), seed=1).plan
    assert first.passes[:1] == again.passes[:1] == plan.passes
    assert [len(each.passes) for each in (plan, first, again)] == [1, 2, 2]
    assert again.last.limit < first.last.limit
    assert [row["pass"] for row in again.to_dict()["passes"]] == ["choice", "threshold", *["round"] * 20]


@pytest.mark.jit
def test_menus_with_too_little_noise_exceed_the_budget():
    """In the broken variants, rounds also spend the histogram's part, or the histogram has too little noise."""
    budget = BUDGETS[0]
    menu = menu_of(budget)
    assert total_delta(replace(menu, square=menu.square / (1 - SHARE_OF_CHOICE)), budget) > budget.delta * 1.005
    assert total_delta(replace(menu, sigma=menu.sigma / 10), budget) > budget.delta * 1.5


@pytest.mark.jit
def test_an_entry_beyond_the_caps_does_not_run():
    """In the broken variants, the caps are lower than the cost of the entry."""
    menu = menu_of(BUDGETS[1])
    for lower in (replace(menu, novel=menu.novel / 2), replace(menu, square=menu.square / 2)):
        with pytest.raises(InternalError, match="caps"):
            lower.entry(LIMITS[0])


@pytest.mark.jit
def test_the_plan_contains_the_users_that_the_worst_limit_needs():
    """Before the choice, the number of users needed is that of the worst limit."""
    menu = menu_of(BUDGETS[1])
    for items in (1, 100, 1000, 30_000):
        every = [users_needed_by(menu.entry(limit), BUDGETS[0], 0.5, items) for limit in LIMITS[::2]]
        assert menu.users_needed(0.5, items) == max(every)


@pytest.mark.jit
def test_min_users_applies_to_every_entry():
    """For every choice, items of few users are released with at most the failure probability."""
    plan = vp.Items(min_users=20).plan(BUDGETS[1])
    assert plan.released_with_few() == plan.promise.beta
    for limit in ENDS:
        ran = passed_off(plan, passes=(*plan.passes, plan.passes[0].entry(limit)))
        assert ran.released_with_few() <= plan.promise.beta


@pytest.mark.slow
@settings(max_examples=12)
@given(st.floats(-4.5, 1.3), st.floats(-28, -1.5))
def test_every_entry_of_a_valid_menu_can_be_planned(epsilon, delta):
    """No choice of a limit fails after the charge."""
    try:
        menu = vp.Items().plan(vp.Budget(10**epsilon, 10**delta)).passes[0]
    except BudgetError:
        return
    for limit in ENDS:
        menu.entry(limit)


@pytest.mark.parametrize(("epsilon", "sets"), [(3e-4, 1), (2e-4, 1), (1e-3, 10), (1e-3, 30)])
def test_a_menu_with_a_limit_that_cannot_run_is_rejected_before_a_charge(tmp_path, epsilon, sets):
    """At a very small epsilon, weights would overflow for the largest limits.

    In an earlier version, these limits failed after the charge.
    """
    account = vp.Ledger(tmp_path / "ledger.json").open("shop", vp.Budget(1, 1e-5), create=True)
    data = {f"set {number}": holders([1]) for number in range(sets)}
    with pytest.raises(BudgetError, match="Set max_items_per_user=100"):
        vp.Items().release_each(data, vp.Budget(epsilon, 1e-7), ledger=account)
    assert account.entries == []
    assert vp.Items(max_items_per_user=100).plan_each(list(data), vp.Budget(epsilon, 1e-7))
    with pytest.raises(BudgetError):
        planned_rounds(Terms(epsilon, 1e-7, data_sets=sets), None)


@pytest.mark.jit
@pytest.mark.parametrize("sets", [1, 10])
def test_every_limit_runs_at_the_smallest_epsilon_of_a_menu(sets):
    """Just above the smallest epsilon of the menu, the largest limits can run."""
    refused, fits = 1e-5, 1e-1
    while fits / refused > 1.0001:
        middle = (refused * fits) ** 0.5
        try:
            menu = planned_rounds(Terms(middle, 1e-7, data_sets=sets), None)
            fits = middle
        except BudgetError:
            refused = middle
    menu = planned_rounds(Terms(fits, 1e-7, data_sets=sets), None)
    for limit in LIMITS[-2:]:
        menu.entry(limit)


@pytest.mark.jit
@pytest.mark.usefixtures("fixed_secrets")
def test_each_data_set_chooses_its_own_limit():
    """Histograms and their noise are separate, but the guarantee is the same and does not depend on the choices."""
    plan = vp.Items().plan_each(["few", "many"], BUDGETS[0])
    found = plan.release({"few": holders([2] * 4000), "many": holders([600] * 400)})
    assert found["few"].plan.last.limit < found["many"].plan.last.limit
    assert found["few"].guarantee == found["many"].guarantee == plan.guarantee
    assert plan.passes[0].sigma == pytest.approx(2**0.5 * vp.Items().plan(BUDGETS[0]).passes[0].sigma, rel=1e-3)


# Tests of the rule that chooses a limit.


def scores(menu: Menu, counts: Int64s) -> list[float]:
    """Return the scores of all limits in floating point, as in docs/privacy/limit.md."""
    kept = np.where(counts < np.array(CERTAIN_SIGMAS_OF_CLASSES) * menu.sigma, 0, counts).astype(float)
    kept[4] += max(1, round(menu.sigma))
    return [float(np.sum(kept * np.minimum(TYPICAL_OF_CLASSES, limit) ** 0.7) / limit**0.05) for limit in LIMITS]


@given(st.lists(st.integers(-500, 10**7), min_size=len(TYPICAL_OF_CLASSES), max_size=len(TYPICAL_OF_CLASSES)))
def test_the_rule_in_whole_numbers_agrees_with_floating_point(counts):
    """The chosen limit is as good as the best limit in floating point."""
    menu = menu_of(BUDGETS[0])
    every = scores(menu, np.array(counts))
    assert every[LIMITS.index(menu.limit_for(np.array(counts)))] >= max(every) * (1 - 1e-6)


def test_the_limit_is_800_if_no_class_is_visible():
    """If all users are in one class, the limit is near their number of items."""
    menu = menu_of(BUDGETS[0])
    assert menu.limit_for(np.zeros(len(TYPICAL_OF_CLASSES), np.int64)) == 800
    crowds = 100_000 * np.eye(len(TYPICAL_OF_CLASSES), dtype=np.int64)
    assert [menu.limit_for(crowd) for crowd in crowds] == [100, *LIMITS]


# Tests of the histogram.


def test_users_are_counted_by_their_distinct_items():
    """The corpus has users at the edges of classes, repeated items, and a user without items, who is not counted."""
    corpus = holders([1, 1, 2, 3, 4, 5, 9, 0])
    assert classes(corpus, (2, 3, 5)) == classes(naive_of(corpus), (2, 3, 5)) == [2, 1, 2, 2]


@given(st.lists(st.integers(0, 12), min_size=1, max_size=30), st.sampled_from(sorted(MEMORY)))
def test_all_engines_count_the_same_classes(sizes, memory):
    """The engines run in memory, within a memory limit, and as a reference implementation."""
    corpus = holders(sizes, MEMORY[memory])
    assert classes(corpus, (2, 4, 9)) == classes(naive_of(corpus), (2, 4, 9))


def moved(sizes: list[int], gone: int) -> int:
    """Return the l1 change of the histogram by one user."""
    fewer = [size for number, size in enumerate(sizes) if number != gone]
    one, other = (np.array(classes(holders(each), (2, 4, 9))) for each in (sizes, fewer))
    return int(np.abs(one - other).sum())


@given(st.lists(st.integers(1, 12), min_size=2, max_size=30), st.integers(0, 29))
def test_one_user_changes_one_class_by_one(sizes, gone):
    """The class of a user depends only on the user's own items."""
    assert moved(sizes, gone % len(sizes)) == 1


def test_classes_that_depend_on_other_users_are_detected(monkeypatch):
    """In the broken variant, users are compared with the mean of all users, so one user changes several classes."""

    def relative(starts, edges):
        held = np.concatenate([np.diff(each) for each in starts])
        return np.bincount((held > held.mean()) * 2, minlength=len(edges) + 1)

    monkeypatch.setattr(pools, "count_classes", relative)
    assert moved([1, 4, 4, 4, 30], 4) > 1


@pytest.mark.slow
@pytest.mark.jit
def test_the_audit_of_the_choice_passes():
    """The audit compares histograms with and without one user (false alarm 1e-9)."""
    (case,) = limit_cases()
    assert examine(case, TRIALS).passed


@pytest.mark.slow
@pytest.mark.jit
@pytest.mark.parametrize(("part", "refuted"), [(1e-3, True), (1 / 8, False)])
def test_the_audit_detects_a_histogram_with_too_little_noise(monkeypatch, part, refuted):
    """With almost no noise, an additional user is detected with certainty.

    Noise reduced to an eighth is detected as a deviation from the plan.

    The probability of missing the second fault is below 1e-3.
    """
    real = CellNoise
    monkeypatch.setattr(gated, "CellNoise", lambda sigma, *rest: real(sigma * part, *rest))
    (case,) = limit_cases()
    finding = examine(case, TRIALS)
    assert finding.off_plan
    assert finding.refuted == refuted


@pytest.mark.jit
def test_less_noise_separates_the_probabilities_of_an_audit_case():
    """With less noise, the difference of the exact probabilities is more than five times as large."""
    (case,) = limit_cases()
    louder = counted(replace(menu_of(case.budget), sigma=1.0), case.budget)
    assert louder.exact[0] - louder.exact[1] > 5 * (case.exact[0] - case.exact[1])
