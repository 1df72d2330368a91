"""Every round for hundreds of thousands of users at once: the rules of `client.py` and `server.py` on arrays.

Words are numbered in the order of their symbols, so words that share a prefix are neighbours: a prefix is a run of
words. A run for the first so many symbols begins where a word shares fewer with the one before.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from voxpop.arrays import Bools, Int32s, Int64s
from voxpop.hitters.alphabet import Spelling
from voxpop.hitters.electorate import Electorate
from voxpop.hitters.rules import Rules
from voxpop.progress import track

if TYPE_CHECKING:
    from voxpop.privacy.secret import Secret


@final
@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Round:
    """What happened in one round: private, but for the words that grew.

    Attributes:
        voters: int64, places of the users who voted, rising.
        votes: int32, the word whose prefix each of them named.
        cast: int64, how many votes each of them cast for it.
        grown: bool (words), whose prefix grew in this round.
        live: bool (words), of which of them more is to come.
    """

    voters: Int64s
    votes: Int32s
    cast: Int64s
    grown: Bools
    live: Bools


def simulate(spelling: Spelling, electorate: Electorate, rules: Rules, secret: "Secret") -> Int64s:
    """Run every round.

    Args:
        spelling: the words.
        electorate: the users.
        rules: the public rules.
        secret: of the run.

    Returns:
        Numbers of the words that grew up to their end mark, rising.
    """
    found = np.zeros(spelling.sizes.size, np.bool_)
    rounds = simulated_rounds(spelling, electorate, rules, secret)
    for each in track(rounds, "releasing", lambda _: 1, None, "rounds"):
        found |= each.grown & ~each.live
    return np.flatnonzero(found)


def simulated_rounds(spelling: Spelling, electorate: Electorate, rules: Rules, secret: "Secret") -> Iterator[Round]:
    """Yield what happens in each round, until nothing is left to grow or no round is left.

    Args:
        spelling: the words.
        electorate: the users.
        rules: the public rules.
        secret: of the run.
    """
    live = spelling.fits(rules).view(np.bool_)
    for rounds in range(rules.rounds):
        if rounds and not live.any():
            return
        # Places of those who are asked, and X for each of them, at least 1.
        users, cast = electorate.sampled(rounds, rules, secret)
        having, votes = electorate.choices(users, rounds, rules, secret)
        # Who votes for a dead prefix is silent: like `cast_vote`.
        heard = live[votes]
        voters, votes, cast = users[having][heard], votes[heard], cast[having][heard]
        size = rules.size(rounds + 1)
        grown = live & _popular(votes, cast, spelling.shared, size, rules.theta)
        # A word shorter than the prefixes of the round has ended; it grew for good.
        live = grown & (spelling.sizes >= size)
        yield Round(voters, votes, cast, grown, live)


def _popular(votes: Int32s, cast: Int64s, shared: Int32s, size: int, theta: int) -> Bools:
    """Say of each word whether its first `size` symbols, the end mark counted, got enough votes."""
    run = np.cumsum(shared < size) - 1  # the first word shares nothing, so runs count from 0
    counts = np.bincount(run[votes], cast, minlength=int(run[-1]) + 1 if run.size else 0)
    # (words,): every word of a run shares its prefix, so its votes.
    popular: Bools = (counts >= theta)[run]
    return popular
