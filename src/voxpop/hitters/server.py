"""The server: samples users, checks and counts votes, grows the trie. It never sees a word that is not on the trie.

How many votes a user casts in a round is drawn for it alone and stays secret: the guarantee follows from nothing but
these draws and the threshold.
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


def votes_cast(key: int, twin: int, rounds: int, rules: Rules, secret: "Secret") -> int:
    """Return how many votes a user casts in the round after so many: 0 if it is not asked.

    Args:
        key: of the user.
        twin: tells users of one key apart.
        rounds: how many rounds have gone by.
        rules: the public rules, with Bernoulli sampling.
        secret: of the run.

    Returns:
        At least so many with the probabilities of `rules.ballot` exactly, for ideal bits.
    """
    high, low = secret.draws(f"sample/round {rounds + 1}", np.array([key], np.uint64), twin)[0]
    # 128 bits; below bar x with exactly P(X >= x) rounded down to 2^-128.
    draw = int(high) << 64 | int(low)
    # Bars fall, so the number of bars above one draw has the law of X.
    return sum(draw < bar for bar in rules.bars)


def count_votes(votes: Iterable[tuple[Prefix, int] | None], trie: Trie, rules: Rules) -> Counter[Prefix]:
    """Count the votes that extend a live prefix, and ignore silence and everything else.

    Args:
        votes: of each user a prefix and how many votes for it, or None.
        trie: as it is before the round.
        rules: the public rules.
    """
    counts: Counter[Prefix] = Counter()
    for vote in votes:
        # A vote for what no honest device could name would grow a prefix that the proof knows nothing of.
        if vote is not None and is_valid(vote[0], trie, rules):
            counts[vote[0]] += vote[1]
    return counts


def is_valid(vote: object, trie: Trie, rules: Rules) -> bool:
    """Say whether a vote is one that a client could cast after this trie.

    Args:
        vote: whatever came.
        trie: as it is before the round.
        rules: the public rules.
    """
    if not isinstance(vote, Prefix) or not isinstance(vote.symbols, tuple):
        return False
    known, after, size = rules.size(trie.rounds), rules.size(trie.rounds + 1), len(vote.symbols)
    if not 0 < size <= rules.longest or Prefix(vote.symbols[:known]) not in trie.live:
        return False
    # An ended word may be shorter than the round's prefixes, an unfinished one has exactly their length.
    return known <= size < after if vote.ended else size == after


def grow(trie: Trie, votes: Mapping[Prefix, int], rules: Rules) -> Trie:
    """Return the trie with the prefixes that got at least theta votes.

    Args:
        trie: as it is before the round.
        votes: what `count_votes` returned, or the sum of several of them.
        rules: the public rules.
    """
    # No noise: what nobody holds gets no votes, and a user's own number of votes is secret.
    return trie.grown(frozenset(prefix for prefix, count in votes.items() if count >= rules.theta))


def is_over(trie: Trie, rules: Rules) -> bool:
    """Say whether there is nothing left to grow, or no round left: a function of what is public."""
    # A function of the public trie alone, so stopping early says nothing more.
    return trie.rounds >= rules.rounds or not trie.live
