"""Tests of the paper's theorem, its printed and corrected corollaries, its table, and a trade-off by a cut."""

import math

import numpy as np
import pytest
from benchmarks.papers.triehh_published import (
    fixed_discovery_rate,
    fixed_survival,
    least_users,
    printed_rate,
    table_theta,
    theorem_epsilon,
    trade_off,
)

from voxpop.errors import BudgetError
from voxpop.papers.triehh import TrieHH, corollary_rate, theorem_delta, theorem_theta
from voxpop.privacy.budget import Budget
from voxpop.privacy.trie.accountant import trie_delta
from voxpop.privacy.trie.ballot import Ballot, voters_needed

USERS = 658_769


@pytest.mark.parametrize(
    ("claimed", "batch", "by_theorem", "corrected"),
    [(1, 6269, 1.2126, 5224), (2, 11_941, 2.4529, 9951), (4, 21_718, 5.0355, 18_098)],
)
def test_corollary_2_does_not_follow_from_theorem_1(claimed, batch, by_theorem, corrected):
    """By Theorem 1, the batch sizes of the printed corollary have epsilon 1.21, 2.45 and 5.04 instead of 1, 2 and 4.

    The batch sizes of the corrected corollary have the claimed epsilons.
    """
    assert math.floor(printed_rate(claimed, 10) * USERS) == batch
    assert theorem_epsilon(printed_rate(claimed, 10), 12, 10) == pytest.approx(by_theorem, abs=1e-3)
    rate = corollary_rate(claimed, 12, 10)
    assert math.floor(rate * USERS) == corrected
    assert theorem_epsilon(rate, 12, 10) == pytest.approx(claimed, rel=1e-12)


@pytest.mark.parametrize(
    ("users", "theta", "one", "ten"),
    [(10**4, 10, 0.105, 1.05), (10**6, 12, 0.012, 0.12), (10**8, 14, 0.0014, 0.014), (10**10, 16, 0.00016, 0.0016)],
)
def test_table_1_is_reproduced(users, theta, one, ten):
    """Table 1 of the paper, with gamma 1, agrees to two digits."""
    rate = users**-0.5
    assert table_theta(users) == theta
    assert theorem_epsilon(rate, theta, 1) == pytest.approx(one, rel=0.03)
    assert theorem_epsilon(rate, theta, 10) == pytest.approx(ten, rel=0.03)
    assert theorem_delta(theta) <= 1 / (100 * users)


def test_a_plan_with_published_accounting_has_the_numbers_of_the_paper():
    """At epsilon 1 and delta 1/(100 n), theta is 12 and a word needs about 2,700 users.

    According to exact accounting, the plan also satisfies epsilon 0.05.
    """
    plan = TrieHH().plan(Budget(1, 1 / (100 * USERS)))
    rate, theta = plan.sampling_rate, plan.theta
    assert theta == 12
    assert 2600 < voters_needed(0.9, Ballot(rate, theta), 10) < 2750
    assert trie_delta(0.05, Ballot(rate, theta), 10) <= 1 / (100 * USERS)
    assert theorem_theta(0.5) == 10


def test_the_conditions_of_the_theorem_are_checked():
    """The conditions of the theorem imply a minimum number of users."""
    assert least_users(0.5) == 10_000
    assert least_users(0.001) == 10**6
    assert theorem_epsilon(0.1, 10, 5) == math.inf
    with pytest.raises(BudgetError, match="sampling rate"):
        least_users(0.9)


def test_simulated_batches_agree_with_the_published_probability():
    """Proposition 1 agrees with 20,000 simulated batches (6.2 standard deviations, false alarm below 1e-9)."""
    rng = np.random.default_rng(11)
    runs, users, holders, batch, theta, rounds = 20_000, 500, 60, 80, 9, 2
    votes = rng.hypergeometric(holders, users - holders, batch, size=(runs, rounds))
    found = float((votes >= theta).all(axis=1).mean())
    expected = fixed_discovery_rate(holders, users, batch, theta, rounds)
    assert abs(found - expected) < 6.2 * math.sqrt(expected * (1 - expected) / runs)


@pytest.mark.parametrize("cut", [12, 20, 40])
def test_the_simulation_shows_the_trade_off(cut):
    """The delta of a cut is the survival probability with one more user than the cut.

    For more users, the ratio is at most e^epsilon.
    """
    users, batch, theta = 300, 60, 8
    pair = trade_off(cut, users, batch, theta)
    rng = np.random.default_rng(cut)
    runs = 200_000
    seen = float((rng.hypergeometric(cut + 1, users - cut - 1, batch, runs) >= theta).mean())
    assert abs(seen - pair.delta) < 6.2 * math.sqrt(pair.delta / runs)
    for others in range(cut, 120):
        ratio = fixed_survival(others + 1, users, batch, theta) / fixed_survival(others, users, batch, theta)
        assert ratio <= math.exp(pair.epsilon) * (1 + 1e-9)
    with pytest.raises(BudgetError, match="cut"):
        trade_off(theta - 1, users, batch, theta)
