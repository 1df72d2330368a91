"""Tests that the accountant's bound is never below the exhaustively computed delta, and at most one per cent above."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from benchmarks.papers.triehh_published import trie_epsilon
from hypothesis import given, settings
from hypothesis import strategies as st

from naive.trie import survives, votes_law, worst_many_words, worst_one_word
from voxpop.errors import BudgetError
from voxpop.mechanisms.heavy_hitters.protocol import Rules
from voxpop.privacy.precise import context, number
from voxpop.privacy.trie import accountant
from voxpop.privacy.trie.accountant import chances, direction_delta, trie_delta
from voxpop.privacy.trie.ballot import Ballot, survival

USERS = 658_769
DELTA = 1 / (100 * USERS)
EPSILONS = (0.1, 0.5, 1.5)
ONE_VOTE = [(0.2, 2), (0.3, 3), (0.5, 2), (0.5, 4), (0.8, 3)]


def rotated(ballots):
    """Return test parameters for every ballot with every epsilon.

    By default, tests run each ballot with one epsilon. The other epsilons are marked as slow.
    """
    return [
        pytest.param(ballot, epsilon, marks=[] if (place - number) % 3 == 0 else pytest.mark.slow)
        for number, ballot in enumerate(ballots)
        for place, epsilon in enumerate(EPSILONS)
    ]


@pytest.mark.parametrize("added", [True, False])
@pytest.mark.parametrize(("ballot", "epsilon"), rotated([Ballot(*each) for each in ONE_VOTE]))
def test_the_bound_for_one_word_agrees_with_exhaustive_search(ballot, epsilon, added):
    """Over three rounds and all numbers of users, the bound exceeds the worst case by at most one per cent."""
    most = 24
    exact = worst_one_word(math.exp(epsilon), most, 3, ballot, added)
    bound = direction_delta(epsilon, chances(ballot), ballot.rate, 3, "one", added, 1200)
    assert exact * (1 - 1e-9) - 1e-14 <= bound <= exact * 1.01 + 1e-7


@pytest.mark.jit
@pytest.mark.parametrize("added", [True, False])
@pytest.mark.parametrize(("ballot", "epsilon"), rotated([Ballot(*each) for each in ONE_VOTE]))
def test_the_bound_for_many_words_agrees_with_exhaustive_search(ballot, epsilon, added):
    """Over three rounds, the bound exceeds the delta of the worst adversary by at most one per cent."""
    most = 24
    exact = worst_many_words(math.exp(epsilon), most, 3, ballot, added)
    bound = direction_delta(epsilon, chances(ballot), ballot.rate, 3, "many", added, 1200)
    assert exact * (1 - 1e-9) - 1e-14 <= bound <= exact * 1.01 + 1e-7


BALLOTS = [Ballot(0.5, 3, 0.2, 0.3), Ballot(0.7, 5, 0.05, 0.5), Ballot(0.3, 2, 0.5), Ballot(0.8, 4, 0.3, 0.4)]


@pytest.mark.parametrize("added", [True, False])
@pytest.mark.parametrize(("ballot", "epsilon"), rotated(BALLOTS))
@pytest.mark.parametrize(("words", "worst", "most"), [("one", worst_one_word, 22), ("many", worst_many_words, 16)])
def test_the_bound_for_several_votes_agrees_with_exhaustive_search(words, worst, most, ballot, epsilon, added):
    """Users can vote more than once per round. The exhaustive search uses exact fractions for the votes."""
    exact = worst(math.exp(epsilon), most, 3, ballot, added)
    bound = direction_delta(epsilon, chances(ballot), ballot.rate, 3, words, added, 1200)
    assert exact * (1 - 1e-9) - 1e-14 <= bound <= exact * 1.01 + 1e-7


@settings(max_examples=50, deadline=None)
@given(st.floats(0.01, 0.99), st.integers(2, 60), st.floats(0.0, 0.9), st.floats(0.0, 0.9))
def test_numbers_of_votes_have_exactly_the_accounted_probabilities(rate, theta, again, further):
    """The tails are decreasing multiples of 2^-128, and the release uses exactly these numbers."""
    tails = Ballot(rate, theta, again, further).tails
    bars = Rules(Ballot(rate, theta, again, further), 1).bars
    assert [Fraction(bar, 1 << 128) for bar in bars] == [Fraction(tail) for tail in tails]
    assert len(tails) <= theta
    assert all(low <= high for high, low in pairwise(tails))
    exact = [Fraction(rate) * Fraction(again) * Fraction(further) ** votes for votes in range(theta - 1)]
    large = [(tail, float(one)) for tail, one in zip(tails[1:], exact, strict=False) if one > 1e-20]
    assert all(abs(tail / one - 1) < 1e-12 for tail, one in large)
    assert all(one < 2.0**-127 for one in exact[len(tails) - 1 :])


@settings(max_examples=30, deadline=None)
@given(st.floats(0.05, 0.95), st.integers(2, 12), st.floats(0.001, 0.9), st.floats(0.001, 0.9), st.integers(0, 60))
def test_survival_with_several_votes_agrees_with_fractions(rate, theta, again, further, holders):
    """The probabilities of survival and loss have a relative error below 1e-10."""
    ballot = Ballot(rate, theta, again, further)
    law = votes_law(holders, ballot)
    survived, lost = survival(ballot, np.array([holders]))
    assert float(survived[0]) == pytest.approx(float(law[-1]), rel=1e-10, abs=1e-300)
    assert float(lost[0]) == pytest.approx(float(sum(law[:-1])), rel=1e-10, abs=1e-20)


@pytest.mark.parametrize(
    ("batch", "one", "many"), [(6269, 0.0395, 0.054), (11_941, 0.0825, 0.1115), (21_718, 0.1645, 0.2205)]
)
def test_the_parameters_of_the_paper_cost_less_than_published(batch, one, many):
    """The paper claims epsilon 1, 2 and 4 for theta 12 and 10 rounds, but these parameters cost far less."""
    rate = batch / USERS
    for epsilon, words in ((one, "one"), (many, "many")):
        assert trie_delta(epsilon, Ballot(rate, 12), 10, words) <= DELTA
        assert trie_delta(0.97 * epsilon, Ballot(rate, 12), 10, words) > DELTA
    assert direction_delta(0.028, chances(Ballot(6269 / USERS, 12)), 6269 / USERS, 10, "many", False, 1200) <= DELTA


@pytest.mark.jit
@pytest.mark.parametrize(
    ("epsilon", "rate", "theta", "words"),
    [
        (0.978, 0.2, 16, "one"),
        (0.974, 0.2, 19, "many"),
        (1.96, 0.5, 31, "one"),
        (1.91, 0.3, 19, "many"),
        (2.662, 0.5, 26, "one"),
        (2.524, 0.3, 17, "many"),
    ],
)
def test_epsilons_equal_known_values(epsilon, rate, theta, words):
    """The known values are from an independent computation to three digits."""
    assert trie_epsilon(DELTA, Ballot(rate, theta), 10, words) == pytest.approx(epsilon, abs=1.6e-3)


def test_removing_a_user_with_one_word_costs_no_delta_at_large_epsilon():
    """If epsilon exceeds -ln(1 - s), no result is more than e^epsilon times as likely without the user.

    For a smaller epsilon, a recursion gives delta.
    """
    corners = chances(Ballot(0.2, 16))
    assert direction_delta(0.2232, corners, 0.2, 10, "one", False, 400) == 0.0
    assert direction_delta(1e-4, corners, 0.2, 10, "one", False, 1200) == pytest.approx(0.0319, abs=2e-4)


@given(st.floats(0.01, 0.95), st.integers(2, 40), st.integers(0, 400))
def test_survival_agrees_with_a_computation_to_eighty_digits(rate, theta, spare):
    """Binomial tails and their complements have a relative error below 1e-10."""
    holders = theta - 1 + spare
    survived, lost = survival(Ballot(rate, theta), np.array([holders]))
    s = number(rate)
    below = context.fsum(context.binomial(holders, i) * s**i * (1 - s) ** (holders - i) for i in range(theta))
    if below > 1e-290:
        assert abs(number(float(lost[0])) / below - 1) < 1e-10
    if holders < theta:
        assert survived[0] == 0.0
    elif 1 - below > 1e-290:
        assert abs(number(float(survived[0])) / (1 - below) - 1) < 1e-10


@pytest.mark.jit
@pytest.mark.parametrize(
    ("rate", "theta"), [(0.3, 12), (0.02, 12), pytest.param(0.004, 16, marks=pytest.mark.slow), (0.05, 14)]
)
@pytest.mark.parametrize("words", ["one", "many"])
@pytest.mark.parametrize("added", [True, False])
def test_the_bound_from_corners_is_valid_and_close(rate, theta, words, added, monkeypatch):
    """The bound from corners is never below the bound from all points, and at most one and a half per cent above."""
    epsilon = trie_epsilon_about(rate)
    thinned = direction_delta(epsilon, chances(Ballot(rate, theta)), rate, 6, words, added, 400)
    monkeypatch.setattr(accountant, "_ALL", 10**9)
    whole = direction_delta(epsilon, chances(Ballot(rate, theta)), rate, 6, words, added, 400)
    assert whole * (1 - 1e-9) <= thinned <= whole * 1.015 + 1e-20


def trie_epsilon_about(rate):
    return 4 * rate


@settings(max_examples=40)
@given(st.floats(0.001, 0.5), st.integers(2, 30))
def test_corners_enclose_every_point(rate, theta):
    """Every point is below the upper side of the polygon, which connects adjacent corners."""
    p, _, q, _ = chances(Ballot(rate, theta))
    order = np.argsort(p, kind="stable")
    p, q = p[order], q[order]
    holders = np.unique(np.geomspace(theta, 3 * theta / rate, 300).round().astype(np.int64))
    without, _ = survival(Ballot(rate, theta), holders)
    joined, _ = survival(Ballot(rate, theta), holders + 1)
    inside = (without >= p[0]) & (without <= p[-1])
    assert np.all(joined[inside] <= np.interp(without[inside], p, q) * (1 + 1e-9))


@pytest.mark.jit
@pytest.mark.parametrize("words", ["one", "many"])
def test_the_finest_grid_gives_the_lowest_bound(words):
    """The bounds of all other grids are valid, too."""
    values = [trie_delta(0.6, Ballot(0.15, 12), 8, words, nodes=nodes) for nodes in (60, 120, 240, 480, 960, 3840)]
    assert all(value >= values[-1] * (1 - 1e-6) for value in values)
    assert values[0] > values[-1]


def test_a_single_user_is_revealed_with_the_probability_of_theta_coins():
    """With theta - 1 other users, the user is revealed if all theta users are sampled. No epsilon bounds this event."""
    assert trie_delta(50, Ballot(0.5, 10), 1) == pytest.approx(0.5**10, rel=1e-6)
    assert survives(10, Ballot(0.5, 10)) == 0.5**10


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0},
        {"rate": 0},
        {"rate": 1},
        {"theta": 1},
        {"rounds": 0},
        {"words": "two"},
        {"again": 1},
        {"further": -0.1},
    ],
)
def test_values_out_of_range_are_rejected(wrong):
    """Parameters out of range raise an error that names them."""
    law = {"rate": 0.5, "theta": 3, "again": 0.1, "further": 0.1}
    values = {"epsilon": 1.0, "rounds": 2, "words": "one", **law, **wrong}
    with pytest.raises(BudgetError, match=next(iter(wrong))):
        trie_delta(values["epsilon"], Ballot(*(values[name] for name in law)), values["rounds"], values["words"])
