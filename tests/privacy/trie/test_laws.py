"""The real client and server, through every sample and every choice: the guarantee holds, and broken twins break it."""

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
    """Clients with random words, and the same without the last of them."""
    possible = [(a,) for a in alphabet] + [(a, b) for a in alphabet for b in alphabet]
    possible = [word for word in possible if len(word) <= rules.longest]
    count = rng.randint(2, 5)
    clients = []
    for user in range(count):
        held = rng.choices(possible, k=1 if rules.words == "one" else rng.randint(1, 2))
        clients.append(client_of(user, {word: held.count(word) for word in held}, rules))
    return clients, clients[:-1]


def worst_ratio(rules, cases, says=honest, seed=0):
    """The largest exact delta over its bound that random neighbours show, both ways."""
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
def test_one_word_never_exceeds_the_accountant(rate, theta, unit):
    """Exact laws of random neighbours stay below the bound, and the worst of them nearly reach it."""
    worst = worst_ratio(rules_of("one", rate, theta, rounds=3 if unit == 1 else 2, unit=unit), 12)
    assert 0.5 < worst <= 1 + 1e-9


@pytest.mark.parametrize(("rate", "theta"), [(0.3, 2), pytest.param(0.6, 2, marks=pytest.mark.slow)])
def test_many_words_never_exceed_the_accountant(rate, theta):
    """The same where each round draws a word anew."""
    worst = worst_ratio(rules_of("many", rate, theta, rounds=3), 6)
    assert 0.2 < worst <= 1 + 1e-9


@pytest.mark.parametrize(("words", "least"), [("one", 0.5), ("many", 0.2)])
@pytest.mark.parametrize(
    ("rate", "theta", "again", "further"), [(0.4, 2, 0.3, 0.0), pytest.param(0.5, 3, 0.2, 0.5, marks=pytest.mark.slow)]
)
def test_several_votes_never_exceed_the_accountant(words, least, rate, theta, again, further):
    """Every number of votes of every user, through the real client and server: below the bound, and near it."""
    worst = worst_ratio(rules_of(words, rate, theta, 2, again=again, further=further), 6)
    assert least < worst <= 1 + 1e-9


def test_votes_that_come_again_more_often_than_accounted_are_caught():
    """Accounted with a chance of 0.05 for each further vote, run with 0.9: a user alone is found far too often."""
    run, claimed = rules_of("one", 0.5, 4, again=0.9, further=0.9), Ballot(0.5, 4, 0.05, 0.05)
    clients = [client_of(0, {("a",): 1}, run)]
    laws = [law_of(each, run, ballots(len(each), run.ballot)) for each in (clients, [])]
    assert hockey_stick(*laws, math.exp(1.0)) > 1.5 * trie_delta(1.0, claimed, 2)
    sound = rules_of("one", 0.5, 4, again=0.05, further=0.05)
    laws = [law_of(each, sound, ballots(len(each), sound.ballot)) for each in (clients, [])]
    assert hockey_stick(*laws, math.exp(1.0)) <= trie_delta(1.0, claimed, 2)


def every_live_prefix(client: Client, trie, rules):
    """A broken client: it votes for all its live prefixes at once."""
    votes = {
        prefix_after(word, rules.size(trie.rounds + 1))
        for word, _ in client.words
        if prefix_after(word, rules.size(trie.rounds)) in trie.live
    }
    return [(1.0, list(votes))]


def test_a_client_that_votes_for_all_its_live_prefixes_is_caught():
    """Four words at once cost about four times what one vote costs: far over the bound for many words."""
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


def test_a_batch_of_fixed_size_under_the_bernoulli_bound_is_caught():
    """Two words of theta holders each, and a batch of 2 theta - 1: one of them always grows, unless somebody is absent.

    With the user nobody in the batch holds nothing, so "neither grows" is impossible; with an empty user in the place
    it has probability 9/35. For Bernoulli sampling at that rate this direction costs nothing at epsilon 1.
    """
    rules = rules_of("one", 3 / 7, 2, rounds=2)
    words = ["a"] * 3 + ["b"] * 3
    others = [client_of(user, {(word,): 1}, rules) for user, word in enumerate(words)]
    user, nobody = client_of(9, {("a",): 1}, rules), client_of(9, {}, rules)
    laws = [law_of([*others, last], rules, batches(7, 3)) for last in (user, nobody)]
    bound = direction_delta(1.0, chances(Ballot(rules.ballot.rate, 2)), rules.ballot.rate, 2, "one", False, 800)
    assert bound == 0.0
    assert hockey_stick(laws[1], laws[0], math.exp(1.0)) > 0.2
    assert hockey_stick(laws[1], laws[0], math.exp(50.0)) > 0.2  # no epsilon pays for it


@pytest.mark.parametrize(("rate", "theta", "epsilon"), [(0.9, 3, 1.5), (0.5, 3, 0.3), (0.3, 3, 0.2)])
def test_nodes_that_come_back_stay_within_the_bound(rate, theta, epsilon):
    """Holders rise from round to round where a node that was lost is asked in the next; the bound has to hold."""
    lost = {1: {0, 1, 2}, 2: {0}}
    rules = rules_of("one", rate, theta, rounds=3)

    def says(client: Client, trie, rules):
        return [(1.0, [])] if client.key in lost.get(trie.rounds + 1, ()) else honest(client, trie, rules)

    clients = [client_of(user, {("a", "b"): 1}, rules) for user in (*range(5), 9)]
    laws = [law_of(each, rules, bernoulli(len(each), rate), says) for each in (clients, clients[:-1])]
    for first, other in (laws, laws[::-1]):
        assert hockey_stick(first, other, math.exp(epsilon)) <= trie_delta(epsilon, rules.ballot, 3)
    assert hockey_stick(*laws, math.exp(epsilon)) > 0.02 * trie_delta(epsilon, rules.ballot, 3)


def test_one_coin_for_several_users_is_caught():
    """Users of one key who shared a coin: theta - 1 of them and the user survive with s^2 instead of s^theta."""
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


def test_a_threshold_of_one_less_is_caught():
    """A server that grows prefixes with theta - 1 votes exceeds the bound for theta."""
    loose = rules_of("one", 0.3, 2, rounds=2)
    clients = [client_of(user, {("a",): 1}, loose) for user in range(2)]
    laws = [law_of(each, loose, bernoulli(len(each), 0.3)) for each in (clients, clients[:1])]
    assert hockey_stick(*laws, math.exp(1.0)) > 1.5 * trie_delta(1.0, Ballot(0.3, 3), 2)


@pytest.mark.parametrize("words", ["one", "many"])
@pytest.mark.parametrize(("rate", "theta", "again"), [pytest.param(0.3, 3, 0.0, marks=pytest.mark.slow), (0.4, 2, 0.3)])
def test_a_person_who_is_two_users_stays_below_the_bound_of_two_and_breaks_that_of_one(words, rate, theta, again):
    """Exact laws of data sets that differ in two users: below `group_delta`, and above what one user costs."""
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
def test_votes_that_a_node_makes_up_take_the_guarantee_from_others(added):
    """Whoever adds theta - 1 votes learns of a single holder with the chance that it is asked, at any epsilon.

    The law of the rest is as before. So the guarantee needs that nodes add no votes of their own.
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
    # With `added` votes given, theta - added of the user's own are enough.
    assert exact == pytest.approx(ballot.tails[2 - added], rel=1e-12)
    assert (exact <= trie_delta(20.0, ballot, 1)) == (added == 0)


def chance_of_votes(ballot, holders):
    """How likely 0, 1, ..., theta votes of nobody or of one user are."""
    tails = [1.0, *ballot.tails, 0.0]
    return [high - low for high, low in pairwise(tails)] if holders else [1.0]
