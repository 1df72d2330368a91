"""All users of a corpus at once, in arrays: what each may vote for, and the draws that are its own."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from voxpop.arrays import Bools, Int32s, Int64s, Uint64s
from voxpop.hitters.alphabet import Spelling
from voxpop.hitters.rules import Rules
from voxpop.kernels.tries import hold_all, keep_most_frequent

if TYPE_CHECKING:
    from voxpop.privacy.secret import Secret

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


@final
@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Electorate:
    """What `client.py` holds for one user, for all of them: private.

    Attributes:
        keys: uint64 (users).
        twins: uint64 (users), how many users of the same key came before.
        held: int32, each user's words in order, as often as it holds them; where one counts, only that one.
        held_start: int64 (users + 1).
    """

    keys: Uint64s
    twins: Uint64s
    held: Int32s
    held_start: Int64s

    @staticmethod
    def of(spelling: Spelling, keys: Uint64s, rules: Rules) -> "Electorate":
        """Return the users of a corpus with the words that fit the rules.

        Args:
            spelling: the words of the corpus.
            keys: of the users.
            rules: the public rules.
        """
        held, held_start = np.empty(spelling.said.size, np.int32), np.empty(keys.size + 1, np.int64)
        # int32, each user's words in order of their symbols; `held` has room for every position.
        count = hold_all(spelling.said, spelling.user_start, spelling.fits(rules), held, held_start)
        if rules.words == "one":
            count = keep_most_frequent(held, held_start)
        return Electorate(keys, twins_of(keys), held[:count], held_start)

    def sampled(self, rounds: int, rules: Rules, secret: "Secret") -> tuple[Int64s, Int64s]:
        """Return the places of the users who are asked in the round after so many, and how many votes each casts.

        Args:
            rounds: how many rounds have gone by.
            rules: the public rules.
            secret: of the run.
        """
        # uint64 (users, 2), fresh in every round.
        draws = secret.draws(f"sample/round {rounds + 1}", self.keys, self.twins)
        if rules.sampling == "fixed":
            # The paper's batch; without a proof (docs/privacy/heavy-hitters.md has the counterexample).
            batch = int(rules.rate * self.keys.size)
            return np.sort(np.lexsort((draws[:, 1], draws[:, 0]))[:batch]), np.ones(batch, np.int64)
        return _votes(draws, rules.bars)

    def choices(self, users: Int64s, rounds: int, rules: Rules, secret: "Secret") -> tuple[Bools, Int32s]:
        """Return which of the users hold a word at all, and the word that each of these picks in the round.

        Args:
            users: places of users, rising.
            rounds: how many rounds have gone by.
            rules: the public rules.
            secret: of the run.
        """
        begin = self.held_start[users]
        # (users,), how many entries each has: words as often as they are held.
        total = self.held_start[users + 1] - begin
        having = total > 0
        users, begin, total = users[having], begin[having], total[having]
        if rules.words == "many":
            draws = secret.draws(f"word/round {rounds + 1}", self.keys[users], self.twins[users])[:, 0]
            # A user's words lie in order, each as often as it is held.
            begin = begin + _share_of(draws, total)
        return having, self.held[begin]


def _votes(draws: Uint64s, bars: tuple[int, ...]) -> tuple[Int64s, Int64s]:
    """Return who draws below the first bar, and below how many bars each of these draws."""
    asked = votes = np.empty(0, np.int64)
    some = np.arange(len(draws))
    for number, bar in enumerate(bars):
        # Bars fall, so whoever misses one misses the rest: few are looked at again.
        some = some[_below(draws[some], bar)]
        if number == 0:
            asked, votes = some, np.zeros(len(draws), np.int64)
        votes[some] += 1
        if some.size == 0:
            break
    return asked, votes[asked]


def _below(draws: Uint64s, bar: int) -> Bools:
    high, low = np.uint64(bar >> 64), np.uint64(bar & (2**64 - 1))
    # 128 bits compared as two halves.
    below: Bools = (draws[:, 0] < high) | ((draws[:, 0] == high) & (draws[:, 1] < low))
    return below


def twins_of(keys: Uint64s) -> Uint64s:
    """Return for each key how many equal keys come before it.

    Args:
        keys: uint64.
    """
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if keys.size else np.empty(0, np.bool_)
    places = np.arange(keys.size)
    twins = np.empty(keys.size, np.uint64)
    # Place in its run of equal keys: place less that of the run's first.
    twins[order] = (places - np.maximum.accumulate(np.where(first, places, 0))).astype(np.uint64)
    return twins


def _share_of(draws: Uint64s, total: Int64s) -> Int64s:
    """Return draw * total / 2^64 rounded down, for totals below 2^32: as the client computes it, without overflow."""
    whole = total.astype(np.uint64)
    # Long multiplication by halves: 2^32 times less than 2^32 stays below 2^64.
    low = ((draws & _LOW) * whole) >> _HALF
    return (((draws >> _HALF) * whole + low) >> _HALF).astype(np.int64)
