"""Tests that the releases that a ledger accepts compose within its budget, and that rejected ones exceed its caps."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as losses
from dp_accounting.pld.common import DifferentialPrivacyParameters
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

import voxpop as vp
from naive.ledger import worst_case
from voxpop.ledger import caps as caps_module
from voxpop.ledger.caps import CHANCES, NOISE, TRADE, AccountLimits, Corner, apart, may_run
from voxpop.privacy.composition import composed_delta
from voxpop.privacy.gaussian import delta as gaussian_delta
from voxpop.privacy.gaussian import sigma as gaussian_sigma
from voxpop.privacy.guarantee import Expense, Guarantee, dominating_mu

BUDGET = vp.Budget(4, 1e-6)
BUDGETS = [vp.Budget(0.5, 1e-5), vp.Budget(1, 1e-6), vp.Budget(3, 1e-6), vp.Budget(3, 1e-9), vp.Budget(8, 1e-6)]
NOTHING_PROMISED = (50.0, 0.9)
PLAIN = st.builds(Guarantee, st.floats(0.05, 2), st.sampled_from([0.0, 1e-9, 1e-7]))
SPENDING = st.builds(
    lambda novel, mu: Guarantee(*NOTHING_PROMISED, spend=Expense(novel, mu)),
    st.sampled_from([0.0, 1e-9, 1e-7]),
    st.floats(0.02, 0.6),
)
STATED = st.builds(
    lambda epsilon, novel, mu: Guarantee(
        epsilon, min(1.0, novel + gaussian_delta(epsilon, mu)), spend=Expense(novel, mu)
    ),
    st.floats(0.1, 2),
    st.sampled_from([0.0, 1e-9, 1e-7]),
    st.floats(0.02, 0.4),
)
REQUESTS = st.lists(PLAIN | SPENDING | STATED, max_size=25)


def run(requests, budget=BUDGET):
    """Check requests in order, and return the accepted requests."""
    accepted = []
    for each in requests:
        if may_run(budget, accepted, each):
            accepted.append(each)
    return accepted


def run_equal(request, most, budget=BUDGET):
    """Return the accepted requests among `most` equal requests.

    Bisection finds their number, because every release uses budget.
    """
    fits, too_many = 0, most + 1
    while fits + 1 < too_many:
        middle = (fits + too_many) // 2
        fits, too_many = (middle, too_many) if may_run(budget, [request] * (middle - 1), request) else (fits, middle)
    return [request] * fits


def test_bisection_accepts_the_same_requests_as_checks_in_order():
    """Bisection accepts the same requests as checks in order, for requests that add up by each of the rules."""
    for budget, each in itertools.product(BUDGETS, (Guarantee(0.3, 1e-9), Guarantee(0.1, 0.0), *_small(1))):
        assert run_equal(each, 60, budget) == run([each] * 60, budget)


@given(REQUESTS)
@settings(max_examples=80)
def test_accepted_releases_compose_within_the_budget(requests):
    """The exact composition of dominating pairs, which does not use the caps, confirms that accepted releases fit."""
    accepted = run([Guarantee(0.05, 0.0), *requests])
    assert composed_delta(BUDGET.epsilon, accepted) <= BUDGET.delta


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_no_strategy_costs_more_than_the_corners(budget, record_property):
    """The worst strategy of noise within the two corners costs between half and all of the part of delta for noise."""
    caps = AccountLimits.of(budget)
    corners = [(float(each.epsilon), float(each.square)) for each in reversed(caps.corners[1:])]
    room = 2 * float(NOISE) * budget.delta
    worst = worst_case(budget.epsilon, corners)
    assert room / 2 < worst <= room
    assert caps.chance + caps.corners[0].trade + Fraction(worst) <= Fraction(budget.delta)
    assert CHANCES + TRADE + 2 * NOISE == 1
    record_property("figure", f"{worst / room:.3f} of the part of delta for noise")


def test_a_rule_that_trades_epsilon_for_mu_freely_is_detected():
    """A broken variant that freely trades epsilon for mu^2 at the same delta costs several times that delta."""
    budget = vp.Budget(3, 1e-6)
    part = float(NOISE) * budget.delta
    parts = [budget.epsilon * (1 - number / 16) for number in range(1, 17)]
    trade = [(each, float(caps_module._largest_square(budget.epsilon - each, part))) for each in parts]
    assert worst_case(budget.epsilon, trade) > 2.5 * part


def test_the_check_detects_caps_that_are_too_large(monkeypatch):
    """A deliberately broken variant that allows twice the mu^2 accepts more than the budget."""
    real = caps_module._largest_square
    monkeypatch.setattr(caps_module, "_largest_square", lambda *numbers: 2 * real(*numbers))
    accepted = run_equal(*_small(1), 400)
    assert composed_delta(BUDGET.epsilon, accepted) > BUDGET.delta


def test_the_check_detects_charges_below_the_cap(monkeypatch):
    """Releases that are charged for only half of their mu, as after an early stop, exceed the budget."""
    real = Corner.sums

    def ran(self, guarantees):
        half = [
            each if each.spend is None else replace(each, spend=replace(each.spend, mu=each.spend.mu / 2))
            for each in guarantees
        ]
        return real(self, half)

    monkeypatch.setattr(Corner, "sums", ran)
    accepted = run_equal(*_small(1), 400)
    assert composed_delta(BUDGET.epsilon, accepted) > BUDGET.delta


def test_the_check_detects_ignored_revealing_outcomes(monkeypatch):
    """A deliberately broken variant that ignores revealing outcomes accepts more than the budget."""
    monkeypatch.setattr(caps_module, "_chances", lambda guarantees: Fraction(0))
    accepted = run([Guarantee(0.5, 1e-7, spend=Expense(1e-7, 0.01))] * 60)
    assert composed_delta(BUDGET.epsilon, accepted) > BUDGET.delta


def test_the_check_detects_probabilities_of_only_one_side(monkeypatch):
    """Without the factor for both sides, novel items are less probable than the revealing outcomes of the pair."""
    spend = Expense(1e-8, 0.8, two_sided=True)
    assert spend.hit / spend.novel == pytest.approx(1 / (2 * ndtr(-0.4)), rel=1e-9)
    whole = Guarantee(2, 1e-7, spend=spend)
    exact = composed_delta(2.0, [whole], plain=False)
    monkeypatch.setattr(Expense, "hit", property(lambda self: self.novel))
    assert composed_delta(2.0, [whole], plain=False) < exact


@given(st.floats(1e-9, 0.05), st.floats(0.01, 3.0), st.floats(0.0, 12.0))
@settings(max_examples=200)
def test_the_pair_dominates_a_spend(novel, mu, epsilon):
    """In both directions and at every epsilon, the delta of the pair is at least the delta of a spend.

    At epsilon 0, both deltas are equal.
    """
    hit = Expense(novel, mu).hit
    pair = hit + (1 - hit) * gaussian_delta(epsilon, mu)
    assert pair >= min(1.0, novel + gaussian_delta(epsilon, mu)) * (1 - 1e-9)
    # A pair with revealing outcomes on only one side, as in a single round of Gaussian noise.
    for one_sided in (
        novel + (1 - novel) * gaussian_delta(epsilon - np.log1p(-novel), mu),
        gaussian_delta(epsilon + np.log1p(-novel), mu),
    ):
        assert pair >= one_sided * (1 - 1e-9)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 3.0, 8.0, 50.0])
def test_a_gaussian_mechanism_dominates_a_pure_release(epsilon):
    """At every epsilon, the delta of the mechanism is at least the delta of randomised response.

    At one epsilon, the two deltas are nearly equal.
    """
    mu = dominating_mu(epsilon)
    grid = np.linspace(0, epsilon, 400)
    pure = (np.exp(epsilon) - np.exp(grid)) / (1 + np.exp(epsilon))
    excess = np.array([gaussian_delta(each, mu) for each in grid]) - pure
    assert 0 <= excess.min() < 0.02


def _small(count):
    return [Guarantee(0.5, 1e-9, spend=Expense(0.0, 0.1)) for _ in range(count)]


def test_more_gaussian_releases_fit_than_the_sum_of_epsilons_allows():
    """Small Gaussian releases fit even if the sum of their epsilons is several times the budget."""
    accepted = run(_small(120))
    assert sum(each.epsilon for each in accepted) > 3 * BUDGET.epsilon
    assert composed_delta(BUDGET.epsilon, accepted) > BUDGET.delta / 100


@pytest.mark.parametrize(
    ("epsilon", "delta", "fit", "reserved"),
    [(0.25, 1e-9, 155, 186), (0.5, 1e-8, 35, 41), (1, 1e-8, 9, 11), (0.25, 1e-8, 122, 148), (0.5, 5e-8, 23, 34)],
)
def test_default_releases_fit_as_often_as_documented(epsilon, delta, fit, reserved):
    """Many default set unions fit within (3, 1e-6), and more of them fit as one reserve."""
    budget, each = vp.Budget(3, 1e-6), vp.Items().plan(vp.Budget(epsilon, delta)).guarantee
    assert may_run(budget, [each] * (fit - 1), each)
    assert not may_run(budget, [each] * fit, each)
    assert may_run(budget, [], each, reserved)
    assert not may_run(budget, [], each, reserved + 1)
    assert not may_run(budget, [each], each, reserved - 1)


@pytest.mark.slow
def test_random_ledgers_compose_within_their_budget(record_property):
    """According to dp-accounting, each of 200 random full ledgers costs at most its delta."""
    random = np.random.default_rng(54)
    budget, interval, worst = vp.Budget(3, 1e-6), 1e-3, 0.0
    for _ in range(200):
        requests = [_random_release(random) for _ in range(random.integers(5, 60))]
        accepted, whole = run(requests, budget), losses.identity(interval)
        for each in accepted:
            pair = (each.epsilon, each.delta) if each.spend is None else (0.0, each.spend.hit)
            whole = whole.compose(losses.from_privacy_parameters(DifferentialPrivacyParameters(*pair), interval))
            if each.spend is not None:
                gaussian = losses.from_gaussian_mechanism(1 / each.spend.mu, value_discretization_interval=interval)
                whole = whole.compose(gaussian)
        worst = max(worst, whole.get_delta_for_epsilon(budget.epsilon) / budget.delta)
    assert 0.3 < worst <= 1
    record_property("figure", f"at most {worst:.3f} of delta")


def _random_release(random):
    kind, delta = random.integers(4), float(10.0 ** random.uniform(-9, -7))
    epsilon = float(random.choice([0.05, 0.1, 0.25, 0.5, 1.0]))
    if kind == 0:
        return Guarantee(epsilon, random.choice([0.0, delta]))
    mu = mu_for(epsilon, delta / 2)
    return Guarantee(epsilon, delta, spend=Expense(0.0 if kind == 1 else 0.4 * delta, mu, two_sided=kind == 3))


def mu_for(epsilon, delta):
    """Return the mu of the noise that costs delta at epsilon."""
    return 1 / gaussian_sigma(epsilon, delta)


def test_epsilons_and_deltas_of_plain_releases_add_up_exactly():
    """Without a spend, epsilons add up exactly to the whole budget, and deltas add up to half of it."""
    assert len(run([Guarantee(0.5, 0.0)] * 20)) == 8
    assert len(run([Guarantee(0.1, 1e-7)] * 20)) == 5
    assert len(run([Guarantee(0.5, 0.0)] * 20, vp.Budget(2, 0))) == 4


def test_many_small_pure_releases_are_accepted_like_gaussian_releases():
    """Many releases with a small epsilon and without a spend fit within the Gaussian corner."""
    accepted = run_equal(Guarantee(0.01, 0.0), 1000)
    assert len(accepted) > 2 * BUDGET.epsilon / 0.01
    assert composed_delta(BUDGET.epsilon, accepted) <= BUDGET.delta


def test_both_kinds_can_be_combined():
    """A sequence model with half of the epsilon leaves budget for Gaussian releases."""
    accepted = run([Guarantee(2, 0.0), *_small(100)])
    assert len(accepted) > 4
    assert composed_delta(BUDGET.epsilon, accepted) <= BUDGET.delta


def test_a_first_release_may_spend_the_whole_budget():
    """A first release may spend the whole budget, and no release fits after it."""
    whole = Guarantee(4, 1e-6, spend=Expense(1e-6, 0.9))
    assert run([whole, Guarantee(0.01, 0.0), Guarantee(0.01, 1e-12)]) == [whole]
    assert run([Guarantee(4.001, 1e-7)]) == []
    assert run([Guarantee(1, 1.1e-6)]) == []


@given(st.lists(PLAIN | STATED, min_size=2, max_size=8), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_the_order_of_releases_has_no_effect(requests, random):
    """Sums are the same in every order, and releases that fit also fit without the last of them."""
    shuffled = random.sample(requests, len(requests))
    caps = AccountLimits.of(BUDGET)
    assert caps.used(requests) == caps.used(shuffled)
    assert caps.hold(requests[:-1]) or not caps.hold(requests)


@pytest.mark.parametrize(("budget", "each", "number"), [(1, 0.1, 10), (7, 0.7, 10), (3, 0.3, 10), (1, 0.01, 100)])
def test_equal_parts_of_a_budget_fit_exactly(budget, each, number):
    """Equal decimal parts of a budget fit exactly.

    The sum of the corresponding doubles can exceed the budget by a factor of at most 1 + 2^-52.
    """
    whole, part = vp.Budget(budget, 2 * number * 1e-8), vp.Guarantee(each, 1e-8)
    plain = replace(AccountLimits.of(whole), corners=AccountLimits.of(whole).corners[:1])
    assert plain.hold([part] * number)
    assert not plain.hold([part] * (number + 1))
    assert not plain.hold([part] * (number - 1) + [vp.Guarantee(each + 1e-12, 1e-8)])
    assert number * Fraction(each) <= Fraction(budget) * (1 + Fraction(1, 2**52))


@given(st.fractions(0, 1), st.fractions(0, 1))
def test_numbers_that_differ_are_shown_with_different_digits(one, other):
    """A message never reports that 0.09091 is left and 0.09091 was requested."""
    shown = apart(one, other)
    assert (shown[0] == shown[1]) == (one == other)


def test_messages_show_why_a_release_is_rejected():
    """Every message of a rejected release shows different numbers for the remaining and the requested part."""
    for budget, each in itertools.product(BUDGETS, (Guarantee(0.3, 1e-9), *_small(1))):
        accepted = run_equal(each, 400, budget)
        if len(accepted) < 400 and may_run(budget, [], each):
            text = caps_module.shortage(budget, accepted, each)
            if not AccountLimits.of(budget).hold(accepted):
                assert len(accepted) == 1
                assert text.endswith("leaves no room for another release")
                continue
            left, asked = text.split(" spent, ")[1].split(" left, ")
            assert left != asked.removesuffix(" requested")
