"""The server: samples users, checks and counts votes, grows the trie. It never sees a word that is not on the trie.

Each user is sampled in each round by a coin of its own, whose outcome stays secret: the guarantee follows from
nothing but these coins and the threshold.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from voxpop.hitters.prefix import Prefix
from voxpop.hitters.rules import Rules
from voxpop.hitters.trie import Trie

if TYPE_CHECKING:
    from voxpop.privacy.secret import Secret


def is_sampled(key: int, twin: int, rounds: int, rules: Rules, secret: "Secret") -> bool:
    """Say whether a user is sampled in the round after so many.

    Args:
        key: of the user.
        twin: tells users of one key apart.
        rounds: how many rounds have gone by.
        rules: the public rules, with Bernoulli sampling.
        secret: of the run.

    Returns:
        True with probability `rules.rate` exactly, for ideal bits.
    """
    high, low = secret.draws(f"sample/round {rounds + 1}", np.array([key], np.uint64), twin)[0]
    return (int(high) << 64 | int(low)) < rules.bar


def count_votes(votes: Iterable[Prefix | None], trie: Trie, rules: Rules) -> Counter[Prefix]:
    """Count the votes that extend a live prefix, and ignore silence and everything else.

    Args:
        votes: at most one of each sampled user.
        trie: as it is before the round.
        rules: the public rules.
    """
    return Counter(vote for vote in votes if vote is not None and is_valid(vote, trie, rules))


def is_valid(vote: object, trie: Trie, rules: Rules) -> bool:
    """Say whether a vote is one that a client could cast after this trie.

    Args:
        vote: whatever came.
        trie: as it is before the round.
        rules: the public rules.
    """
    if not isinstance(vote, Prefix) or not isinstance(vote.symbols, tuple):
        return False
    known, size = trie.rounds * rules.unit, len(vote.symbols)
    if not 0 < size <= rules.longest or Prefix(vote.symbols[:known]) not in trie.live:
        return False
    return known <= size < known + rules.unit if vote.ended else size == known + rules.unit


def grow(trie: Trie, votes: Mapping[Prefix, int], rules: Rules) -> Trie:
    """Return the trie with the prefixes that got at least theta votes.

    Args:
        trie: as it is before the round.
        votes: what `count_votes` returned, or the sum of several of them.
        rules: the public rules.
    """
    return trie.grown(frozenset(prefix for prefix, count in votes.items() if count >= rules.theta))


def is_over(trie: Trie, rules: Rules) -> bool:
    """Say whether there is nothing left to grow, or no round left: a function of what is public."""
    return trie.rounds >= rules.rounds or not trie.live
