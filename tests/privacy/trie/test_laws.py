"""Tests with exact distributions that the real client and server satisfy the guarantee and mutants violate it."""

import math
import random
from collections import Counter
from itertools import pairwise

import pytest

from naive.protocol import Client, client_of
from naive.trie import ballots, batches, bernoulli, hockey_stick, honest, law_of
from voxpop.mechanisms.heavy_hitters.protocol import Prefix, Rules, Trie, grow, prefix_after
from voxpop.privacy.trie.accountant import chances, direction_delta, group_delta, trie_delta
from voxpop.privacy.trie.ballot import Ballot

EPSILONS = (0.05, 0.3, 1.0)


def rules_of(words, rate, theta, rounds=2, unit=1, again=0.0, further=0.0):
    return Rules(Ballot(rate, theta, again, further), rounds, unit, rounds * unit, words=words)


def neighbours(rng, rules, alphabet="ab"):
    """Return clients with random words, and the same clients without the last client."""
    possible = [(a,) for a in alphabet] + [(a, b) for a in alphabet for b in alphabet]
    possible = [word for word in possible if len(word) <= rules.longest]
    count = rng.randint(2, 5)
    clients = []
    for user in range(count):
        held = rng.choices(possible, k=1 if rules.words == "one" else rng.randint(1, 2))
        clients.append(client_of(user, {word: held.count(word) for word in held}, rules))
    return clients, clients[:-1]


def worst_ratio(rules, cases, says=honest, seed=0):
    """Return the largest ratio of the exact delta to its bound, over random neighbours and both directions."""
    rng = random.Random(seed)
    corners, worst = chances(rules.ballot), 0.0
    bounds = {
        (epsilon, added): direction_delta(epsilon, corners, rules.ballot.rate, rules.rounds, rules.words, added, 800)
        for epsilon in EPSILONS
        for added in (True, False)
    }
    for _ in range(cases):
        larger, smaller = neighbours(rng, rules)
        laws = [law_of(each, rules, ballots(len(each), rules.ballot), says) for each in (larger, smaller)]
        for (epsilon, added), bound in bounds.items():
            exact = hockey_stick(*(laws if added else laws[::-1]), math.exp(epsilon))
            if exact > 1e-12:
                worst = max(worst, exact / max(bound, 1e-12))
    return worst


@pytest.mark.parametrize(("rate", "theta"), [(0.3, 2), (0.6, 2), (0.5, 3)])
@pytest.mark.parametrize("unit", [1, 2])
def test_the_exact_delta_for_one_word_is_within_the_bound(rate, theta, unit):
    """The exact delta of random neighbours is below the bound, and the worst case is close to it."""
    worst = worst_ratio(rules_of("one", rate, theta, rounds=3 if unit == 1 else 2, unit=unit), 12)
    assert 0.5 < worst <= 1 + 1e-9


@pytest.mark.parametrize(("rate", "theta"), [(0.3, 2), pytest.param(0.6, 2, marks=pytest.mark.slow)])
def test_the_exact_delta_for_many_words_is_within_the_bound(rate, theta):
    """The exact delta is also below the bound if users draw a new word in each round."""
    worst = worst_ratio(rules_of("many", rate, theta, rounds=3), 6)
    assert 0.2 < worst <= 1 + 1e-9


@pytest.mark.parametrize(("words", "least"), [("one", 0.5), ("many", 0.2)])
@pytest.mark.parametrize(
    ("rate", "theta", "again", "further"), [(0.4, 2, 0.3, 0.0), pytest.param(0.5, 3, 0.2, 0.5, marks=pytest.mark.slow)]
)
def test_the_exact_delta_for_several_votes_is_within_the_bound(words, least, rate, theta, again, further):
    """The distributions cover all numbers of votes of all users. The exact delta is below the bound and close to it."""
    worst = worst_ratio(rules_of(words, rate, theta, 2, again=again, further=further), 6)
    assert least < worst <= 1 + 1e-9


def test_more_votes_than_the_accountant_assumes_are_detected():
    """The bound assumes a probability of 0.05 for each further vote. At 0.9, a single user is revealed too often."""
    run, claimed = rules_of("one", 0.5, 4, again=0.9, further=0.9), Ballot(0.5, 4, 0.05, 0.05)
    clients = [client_of(0, {("a",): 1}, run)]
    laws = [law_of(each, run, ballots(len(each), run.ballot)) for each in (clients, [])]
    assert hockey_stick(*laws, math.exp(1.0)) > 1.5 * trie_delta(1.0, claimed, 2)
    sound = rules_of("one", 0.5, 4, again=0.05, further=0.05)
    laws = [law_of(each, sound, ballots(len(each), sound.ballot)) for each in (clients, [])]
    assert hockey_stick(*laws, math.exp(1.0)) <= trie_delta(1.0, claimed, 2)


def every_live_prefix(client: Client, trie, rules):
    """Return the votes of a broken client, which votes for all its live prefixes at once."""
    votes = {
        prefix_after(word, rules.size(trie.rounds + 1))
        for word, _ in client.words
        if prefix_after(word, rules.size(trie.rounds)) in trie.live
    }
    return [(1.0, list(votes))]


def test_a_client_that_votes_for_all_its_live_prefixes_is_detected():
    """Votes for four words at once exceed the bound for many words."""
    rules = rules_of("many", 0.3, 2, rounds=2)
    words = {(letter,): 1 for letter in "abcd"}
    others = [client_of(user, {(letter,): 1}, rules) for user, letter in enumerate("abcd")]
    user = client_of(9, words, rules)
    laws = [
        law_of(each, rules, bernoulli(len(each), rules.ballot.rate), every_live_prefix)
        for each in ([*others, user], others)
    ]
    assert hockey_stick(*laws, math.exp(1.0)) > 1.3 * trie_delta(1.0, rules.ballot, rules.rounds, "many")
    sound = [law_of(each, rules, bernoulli(len(each), rules.ballot.rate)) for each in ([*others, user], others)]
    assert hockey_stick(*sound, math.exp(1.0)) <= trie_delta(1.0, rules.ballot, rules.rounds, "many")


def test_the_bernoulli_bound_does_not_cover_batches_of_a_fixed_size():
    """In a batch of 2 theta - 1 users of two words, one of the words always gets theta votes.

    With the user, each client in the batch has a word, so it is impossible that neither word grows. If the user is
    replaced by an empty client, this event has probability 9/35. With Bernoulli sampling at the same rate, this
    direction costs nothing at epsilon 1.
    """
    rules = rules_of("one", 3 / 7, 2, rounds=2)
    words = ["a"] * 3 + ["b"] * 3
    others = [client_of(user, {(word,): 1}, rules) for user, word in enumerate(words)]
    user, nobody = client_of(9, {("a",): 1}, rules), client_of(9, {}, rules)
    laws = [law_of([*others, last], rules, batches(7, 3)) for last in (user, nobody)]
    bound = direction_delta(1.0, chances(Ballot(rules.ballot.rate, 2)), rules.ballot.rate, 2, "one", False, 800)
    assert bound == 0.0
    assert hockey_stick(laws[1], laws[0], math.exp(1.0)) > 0.2
    assert hockey_stick(laws[1], laws[0], math.exp(50.0)) > 0.2  # No epsilon bounds this event.


@pytest.mark.parametrize(("rate", "theta", "epsilon"), [(0.9, 3, 1.5), (0.5, 3, 0.3), (0.3, 3, 0.2)])
def test_the_bound_covers_lost_nodes_that_return(rate, theta, epsilon):
    """The number of voters increases if a lost node votes again in a later round, but the bound is still valid."""
    lost = {1: {0, 1, 2}, 2: {0}}
    rules = rules_of("one", rate, theta, rounds=3)

    def says(client: Client, trie, rules):
        return [(1.0, [])] if client.key in lost.get(trie.rounds + 1, ()) else honest(client, trie, rules)

    clients = [client_of(user, {("a", "b"): 1}, rules) for user in (*range(5), 9)]
    laws = [law_of(each, rules, bernoulli(len(each), rate), says) for each in (clients, clients[:-1])]
    for first, other in (laws, laws[::-1]):
        assert hockey_stick(first, other, math.exp(epsilon)) <= trie_delta(epsilon, rules.ballot, 3)
    assert hockey_stick(*laws, math.exp(epsilon)) > 0.02 * trie_delta(epsilon, rules.ballot, 3)


def test_a_shared_coin_of_several_users_is_detected():
    """If two of three users share a coin, a word of theta = 3 users survives with probability s^2 instead of s^3."""
    rules = rules_of("one", 0.3, 3, rounds=2)
    clients = [client_of(user, {("a",): 1}, rules) for user in range(3)]
    together = [
        (rate * chance, (coins[0], coins[0], coins[1]))
        for rate, coins in bernoulli(2, rules.ballot.rate)
        for chance in (1.0,)
    ]
    alone = [(chance, (coins[0], coins[0])) for chance, coins in bernoulli(1, rules.ballot.rate)]
    laws = [law_of(clients, rules, together), law_of(clients[:2], rules, alone)]
    assert hockey_stick(*laws, math.exp(1.0)) > 1.5 * trie_delta(1.0, Ballot(0.3, 3), 2)


def test_a_threshold_that_is_one_too_low_is_detected():
    """A server that extends prefixes with theta - 1 votes exceeds the bound for theta."""
    loose = rules_of("one", 0.3, 2, rounds=2)
    clients = [client_of(user, {("a",): 1}, loose) for user in range(2)]
    laws = [law_of(each, loose, bernoulli(len(each), 0.3)) for each in (clients, clients[:1])]
    assert hockey_stick(*laws, math.exp(1.0)) > 1.5 * trie_delta(1.0, Ballot(0.3, 3), 2)


@pytest.mark.parametrize("words", ["one", "many"])
@pytest.mark.parametrize(("rate", "theta", "again"), [pytest.param(0.3, 3, 0.0, marks=pytest.mark.slow), (0.4, 2, 0.3)])
def test_a_person_with_two_user_ids_needs_the_bound_for_two_users(words, rate, theta, again):
    """The exact delta for a difference of two users is within `group_delta` and exceeds the bound for one user."""
    rules, rng, worst = rules_of(words, rate, theta, again=again), random.Random(2), {1: 0.0, 2: 0.0}
    ran = (rules.ballot, rules.rounds, rules.words)
    bounds = {
        (epsilon, users): group_delta(epsilon / users, trie_delta(epsilon / users, *ran), users)
        for epsilon in EPSILONS
        for users in worst
    }
    for _ in range(6):
        clients, _ = neighbours(rng, rules)
        twice = [client_of(user, dict(clients[-1].words), rules) for user in (20, 21)]
        laws = [law_of(each, rules, ballots(len(each), rules.ballot)) for each in ([*clients[:3], *twice], clients[:3])]
        for (epsilon, users), bound in bounds.items():
            exact = max(hockey_stick(*laws, math.exp(epsilon)), hockey_stick(*laws[::-1], math.exp(epsilon)))
            worst[users] = max(worst[users], exact / bound)
    assert 0.1 < worst[2] <= 1 + 1e-9
    assert worst[1] > 1.02


@pytest.mark.parametrize("added", [0, 1, 2])
def test_added_votes_of_a_node_break_the_guarantee_of_other_users(added):
    """If a node adds theta - 1 votes, a single user is revealed whenever the user is sampled, at any epsilon.

    Therefore, the guarantee requires that nodes do not add votes.
    """
    rules = rules_of("one", 0.5, 3, rounds=1, again=0.1, further=0.1)
    secret, ballot = Prefix(("a",)), rules.ballot
    released = {}
    for holders in (0, 1):
        for votes, chance in enumerate(chance_of_votes(ballot, holders)):
            grown = grow(Trie(), Counter({secret: votes + added}), rules)
            released[holders, grown] = released.get((holders, grown), 0.0) + chance
    with_user = {grown: chance for (holders, grown), chance in released.items() if holders}
    without = {grown: chance for (holders, grown), chance in released.items() if not holders}
    exact = hockey_stick(with_user, without, math.exp(20.0))
    # If the node adds `added` votes, theta - added votes of the user are enough.
    assert exact == pytest.approx(ballot.tails[2 - added], rel=1e-12)
    assert (exact <= trie_delta(20.0, ballot, 1)) == (added == 0)


def chance_of_votes(ballot, holders):
    """Return the probabilities of 0, 1, ..., theta votes of one user or of no user."""
    tails = [1.0, *ballot.tails, 0.0]
    return [high - low for high, low in pairwise(tails)] if holders else [1.0]
