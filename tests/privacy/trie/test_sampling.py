"""Tests that plans of heavy hitters need the smallest number of users and are within their budget."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from voxpop.errors import BudgetError, InputError
from voxpop.privacy.budget import Budget
from voxpop.privacy.trie.accountant import trie_delta
from voxpop.privacy.trie.ballot import Ballot, discovery_rate, voters_needed
from voxpop.privacy.trie.calibrate import best_sampling

DELTA = 1 / 65_876_900


@pytest.mark.parametrize(
    ("epsilon", "words", "rate", "theta", "holders"),
    [
        (1, "one", 0.2, 16, 128),
        (1, "many", 0.2, 19, 146),
        (2, "one", 0.5, 31, 82),
        (2, "many", 0.3, 19, 95),
        (4, "one", 0.5, 26, 71),
        (4, "many", 0.3, 17, 87),
    ],
)
def test_the_plan_needs_at_most_the_best_known_number_of_users(epsilon, words, rate, theta, holders):
    """The best known numbers are valid and result from a coarse search. The plan does not need more users."""
    assert trie_delta(epsilon, Ballot(rate, theta), 10, words) <= DELTA
    assert voters_needed(0.9, Ballot(rate, theta), 10) == holders
    found = best_sampling(Budget(epsilon, DELTA), 10, words, "one")
    assert found.delta == trie_delta(epsilon, found.ballot, 10, words) <= DELTA
    assert voters_needed(0.9, found.ballot, 10) <= holders


@pytest.mark.parametrize("words", ["one", "many"])
@pytest.mark.parametrize(
    ("epsilon", "delta", "rounds"),
    [
        (0.5, 1e-6, 3),
        pytest.param(3, 1e-9, 20, marks=pytest.mark.slow),
        pytest.param(0.05, 1e-8, 5, marks=pytest.mark.slow),
    ],
)
def test_no_nearby_threshold_needs_fewer_users(words, epsilon, delta, rounds):
    """The plan is compared with nearby thresholds at their largest valid rates, found in steps of two per cent."""
    found = best_sampling(Budget(epsilon, delta), rounds, words, "one")
    ours = voters_needed(0.9, found.ballot, rounds)
    for theta in range(max(2, found.ballot.theta - 6), found.ballot.theta + 8, 2):
        rate = found.ballot.rate * (theta / found.ballot.theta) ** 2 * 1.15
        while rate >= 1 or trie_delta(epsilon, Ballot(rate, theta), rounds, words, nodes=400) > delta:
            rate /= 1.02
        assert ours <= voters_needed(0.9, Ballot(rate, theta), rounds) + 1


@pytest.mark.parametrize(
    ("epsilon", "rounds", "words", "holders"),
    [
        (1, 1, "one", 30),
        (1, 4, "one", 70),
        pytest.param(1, 10, "one", 102, marks=pytest.mark.slow),
        pytest.param(1, 4, "many", 75, marks=pytest.mark.slow),
        pytest.param(2, 4, "one", 36, marks=pytest.mark.slow),
        pytest.param(4, 4, "one", 22, marks=pytest.mark.slow),
    ],
)
def test_several_votes_need_far_fewer_users(epsilon, rounds, words, holders):
    """With several votes per user, a word needs at least 13 % fewer users than with single votes.

    At epsilon 1, four rounds need 40 % fewer users than ten rounds with single votes (117).
    """
    found = best_sampling(Budget(epsilon, DELTA), rounds, words)
    assert found.delta == trie_delta(epsilon, found.ballot, rounds, words) <= DELTA
    assert voters_needed(0.9, found.ballot, rounds) <= holders
    coin = best_sampling(Budget(epsilon, DELTA), rounds, words, "one")
    assert voters_needed(0.9, found.ballot, rounds) < 0.87 * voters_needed(0.9, coin.ballot, rounds)


@pytest.mark.parametrize(("epsilon", "least"), [(1, 95), (2, 66), (4, 60)])
def test_one_round_needs_at_least_as_many_users_as_the_bound(epsilon, least):
    """With single votes, no plan needs fewer users than the bound in docs/privacy/heavy-hitters.md.

    For each threshold, the test uses the largest rate that is valid for one round. Delta is a maximum over numbers of
    users, so if the test omits a number, the bound can only be lower.
    """
    holders, best = np.arange(1200), 10**6
    for theta in range(2, 60):
        low, high = 1e-4, 0.9999
        for _ in range(30):
            rate = (low + high) / 2
            survives = binom.sf(theta - 1, holders, rate)
            p, q = survives[:-1], survives[1:]
            delta = max((q - math.exp(epsilon) * p).max(), ((1 - p) - math.exp(epsilon) * (1 - q)).max())
            low, high = (rate, high) if delta <= DELTA else (low, rate)
        enough = np.flatnonzero(binom.sf(theta - 1, holders, high) >= 0.9)
        best = min(best, *enough[:1], 10**6)
    assert best == least
    assert best <= voters_needed(0.9, best_sampling(Budget(epsilon, DELTA), 1, "one", "one").ballot, 1) <= 1.05 * best


@pytest.mark.parametrize(("epsilon", "rounds"), [(0.3, 1), (50, 1), pytest.param(0.3, 24, marks=pytest.mark.slow)])
def test_small_and_large_budgets_can_be_planned(epsilon, rounds):
    """Plans with few or many rounds are within the budget."""
    found = best_sampling(Budget(epsilon, 1e-7), rounds, "many")
    assert 0 < found.delta <= 1e-7
    assert 0 < found.ballot.rate < 1


@pytest.mark.parametrize(("delta", "rounds", "word"), [(0.0, 10, "delta"), (1e-14, 10, "delta"), (1e-6, 0, "rounds")])
def test_unreachable_targets_are_rejected(delta, rounds, word):
    """A delta of 0, a delta that is too small to be certified, and 0 rounds raise an error."""
    with pytest.raises(BudgetError, match=word):
        best_sampling(Budget(1, delta), rounds)


def test_discovery_is_a_binomial_tail_to_the_power_of_rounds():
    """The number of users needed is the smallest number with the requested probability."""
    tail = sum(math.comb(12, i) * 0.3**i * 0.7 ** (12 - i) for i in range(4, 13))
    assert discovery_rate(12, Ballot(0.3, 4), 5) == pytest.approx(tail**5, rel=1e-12)
    assert discovery_rate(3, Ballot(0.3, 4), 5) == 0.0
    needed = voters_needed(0.9, Ballot(0.3, 4), 5)
    assert discovery_rate(needed - 1, Ballot(0.3, 4), 5) < 0.9 <= discovery_rate(needed, Ballot(0.3, 4), 5)
    for probability in (0.0, 1.0, -1.0):
        with pytest.raises(InputError, match="probability"):
            voters_needed(probability, Ballot(0.3, 4), 5)
