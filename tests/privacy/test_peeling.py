"""Tests of the cost of picking the largest counts, including exact small cases, a search, and the drawn noise."""

from decimal import Decimal, localcontext
from itertools import permutations, product
from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chi2

from voxpop.errors import BudgetError
from voxpop.privacy.budget import Budget
from voxpop.privacy.decisions import GumbelNoise
from voxpop.privacy.peeling import behind, gumbel_spread, largest_rate, peeling_delta, spent
from voxpop.privacy.sampling import CELLS, gumbel_cells, log_error
from voxpop.privacy.secret import Secret
from voxpop.testing.auditing import TrialCounts, epsilon_shown

FALSE_ALARM = 1e-9
UNIT = 1 << 24


def rankings(counts, picks, rate):
    """Return the probability of each ranking of `picks` items, drawn by exponential mechanisms without replacement."""
    weights = {place: exp(rate * (count - max(counts))) for place, count in enumerate(counts)}
    chances = {}
    for order in permutations(weights, picks):
        left, chance = dict(weights), 1.0
        for place in order:
            chance *= left[place] / sum(left.values())
            del left[place]
        chances[order] = chance
    return chances


def delta_between(counts, joined, picks, rate, epsilon):
    """Return the larger of the exact deltas in both directions."""
    one, other = rankings(counts, picks, rate), rankings(joined, picks, rate)
    forward = sum(max(0.0, other[order] - exp(epsilon) * one[order]) for order in one)
    backward = sum(max(0.0, one[order] - exp(epsilon) * other[order]) for order in one)
    return max(forward, backward)


def worst(picks, rate, epsilon, items=4, highest=12):
    """Return the largest delta over neighbouring counts, which include systematic and random cases."""
    rng = np.random.default_rng(picks)
    tops = [counts for counts in product((0, 1, 3, highest), repeat=items) if counts == tuple(sorted(counts))]
    tops += [tuple(rng.integers(0, highest, items)) for _ in range(60)]
    return max(
        delta_between(counts, tuple(map(sum, zip(counts, more, strict=True))), picks, rate, epsilon)
        for counts in tops
        for more in product((0, 1), repeat=items)
    )


@pytest.mark.parametrize(("picks", "rate", "epsilon"), [(1, 0.9, 0.5), (2, 0.5, 0.6), (3, 0.4, 0.5), (3, 1.0, 1.2)])
def test_the_delta_of_neighbours_is_at_most_the_bound(picks, rate, epsilon):
    """One more user can increase each of four counts by one. The probabilities of all rankings are exact."""
    assert 0.0 < worst(picks, rate, epsilon) <= peeling_delta(epsilon, picks, rate)


@pytest.mark.parametrize("picks", [1, 2, 3])
def test_the_loss_is_at_most_the_sum_of_rates_and_close_to_it(picks):
    """With k picks, the loss is at most k rates and close to it, so a tenth less noise would be detected."""
    assert worst(picks, 0.5, 0.5 * picks) < 1e-15
    assert peeling_delta(0.5 * picks, picks, 0.5 / (1 + 1e-6)) == 0.0
    assert worst(picks, 0.5, 0.5 * picks / 1.1, highest=40) > 0.0


def test_picks_that_do_not_share_the_budget_are_detected():
    """If each pick spends the whole epsilon, the exact delta of some neighbours exceeds the bound."""
    epsilon = 0.5
    assert worst(3, epsilon, epsilon) > 10 * peeling_delta(epsilon, 3, epsilon / 3) + 0.01


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("picks", [1, 10, 1000])
def test_the_largest_rate_spends_the_budget(epsilon, picks):
    """A rate that is larger by a thousandth exceeds the budget."""
    budget = Budget(epsilon, 1e-7)
    rate = largest_rate(budget, picks, 50_000)
    assert spent(budget, picks, 50_000, rate) <= budget.delta
    assert spent(budget, picks, 50_000, rate * 1.001) > budget.delta
    assert rate >= epsilon / picks * 0.999
    assert gumbel_spread(rate) == pytest.approx(np.pi / 6**0.5 / rate)


@given(epsilon=st.floats(0.01, 10), picks=st.integers(1, 5000), rate=st.floats(1e-4, 2), order=st.floats(1.001, 1e4))
@settings(max_examples=300)
def test_no_renyi_order_is_much_better_than_the_chosen_order(epsilon, picks, rate, order):
    """The result exceeds the bound at any Rényi order by at most one millionth."""
    given_order = (order - 1) * (picks * order * rate**2 / 8 - epsilon) + order * np.log1p(-1 / order) - log(order - 1)
    found = peeling_delta(epsilon, picks, rate)
    assert found <= exp(min(given_order, 0.0)) * (1 + 1e-6)


@pytest.mark.parametrize(("budget", "picks"), [(Budget(1.0, 1e-22), 5), (Budget(1e-5, 1e-9), 10**6)])
def test_budgets_that_are_too_small_are_rejected(budget, picks):
    """Planning raises an error if draws cost more than delta, or if the noise would overflow."""
    with pytest.raises(BudgetError, match="rank"):
        largest_rate(budget, picks, 10**6)


@pytest.mark.parametrize("epsilon", [60.0, 800.0])
def test_an_epsilon_without_a_possible_delta_is_rejected(epsilon):
    """At a very large epsilon, draws of 128 bits cost more than a delta of 1."""
    with pytest.raises(BudgetError, match="too large"):
        largest_rate(Budget(epsilon, 0.5), 5, 10**6)


EXTREMES = [0, 1, 2**20, 2**63 - 1, 2**63, 2**64 - 1]


@pytest.mark.parametrize("rate", [1e-5, 0.03, 1.0, 5.0])
def test_errors_of_cells_and_doubles_are_within_the_charge(rate):
    """Errors are computed to sixty digits, for random draws, the middle, and the ends of the range of doubles."""
    rng = np.random.default_rng(1)
    draws = rng.integers(0, 2**64, (400, 2), np.uint64, endpoint=False)
    draws[:6, 0] = np.array(EXTREMES, np.uint64)
    draws[6:60, 0] >>= rng.integers(0, 64, 54).astype(np.uint64)
    draws[60:120, 0] = ~(draws[60:120, 0] >> rng.integers(0, 64, 60).astype(np.uint64))
    cells = gumbel_cells(np.zeros(400, np.int64), rate, UNIT, draws)
    with localcontext() as context:
        context.prec = 60
        for cell, (high, low) in zip(cells.tolist(), draws.tolist(), strict=True):
            place = high * 2**64 + low
            if not 2**50 <= place < 2**128 - 2**50:
                continue
            for uniform in (Decimal(place) / 2**128, Decimal(place + 1) / 2**128):
                exact = -(-(1 - uniform).ln()).ln()
                assert abs(Decimal(cell) * Decimal(rate) / CELLS - exact) <= Decimal(log_error(rate))


def drawn(counts, rate, trials, seed=None):
    """Return the ranking of every trial, drawn with the noise of the mechanism."""
    noise = GumbelNoise(rate, UNIT, Secret.of(seed), "noise/top 1").restricted()
    weights = np.tile(np.array(counts, np.int64) * UNIT, trials)
    noisy = noise(weights, np.arange(weights.size)).reshape(trials, -1)
    return np.argsort(-noisy, axis=1, kind="stable")


def test_rankings_have_the_exact_distribution():
    """A chi-square test covers all 24 rankings of four counts (false alarm 1e-9)."""
    counts, rate, trials = (5, 3, 3, 0), 0.4, 200_000
    orders, seen = np.unique(drawn(counts, rate, trials, seed=2), axis=0, return_counts=True)
    chances = rankings(counts, 4, rate)
    expected = np.array([trials * chances[tuple(order)] for order in orders.tolist()])
    assert len(orders) == 24
    assert float(np.sum((seen - expected) ** 2 / expected)) < chi2.isf(FALSE_ALARM, 23)


@pytest.mark.parametrize(("factor", "caught"), [(1.0, False), (2.0, True)])
def test_rankings_show_at_most_the_claimed_epsilon(factor, caught):
    """One more user increases one of two counts.

    At twice the rate, the first place shows more than the claimed epsilon (false alarm 1e-9).
    """
    budget, trials = Budget(0.5, 1e-6), 400_000
    rate = largest_rate(budget, 1, 2) * factor
    first = {pair: int((drawn(pair, rate, trials)[:, 0] == 0).sum()) for pair in ((21, 40), (20, 40), (5, 8), (4, 8))}
    seen = [TrialCounts(first[21, 40], first[20, 40], trials), TrialCounts(first[5, 8], first[4, 8], trials)]
    shown = [epsilon_shown(each, budget.delta, FALSE_ALARM / 2) for each in seen]
    assert (max(shown) > budget.epsilon) == caught


def test_large_errors_of_the_ranking_are_as_rare_as_computed():
    """With 100 counts and 10 picks, at most a tenth of trials exceed the error bound (false alarm 1e-9)."""
    rng, rate, trials = np.random.default_rng(4), 0.2, 2_000
    counts = np.sort(rng.integers(0, 100, 100))
    far = behind(10, 100, rate, 0.9)
    orders = drawn(counts, rate, trials, seed=5)
    gaps = [max(counts[order[place + 1 :]].max() - counts[order[place]] for place in range(10)) for order in orders]
    assert np.count_nonzero(np.array(gaps) > far) <= binom.isf(FALSE_ALARM, trials, 0.1)
    assert np.count_nonzero(np.array(gaps) > far / 3) > binom.isf(1 - FALSE_ALARM, trials, 0.05)
