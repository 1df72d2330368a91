"""Reference implementation of the accountant, with exact distributions for small cases instead of a grid."""

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from math import prod

from naive.protocol import Client, cast_vote, count_votes
from voxpop.mechanisms.heavy_hitters.protocol import Prefix, Rules, Trie, grow, is_over
from voxpop.privacy.trie.ballot import Ballot

Law = dict[Trie, float]
Votes = list[tuple[float, list[Prefix]]]
"""The possible votes of one sampled client in a round, with their probabilities."""
DRAWN = 128
"""The number of bits in a draw. Every probability of votes is a whole multiple of 2^-128."""


@cache
def chances_of_votes(ballot: Ballot) -> list[Fraction]:
    """Return the exact probabilities that a user casts 0, 1, ..., theta votes in a release, as fractions."""
    tails = [Fraction(1), *map(Fraction, ballot.tails)]
    tails += [Fraction(0)] * (ballot.theta + 2 - len(tails))
    return [tail - after for tail, after in pairwise(tails)]


@cache
def votes_law(holders: int, ballot: Ballot) -> tuple[Fraction, ...]:
    """Return the distribution of the total votes of all users of a word. The last entry covers theta or more votes."""
    return tuple(Fraction(whole, 1 << DRAWN * holders) for whole in _whole_law(holders, ballot))


@cache
def _whole_law(holders: int, ballot: Ballot) -> tuple[int, ...]:
    """Return the distribution in multiples of 2^-128 per user. Whole numbers are much faster than fractions."""
    if holders == 0:
        return (1, *[0] * ballot.theta)
    shares = [share * (1 << DRAWN) for share in chances_of_votes(ballot)]
    assert all(share.denominator == 1 for share in shares)
    law = [0] * (ballot.theta + 1)
    for known, whole in enumerate(_whole_law(holders - 1, ballot)):
        for votes, share in enumerate(shares):
            law[min(known + votes, ballot.theta)] += whole * share.numerator
    return tuple(law)


@cache
def survives(holders: int, ballot: Ballot) -> float:
    """Return the probability that a prefix with `holders` users survives a round."""
    return float(votes_law(holders, ballot)[-1])


def pairs_of(most: int, ballot: Ballot, added: bool) -> list[tuple[float, float]]:
    """Return the probabilities that a prefix survives under both distributions, by its number of other users."""
    pairs = [(survives(k, ballot), survives(k + 1, ballot)) for k in range(most + 1)]
    return [(q, p) if added else (p, q) for p, q in pairs]


def one_word_path(factor: float, pairs: Iterable[tuple[float, float]]) -> float:
    """Return the delta for one word, given the probabilities that the prefix survives in each round."""
    first = other = 1.0
    total = 0.0
    for a, b in pairs:
        total += max(0.0, first * (1 - a) - factor * other * (1 - b))
        first, other = first * a, other * b
    return total + max(0.0, first - factor * other)


def worst_one_word(factor: float, most: int, rounds: int, ballot: Ballot, added: bool) -> float:
    """Return the largest delta over all sequences of numbers of users.

    The numbers can be in any order, because lost nodes can return.
    """
    return max(one_word_path(factor, path) for path in product(pairs_of(most, ballot, added), repeat=rounds))


def worst_many_words(factor: float, most: int, rounds: int, ballot: Ballot, added: bool) -> float:
    """Return the delta of the worst adversary, computed without a grid.

    In each round, the adversary picks one surviving prefix.
    """
    pairs = pairs_of(most, ballot, added)[0 if ballot.again else ballot.theta - 1 :]

    def value(first: float, other: float, left: int) -> float:
        if left == 0:
            return max(0.0, first - factor * other)
        worst = value(first, other, left - 1)
        for a, b in pairs:
            worst = max(
                worst,
                value(first * a, other * b, left - 1) + value(first * (1 - a), other * (1 - b), left - 1),
            )
        return worst

    return value(1.0, 1.0, rounds)


class Chosen:
    """A stand-in for a secret that always returns the same draw."""

    def __init__(self, share: float):
        self.word = int(share * 2**64)

    def draws(self, purpose, first, second):
        """Return the draw."""
        import numpy as np

        return np.array([[self.word, 0]], np.uint64)


def honest(client: Client, trie: Trie, rules: Rules) -> Votes:
    """Return the possible votes of the real client, which votes for one of its words."""
    total = sum(count for _, count in client.words)
    if rules.words == "one" or total == 0:
        vote = cast_vote(client, trie, rules, Chosen(0.0))
        return [(1.0, [] if vote is None else [vote])]
    votes = [cast_vote(client, trie, rules, Chosen((place + 0.5) / total)) for place in range(total)]
    return [(1 / total, [] if vote is None else [vote]) for vote in votes]


def bernoulli(count: int, rate: float) -> list[tuple[float, tuple[bool, ...]]]:
    """Return the probability and the values of every outcome of independent coins."""
    return [
        (rate ** sum(coins) * (1 - rate) ** (count - sum(coins)), coins)
        for coins in product((False, True), repeat=count)
    ]


def ballots(count: int, ballot: Ballot) -> list[tuple[float, tuple[int, ...]]]:
    """Return the probability and the values of every outcome of the users' numbers of votes."""
    chances = [float(chance) for chance in chances_of_votes(ballot)]
    return [(prod(chances[each] for each in cast), cast) for cast in product(range(len(chances)), repeat=count)]


def batches(count: int, size: int) -> list[tuple[float, tuple[bool, ...]]]:
    """Return the probability and the members of every batch of a fixed size."""
    every = [coins for coins in product((False, True), repeat=count) if sum(coins) == size]
    return [(1 / len(every), coins) for coins in every]


def law_of(
    clients: list[Client],
    rules: Rules,
    samples: list[tuple[float, tuple[int, ...]]],
    says: Callable[[Client, Trie, Rules], Votes] = honest,
) -> Law:
    """Return the exact distribution of the final trie over all votes and choices of words."""
    running: Law = {Trie(): 1.0}
    over: Law = {}
    while running:
        after: Law = {}
        for trie, weight in running.items():
            for chance, grown in _one_round(clients, trie, rules, samples, says):
                target = over if is_over(grown, rules) else after
                target[grown] = target.get(grown, 0.0) + weight * chance
        running = after
    return over


def _one_round(clients, trie, rules, samples, says):
    prefixes: dict[Prefix, int] = {}
    options = [
        [
            (share, [prefixes.setdefault(vote, len(prefixes)) for vote in votes])
            for share, votes in says(client, trie, rules)
        ]
        for client in clients
    ]
    # The server counts votes without names, so equal lists of votes have the same result. Each list is counted once.
    cast: dict[tuple[tuple[int, int], ...], float] = {}
    for weight, coins in samples:
        asked = [(option, int(coin)) for option, coin in zip(options, coins, strict=True) if coin]
        for said in product(*(option for option, _ in asked)):
            chance = weight
            for share, _ in said:
                chance *= share
            votes = tuple(
                sorted((vote, times) for (_, each), (_, times) in zip(said, asked, strict=True) for vote in each)
            )
            cast[votes] = cast.get(votes, 0.0) + chance
    named, outcomes = list(prefixes), {}
    for votes, chance in cast.items():
        counted = count_votes([(named[vote], times) for vote, times in votes], trie, rules)
        grown = grow(trie, counted, rules)
        outcomes[grown] = outcomes.get(grown, 0.0) + chance
    return [(chance, grown) for grown, chance in outcomes.items()]


def hockey_stick(first: Law, other: Law, factor: float) -> float:
    """Return the smallest delta for which the first distribution is within a factor of the second."""
    return sum(max(0.0, chance - factor * other.get(trie, 0.0)) for trie, chance in first.items())
