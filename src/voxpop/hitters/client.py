"""The device of one user: it holds the user's words, is told the trie, and votes for at most one prefix a round.

**One prefix** is what the proof asks for: a user who voted for all its live prefixes would be counted in several places
at once, and the guarantee would be off by a factor (tests/privacy/trie/test_laws.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, final

import numpy as np

from voxpop.hitters.prefix import Prefix, Word, prefix_after
from voxpop.hitters.rules import Rules
from voxpop.hitters.trie import Trie

if TYPE_CHECKING:
    from voxpop.privacy.secret import Secret


@final
@dataclass(frozen=True, slots=True, repr=False)
class Client:
    """What one user holds: private.

    Attributes:
        key: a function of the user's id alone, from which the user's draws follow.
        words: the user's words and how often each occurs, in the order of their symbols; none too long, none empty.
        twin: tells users of one key apart: how many came before. Without it they would be sampled together, and one
            of them could learn of another.
    """

    key: int
    words: tuple[tuple[Word, int], ...]
    twin: int = 0

    def __repr__(self) -> str:
        return "Client(private)"


def client_of(key: int, counts: Mapping[Word, int], rules: Rules, twin: int = 0) -> Client:
    """Return a client with the words that fit the rules.

    Args:
        key: of the user.
        counts: how often the user holds each word.
        rules: the public rules; words of more symbols than fit beside their end mark are left out.
        twin: see `Client`.
    """
    fitting = {word: count for word, count in counts.items() if count > 0 and 0 < len(word) <= rules.longest}
    return Client(key, tuple(sorted(fitting.items())), twin)


def cast_vote(client: Client, trie: Trie, rules: Rules, secret: "Secret") -> Prefix | None:
    """Return the prefix that a sampled client votes for in the next round, or None to keep silent.

    The client picks one of its words. If the word's prefix is live in the trie, it votes for that prefix and the word's
    next symbols; if not, or if the word had ended before, it is silent.

    Args:
        client: the device.
        trie: as it is before the round.
        rules: the public rules.
        secret: from which the choice of the word follows, if the user has several.
    """
    word = _chosen_word(client, trie.rounds, rules, secret)
    # One prefix and one only: the user is in one factor of the round's product (docs/privacy/heavy-hitters.md, "One
    # round").
    if word is None or prefix_after(word, rules.size(trie.rounds)) not in trie.live:
        return None
    return prefix_after(word, rules.size(trie.rounds + 1))


def _chosen_word(client: Client, rounds: int, rules: Rules, secret: "Secret") -> Word | None:
    """Return the user's most frequent word (the first of them in order), or one drawn by frequency."""
    if not client.words:
        return None
    if rules.words == "one":
        # The first of those held most often, in the order of symbols: public, and the same on every engine.
        return max(client.words, key=lambda entry: entry[1])[0]
    # floor(draw * total / 2^64): fresh in every round, uniform over the words as often as they are held.
    place = _draw(client, f"word/round {rounds + 1}", secret) * sum(count for _, count in client.words) >> 64
    ends = accumulate(count for _, count in client.words)
    return next(word for (word, _), end in zip(client.words, ends, strict=True) if place < end)


def _draw(client: Client, purpose: str, secret: "Secret") -> int:
    """Return 64 bits for this client and purpose."""
    # By key and twin number: two users of one key must not share a draw (docs/privacy/heavy-hitters.md, "Why the draws
    # must be separate").
    return int(secret.draws(purpose, np.array([client.key], np.uint64), client.twin)[0, 0])
