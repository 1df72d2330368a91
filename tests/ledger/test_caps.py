"""The releases that a ledger accepts compose within its budget, and a release that it refuses exceeds its caps."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import voxpop as vp
from voxpop.ledger import caps as caps_module
from voxpop.ledger.caps import accounts_of, may_run
from voxpop.privacy.composition import composed_delta
from voxpop.privacy.guarantee import Guarantee, Spend

BUDGET = vp.Budget(4, 1e-6)
NOTHING_PROMISED = (50.0, 0.9)
PLAIN = st.builds(Guarantee, st.floats(0.05, 2), st.sampled_from([0.0, 1e-9, 1e-7]))
SPENDING = st.builds(
    lambda novel, mu: Guarantee(*NOTHING_PROMISED, spend=Spend(novel, mu)),
    st.sampled_from([0.0, 1e-9, 1e-7]),
    st.floats(0.02, 0.6),
)
REQUESTS = st.lists(PLAIN | SPENDING, max_size=25)


def run(requests, budget=BUDGET):
    """Return the accepted requests, checked in order."""
    accepted = []
    for each in requests:
        if may_run(budget, accepted, each):
            accepted.append(each)
    return accepted


@given(REQUESTS)
@settings(max_examples=80)
def test_what_is_let_in_composes_within_the_budget(requests):
    """The exact composition of dominating pairs, which does not use the caps, confirms that accepted releases fit."""
    accepted = run([Guarantee(0.05, 0.0), *requests])
    assert composed_delta(BUDGET.epsilon, accepted) <= BUDGET.delta


def test_the_check_finds_caps_that_are_too_wide(monkeypatch):
    """A deliberately broken variant that allows twice the mu^2 accepts more than the budget."""
    real = caps_module._square
    monkeypatch.setattr(caps_module, "_square", lambda *numbers: 2 * real(*numbers))
    accepted = run(_small(120))
    assert composed_delta(BUDGET.epsilon, accepted) > BUDGET.delta


def test_the_check_finds_chances_that_are_not_added(monkeypatch):
    """A deliberately broken variant that ignores the probabilities of novel items accepts more than the budget."""
    monkeypatch.setattr(caps_module, "NOVEL_SHARE", 10**6)
    monkeypatch.setattr(caps_module, "_square", lambda *numbers: 0.5)
    accepted = run([Guarantee(0.5, 1e-7, spend=Spend(1e-7, 0.01))] * 60)
    assert composed_delta(BUDGET.epsilon, accepted) > BUDGET.delta


def _small(count):
    return [Guarantee(0.5, 1e-9, spend=Spend(0.0, 0.1)) for _ in range(count)]


def test_gaussian_releases_get_far_more_room_than_sums():
    """Small Gaussian releases fit although the sum of their epsilons is several times the budget."""
    accepted = run(_small(120))
    assert sum(each.epsilon for each in accepted) > 3 * BUDGET.epsilon
    assert composed_delta(BUDGET.epsilon, accepted) > BUDGET.delta / 100


def test_plain_releases_add_up():
    """Without a spend, epsilons and deltas add up exactly to the cap."""
    assert len(run([Guarantee(0.5, 0.0)] * 20)) == 8
    assert len(run([Guarantee(0.1, 1e-7)] * 20)) == 3
    assert len(run([Guarantee(0.5, 0.0)] * 20, vp.Budget(2, 0))) == 4


def test_both_kinds_go_together():
    """A sequence model with half of the epsilon leaves budget for Gaussian releases."""
    accepted = run([Guarantee(2, 0.0), *_small(100)])
    assert len(accepted) > 4
    assert composed_delta(BUDGET.epsilon, accepted) <= BUDGET.delta


def test_a_first_release_may_take_it_all():
    """A first release may spend the whole budget, and no release fits after it."""
    whole = Guarantee(4, 1e-6, spend=Spend(1e-6, 0.9))
    assert run([whole, Guarantee(0.01, 0.0), Guarantee(0.01, 1e-12)]) == [whole]
    assert run([Guarantee(4.001, 1e-7)]) == []
    assert run([Guarantee(1, 1.1e-6)]) == []


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
def test_full_accounts_cost_a_third_of_delta(epsilon, delta):
    """Releases that reach the caps of the Gaussian account cost at most its third of delta, and at least 95 % of it."""
    gaussian = next(each for each in accounts_of(vp.Budget(epsilon, delta)) if each.name == "gaussian")
    full = Guarantee(*NOTHING_PROMISED, spend=Spend(float(gaussian.chance), float(gaussian.square) ** 0.5))
    assert delta / 3 * 0.95 < composed_delta(epsilon, [full]) <= delta / 3


@pytest.mark.parametrize(("budget", "each", "number"), [(1, 0.1, 10), (7, 0.7, 10), (3, 0.3, 10), (1, 0.01, 100)])
def test_equal_parts_of_a_budget_fit_and_no_more(budget, each, number):
    """Equal decimal parts of a budget fit exactly.

    The sum of their doubles can exceed the budget by a factor of at most 1 + 2^-52.
    """
    whole, part = vp.Budget(budget, 3 * number * 1e-8), vp.Guarantee(each, 1e-8)
    assert may_run(whole, [part] * (number - 1), part)
    assert not may_run(whole, [part] * number, part)
    assert not may_run(whole, [part] * (number - 1), vp.Guarantee(each + 1e-12, 1e-8))
    assert number * Fraction(each) <= Fraction(budget) * (1 + Fraction(1, 2**52))
