"""Reference implementation of heavy hitters, with one client per user and a server that counts votes.

A client votes for one prefix per round. If users voted for all live prefixes, each user would be counted several times,
and the guarantee would be wrong by a factor (`tests/privacy/trie/test_laws.py`).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import final

import numpy as np

from voxpop.mechanisms.heavy_hitters.protocol import Prefix, Rules, Trie, Word, grow, is_over, is_valid, prefix_after
from voxpop.privacy.secret import Secret


@final
@dataclass(frozen=True, slots=True, repr=False)
class Client:
    """The private data of one user.

    Attributes:
        key: A number that depends only on the user's id. It determines the draws of the user.
        words: The words of the user with their counts, sorted by symbols. No word is empty or too long.
        twin: The number of earlier users with the same key. Without this number, users with the same key would be
            sampled together, so one of them could learn about another.
    """

    key: int
    words: tuple[tuple[Word, int], ...]
    twin: int = 0

    def __repr__(self) -> str:
        return "Client(private)"


def client_of(key: int, counts: Mapping[Word, int], rules: Rules, twin: int = 0) -> Client:
    """Return a client with the words that satisfy the rules.

    Args:
        key: The key of the user.
        counts: The number of occurrences of each word.
        rules: The public rules. Words that are too long, including the end mark, are omitted.
        twin: The number of earlier users with the same key, as in `Client`.
    """
    fitting = {word: count for word, count in counts.items() if count > 0 and 0 < len(word) <= rules.longest}
    return Client(key, tuple(sorted(fitting.items())), twin)


def cast_vote(client: Client, trie: Trie, rules: Rules, secret: "Secret") -> Prefix | None:
    """Return the prefix that a sampled client votes for in the next round, or None if the client does not vote.

    The client picks one of its words. If the prefix of the word is alive in the trie, the client votes for that prefix
    extended by the next symbols of the word. Otherwise, or if the word has already ended, the client does not vote.

    Args:
        client: The client.
        trie: The trie before the round.
        rules: The public rules.
        secret: The secret, which determines the chosen word if the user has several.
    """
    word = _chosen_word(client, trie.rounds, rules, secret)
    # A user votes for one prefix, so the user is in one factor of the product of the round
    # (docs/privacy/heavy-hitters.md, "One round").
    if word is None or prefix_after(word, rules.size(trie.rounds)) not in trie.live:
        return None
    return prefix_after(word, rules.size(trie.rounds + 1))


def _chosen_word(client: Client, rounds: int, rules: Rules, secret: "Secret") -> Word | None:
    """Return the user's most frequent word (the first of several in order), or a word drawn by frequency."""
    if not client.words:
        return None
    if rules.words == "one":
        # Choose the first of the most frequent words in the order of symbols, which is public and the same on every
        # engine.
        return max(client.words, key=lambda entry: entry[1])[0]
    # The position is floor(draw * total / 2^64), with a new draw in every round. The probability of each word is
    # proportional to its frequency.
    place = _draw(client, f"word/round {rounds + 1}", secret) * sum(count for _, count in client.words) >> 64
    ends = accumulate(count for _, count in client.words)
    return next(word for (word, _), end in zip(client.words, ends, strict=True) if place < end)


def _draw(client: Client, purpose: str, secret: "Secret") -> int:
    """Return the 64 random bits for this client and purpose."""
    # The draw depends on the key and on `twin`, because two users with the same key must not share a draw
    # (docs/privacy/heavy-hitters.md, "Conditions").
    return int(secret.draws(purpose, np.array([client.key], np.uint64), client.twin)[0, 0])


def votes_cast(key: int, twin: int, rounds: int, rules: Rules, secret: "Secret") -> int:
    """Return the number of votes of a user in the round after `rounds` rounds, which is 0 if the user is not sampled.

    Args:
        key: The key of the user.
        twin: The number of earlier users with the same key.
        rounds: The number of completed rounds.
        rules: The public rules, with Bernoulli sampling.
        secret: The secret of the run.

    Returns:
        The number of votes. With ideal bits, the probability of at least x votes is exactly that of `rules.ballot`.
    """
    high, low = secret.draws(f"sample/round {rounds + 1}", np.array([key], np.uint64), twin)[0]
    # The draw has 128 bits. It is below bar x with probability P(X >= x), rounded down to a multiple of 2^-128.
    draw = int(high) << 64 | int(low)
    # The bars decrease, so the number of bars above the draw has the distribution of X.
    return sum(draw < bar for bar in rules.bars)


def count_votes(votes: Iterable[tuple[Prefix, int] | None], trie: Trie, rules: Rules) -> Counter[Prefix]:
    """Count the votes that extend a live prefix, and ignore missing and invalid votes.

    Args:
        votes: For each user, a prefix and the number of votes for it, or None.
        trie: The trie before the round.
        rules: The public rules.
    """
    counts: Counter[Prefix] = Counter()
    for vote in votes:
        # The proof does not cover prefixes that no honest client can vote for.
        if vote is not None and is_valid(vote[0], trie, rules):
            counts[vote[0]] += vote[1]
    return counts


def run_protocol(clients: Sequence[Client], rules: Rules, secret: "Secret") -> Trie:
    """Run every round with Bernoulli sampling.

    Args:
        clients: The clients, one per user.
        rules: The public rules.
        secret: The secret of the run.

    Returns:
        The final trie.
    """
    trie = Trie()
    while not is_over(trie, rules):
        votes = round_votes(clients, trie, rules, secret)
        trie = grow(trie, count_votes(votes, trie, rules), rules)
    return trie


def round_votes(
    clients: Iterable[Client], trie: Trie, rules: Rules, secret: "Secret"
) -> list[tuple[Prefix, int] | None]:
    """Return the vote of each client in the next round, which is a prefix and the number of votes for it, or None."""
    return [_said(client, trie, rules, secret) for client in clients]


def _said(client: Client, trie: Trie, rules: Rules, secret: "Secret") -> tuple[Prefix, int] | None:
    # The number of votes is drawn before the word, because it must not depend on the word.
    votes = votes_cast(client.key, client.twin, trie.rounds, rules, secret)
    prefix = cast_vote(client, trie, rules, secret) if votes else None
    return None if prefix is None else (prefix, votes)
