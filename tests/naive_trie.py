"""The accountant again by exhaustion: exact laws of small cases, hockey-sticks without any grid."""

from collections.abc import Callable, Iterable
from functools import cache
from itertools import product
from math import comb

from voxpop.hitters.client import Client, cast_vote
from voxpop.hitters.prefix import Prefix
from voxpop.hitters.rules import Rules
from voxpop.hitters.server import count_votes, grow, is_over
from voxpop.hitters.trie import Trie

Law = dict[Trie, float]
Votes = list[tuple[float, list[Prefix]]]
"""What one sampled client may say in a round, and how likely."""


@cache
def survives(holders: int, rate: float, theta: int) -> float:
    """P(Bin(holders, rate) >= theta), term by term."""
    return sum(comb(holders, i) * rate**i * (1 - rate) ** (holders - i) for i in range(theta, holders + 1))


def one_word_path(factor: float, others: Iterable[int], rate: float, theta: int, added: bool) -> float:
    """Delta for one word whose prefixes have so many other holders, round by round."""
    first = other = 1.0
    total = 0.0
    for k in others:
        p, q = survives(k, rate, theta), survives(k + 1, rate, theta)
        a, b = (q, p) if added else (p, q)
        total += max(0.0, first * (1 - a) - factor * other * (1 - b))
        first, other = first * a, other * b
    return total + max(0.0, first - factor * other)


def worst_one_word(factor: float, most: int, rounds: int, rate: float, theta: int, added: bool) -> float:
    """The worst path of numbers that never rise, as holders of longer and longer prefixes do not."""
    paths = (path for path in product(range(most + 1), repeat=rounds) if list(path) == sorted(path, reverse=True))
    return max(one_word_path(factor, path, rate, theta, added) for path in paths)


def worst_many_words(factor: float, most: int, rounds: int, rate: float, theta: int, added: bool) -> float:
    """The worst adversary that picks a prefix in each round knowing what survived, without any grid."""

    def value(first: float, other: float, left: int) -> float:
        if left == 0:
            return max(0.0, first - factor * other)
        worst = value(first, other, left - 1)
        for k in range(theta - 1, most + 1):
            p, q = survives(k, rate, theta), survives(k + 1, rate, theta)
            a, b = (q, p) if added else (p, q)
            worst = max(
                worst,
                value(first * a, other * b, left - 1) + value(first * (1 - a), other * (1 - b), left - 1),
            )
        return worst

    return value(1.0, 1.0, rounds)


class Chosen:
    """Stands for a secret whose draw is known."""

    def __init__(self, share: float):
        self.word = int(share * 2**64)

    def draws(self, purpose, first, second):
        """Return the draw."""
        import numpy as np

        return np.array([[self.word, 0]], np.uint64)


def honest(client: Client, trie: Trie, rules: Rules) -> Votes:
    """What the real client says: one vote, by any of its words."""
    total = sum(count for _, count in client.words)
    if rules.words == "one" or total == 0:
        vote = cast_vote(client, trie, rules, Chosen(0.0))
        return [(1.0, [] if vote is None else [vote])]
    votes = [cast_vote(client, trie, rules, Chosen((place + 0.5) / total)) for place in range(total)]
    return [(1 / total, [] if vote is None else [vote]) for vote in votes]


def bernoulli(count: int, rate: float) -> list[tuple[float, tuple[bool, ...]]]:
    """Every outcome of independent coins."""
    return [
        (rate ** sum(coins) * (1 - rate) ** (count - sum(coins)), coins)
        for coins in product((False, True), repeat=count)
    ]


def batches(count: int, size: int) -> list[tuple[float, tuple[bool, ...]]]:
    """Every batch of a fixed size."""
    every = [coins for coins in product((False, True), repeat=count) if sum(coins) == size]
    return [(1 / len(every), coins) for coins in every]


def law_of(
    clients: list[Client],
    rules: Rules,
    samples: list[tuple[float, tuple[bool, ...]]],
    says: Callable[[Client, Trie, Rules], Votes] = honest,
) -> Law:
    """The exact law of the trie: every sample and every choice of words, through the real client and server."""
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
    options = [says(client, trie, rules) for client in clients]
    outcomes: dict[Trie, float] = {}
    for weight, coins in samples:
        sampled = [option for option, coin in zip(options, coins, strict=True) if coin]
        for said in product(*sampled):
            chance = weight
            for share, _ in said:
                chance *= share
            votes = [vote for _, each in said for vote in each]
            grown = grow(trie, count_votes(votes, trie, rules), rules)
            outcomes[grown] = outcomes.get(grown, 0.0) + chance
    return [(chance, grown) for grown, chance in outcomes.items()]


def hockey_stick(first: Law, other: Law, factor: float) -> float:
    """The least delta with which the first law is within a factor of the other."""
    return sum(max(0.0, chance - factor * other.get(trie, 0.0)) for trie, chance in first.items())
