"""Public sets of n-grams: the released ones, and the candidates of the next length, counted exactly.

A candidate is a pair (left gram, partner) of the same group whose partner has at least the estimate that the left gram
needs. Under both-side pruning the partners are grams of the same length, and the group is their overlap: the left gram
without its first token and the partner without its last token. Under single-side pruning the partners are the released
tokens, and there is one group. `need` is computed once, in whole numbers. The test of membership, the count and the
list all compare with it, so they cannot disagree.

A candidate has a number from 0 to count - 1 and a name, `left * 2^32 + partner`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from voxpop.engine.data import Subset
from voxpop.errors import InputError
from voxpop.kernels.arrays import Int32s, Int64s

_LOW = np.int64(2**32 - 1)
MOST_ESTIMATE = 2**36
"""Estimates are capped here, so that (group, estimate) fits into 63 bits for up to `MOST_GROUPS`."""
MOST_GROUPS = (2**63 - 1) // (MOST_ESTIMATE + 2)
"""A little below 2^27."""
NO_ESTIMATE = MOST_ESTIMATE + 1
"""A need that no partner meets."""


@dataclass(frozen=True, slots=True, eq=False)
class Grams:
    """Grams by rank; a rank is the place in the order of their tokens.

    Attributes:
        tokens: int32 (grams, length), ranks of the tokens among the released ones.
        prefix: int32 (grams), rank of the gram without its last token among those one shorter; 0 at length 1.
        suffix: int32 (grams), rank of the gram without its first token, under both-side pruning; 0 at length 1.
    """

    tokens: Int32s
    prefix: Int32s
    suffix: Int32s

    @staticmethod
    def of_tokens(count: int) -> "Grams":
        """Return the grams of length 1."""
        none = np.zeros(count, np.int32)
        return Grams(np.arange(count, dtype=np.int32)[:, None], none, none)

    def longer(self, names: Int64s, *, single: bool) -> "Grams":
        """Return the grams one token longer.

        Args:
            names: int64, rising, `left * 2^32 + partner`.
            single: whether partners are tokens, rather than grams of this length.
        """
        left, partner = (names >> 32).astype(np.int32), (names & _LOW).astype(np.int32)
        # Both-side: the partner overlaps in all but its last token.
        last = partner if single else self.tokens[partner, -1]
        # (grams, length + 1); names rise, so rows are in order of their tokens.
        return Grams(np.hstack([self.tokens[left], last[:, None]]), left, partner)

    @property
    def length(self) -> int:
        """Tokens in each gram."""
        return int(self.tokens.shape[1])

    def __len__(self) -> int:
        return len(self.tokens)


@dataclass(frozen=True)
class Pairs:
    """Left grams, their partners, and who may meet whom.

    Attributes:
        left_group: int64 (left grams).
        partner_group: int64 (partners).
        estimates: int64 (partners), 0 to `MOST_ESTIMATE`.
        single: whether partners are tokens.
    """

    left_group: Int64s
    partner_group: Int64s
    estimates: Int64s
    single: bool

    @cached_property
    def order(self) -> Int64s:
        """Partners by group and falling estimate."""
        return np.argsort(_key(self.partner_group, self.estimates), kind="stable")

    @cached_property
    def keys(self) -> Int64s:
        """The rising keys of partners in that order."""
        return _key(self.partner_group, self.estimates)[self.order]

    @cached_property
    def begin(self) -> Int64s:
        """Where the partners of each left gram begin in that order."""
        return self.keys.searchsorted(_key(self.left_group, np.int64(MOST_ESTIMATE)), side="left")


@dataclass(frozen=True)
class Candidates:
    """A public set of pairs.

    Attributes:
        pairs: who may meet whom.
        need: int64 (left grams), least estimate of a partner, 0 to `NO_ESTIMATE`.
    """

    pairs: Pairs
    need: Int64s

    @staticmethod
    def all_valid(grams: Grams, tokens: int, *, single: bool) -> "Candidates":
        """Return all pairs that the pruning rule allows (DPNE, Section 2), nothing estimated.

        Args:
            grams: the released grams of one length.
            tokens: the number of released tokens.
            single: single-side pruning instead of both-side.
        """
        zeros = np.zeros(len(grams), np.int64)
        if single:
            partners = np.zeros(tokens, np.int64)
            return Candidates(Pairs(zeros, partners, partners, single=True), zeros)
        # a and b meet where a without its first token is b without its last: both are named by that overlap.
        groups = grams.suffix.astype(np.int64), grams.prefix.astype(np.int64)
        return Candidates(Pairs(*groups, zeros, single=False), zeros)

    @property
    def estimates(self) -> Int64s:
        """Estimates of partners: what `need` is compared with."""
        return self.pairs.estimates

    @property
    def single(self) -> bool:
        """Whether partners are tokens."""
        return self.pairs.single

    @cached_property
    def _totals(self) -> Int64s:
        """The cumulative number of candidates up to and including each left gram."""
        # (left grams,): estimates decrease within a group, so the partners that reach the need come first.
        end = self.pairs.keys.searchsorted(_key(self.pairs.left_group, self.need), side="right")
        # (left grams,), whole numbers: N is its last entry, exactly.
        return np.cumsum(np.maximum(end - self.pairs.begin, 0))

    @property
    def count(self) -> int:
        """The exact number of candidates: without pruning, the sum over overlaps of left times right."""
        return int(self._totals[-1]) if self._totals.size else 0

    def names(self, numbers: Int64s) -> Int64s:
        """Return the names of candidates by number, from 0 to count - 1: each candidate has exactly one number."""
        # Number to pair: the left gram by bisection of the totals, then its place among the partners.
        left = self._totals.searchsorted(numbers, side="right")
        before = np.where(left > 0, self._totals[left - 1], 0)
        partner = self.pairs.order[self.pairs.begin[left] + numbers - before]
        return np.asarray((left.astype(np.int64) << 32) | partner, np.int64)


def _key(group: Int64s, estimate: Int64s | np.int64) -> Int64s:
    """Rise with the group, then fall with the estimate.

    Raises:
        InputError: where there are too many groups for 63 bits: a wrong order would be a wrong set of candidates.
    """
    if group.size and int(group.max()) >= MOST_GROUPS:
        raise InputError(
            f"grams of one length may overlap in at most {MOST_GROUPS:,} ways, and more were released. Lower "
            "`max_spurious_share` or the budget."
        )
    # group < 2^27 and estimate <= 2^36: below 2^63.
    return np.asarray(group * (MOST_ESTIMATE + 2) + (MOST_ESTIMATE - estimate), np.int64)


@dataclass(frozen=True, slots=True)
class Joined:
    """The likely candidates of a vote, and further candidates that passed a screening vote.

    Attributes:
        likely: the candidates with a high forecast.
        further: int64, rising, names of the other candidates.
        band: int64, from 0, number of cutpoints above the first that each of them reached.
        sigma: noise scale of the screening vote.
    """

    likely: Candidates
    further: Int64s
    band: Int64s
    sigma: float

    @property
    def count(self) -> int:
        """Return the number of candidates."""
        return self.likely.count + self.further.size

    def names(self, numbers: Int64s) -> Int64s:
        """Return the names of candidates by number: the likely ones have the first numbers."""
        first = self.likely.count
        mine = numbers < first
        return np.concatenate([self.likely.names(numbers[mine]), self.further[numbers[~mine] - first]])

    @property
    def subset(self) -> Subset:
        """Return which of the valid candidates they are."""
        return Subset(self.likely, self.further)


@dataclass(frozen=True)
class Bands:
    """A partition of candidates by likelihood: bands by forecast, then bands by screening vote.

    Attributes:
        sets: nested sets of candidates, from all of them to those with the highest forecasts.
        joined: the candidates with those that passed the screening vote; None without one.
        further_bands: number of bands of the candidates that passed.
    """

    sets: tuple[Candidates, ...]
    joined: Joined | None = None
    further_bands: int = 0

    @property
    def sizes(self) -> Int64s:
        """Return int64 (bands), the number of candidates in each band."""
        counts = np.array([each.count for each in self.sets], np.int64)
        # The sets are nested: a band is a set without the next one.
        sizes = np.asarray(counts - np.append(counts[1:], 0))
        if self.joined is None:
            return sizes
        return np.append(sizes, np.bincount(self.joined.band, minlength=self.further_bands))

    def of_names(self, names: Int64s) -> Int64s:
        """Return the band of each candidate, by its name."""
        left, partner = names >> 32, names & _LOW
        band = np.zeros(names.size, np.int64)
        for each in self.sets[1:]:
            # This is the predicate of membership, so each candidate is in exactly one band.
            band += each.estimates[partner] >= each.need[left]
        if self.joined is not None and self.joined.further.size:
            further = self.joined.further
            place = np.minimum(further.searchsorted(names), further.size - 1)
            mine = further[place] == names
            band[mine] = len(self.sets) + self.joined.band[place[mine]]
        return band


@dataclass(frozen=True, slots=True)
class Deferred:
    """Candidates of one length that nearly reached their threshold.

    Attributes:
        names: int64, rising, as candidates of that length.
        piece: int64, the piece of each, by how close it came.
        tokens: int32 (names, length), ranks of their tokens.
    """

    names: Int64s
    piece: Int64s
    tokens: Int32s

    @property
    def pieces(self) -> int:
        """Return the number of pieces."""
        return int(self.piece.max(initial=-1)) + 1


@dataclass(frozen=True)
class DeferredList:
    """The deferred candidates of all lengths from 2 on, in one list; their numbers are their names."""

    lengths: tuple[Deferred, ...]

    @cached_property
    def starts(self) -> Int64s:
        """Return int64 (lengths + 1), where the candidates of each length begin."""
        return np.cumsum([0, *(each.names.size for each in self.lengths)])

    @property
    def count(self) -> int:
        """Return the number of candidates."""
        return int(self.starts[-1])

    def names(self, numbers: Int64s) -> Int64s:
        """Return the names of candidates by number."""
        return numbers

    @cached_property
    def _piece(self) -> Int64s:
        before = np.cumsum([0, *(each.pieces for each in self.lengths)])
        pieces = (each.piece + start for each, start in zip(self.lengths, before, strict=False))
        return np.concatenate([np.empty(0, np.int64), *pieces])

    @cached_property
    def sizes(self) -> Int64s:
        """Return int64 (pieces), the number of candidates in each piece."""
        return np.bincount(self._piece)

    def of_names(self, names: Int64s) -> Int64s:
        """Return the piece of each candidate."""
        return self._piece[names]

    def lengths_of(self, by_piece: Sequence[float]) -> tuple[float, ...]:
        """Add up a number of each piece by length."""
        cuts = np.cumsum([each.pieces for each in self.lengths])[:-1]
        return tuple(float(each.sum()) for each in np.split(np.array(by_piece, np.float64), cuts))

    def joined(self, released: Sequence[Grams], selected: Int64s) -> tuple[tuple[Grams, ...], tuple[int, ...]]:
        """Return the released grams of each length with those selected here, and the number added from length 2 on.

        The grams stay in the order of their tokens; their prefixes and suffixes are not kept.
        """
        grams, added = list(released), []
        for number, each in enumerate(self.lengths):
            mine = selected[(selected >= self.starts[number]) & (selected < self.starts[number + 1])]
            added.append(mine.size)
            if mine.size:
                rows = each.tokens[mine - self.starts[number]]
                tokens = np.unique(np.concatenate([grams[number + 1].tokens, rows]), axis=0)
                none = np.zeros(len(tokens), np.int32)
                grams[number + 1] = Grams(tokens, none, none)
        return tuple(grams), tuple(added)


NumberedCandidates = Candidates | Joined | DeferredList
"""A public set of candidates: each has one number and one name."""
Grouped = Bands | DeferredList
"""A public partition of candidates."""
