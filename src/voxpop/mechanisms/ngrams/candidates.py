"""Public sets of n-grams: the released n-grams, and the exactly counted candidates of the next length.

A candidate is a pair (left gram, partner) from one group. The estimate of the partner must be at least the *need* of
the left gram, which is a minimum estimate. With both-side pruning, the partners are grams of the same length, and the
group is their overlap, which is the left gram without its first token and also the partner without its last token. With
single-side pruning, the partners are the released tokens, and there is only one group. The array `need` is computed
once, in integers. The membership test, the count and the list of candidates all compare estimates with this array, so
they cannot disagree.

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
"""The upper limit of estimates, so that (group, estimate) fits in 63 bits for up to `MOST_GROUPS` groups."""
MOST_GROUPS = (2**63 - 1) // (MOST_ESTIMATE + 2)
"""The maximum number of groups, slightly below 2^27."""
NO_ESTIMATE = MOST_ESTIMATE + 1
"""A need that no partner satisfies."""


@dataclass(frozen=True, slots=True, eq=False)
class Grams:
    """The grams of one length by rank. The rank of a gram is its position when grams are sorted by their tokens.

    Attributes:
        tokens: int32 (grams, length), the rank of each token among the released tokens.
        prefix: int32 (grams), the rank of each gram's prefix (the gram without its last token) among the grams that are
            one token shorter; 0 at length 1.
        suffix: int32 (grams), with both-side pruning, the rank of each gram's suffix (the gram without its first
            token); 0 at length 1.
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
        """Return the grams with these names, which have one more token.

        Args:
            names: int64, the names `left * 2^32 + partner`, in increasing order.
            single: Whether partners are tokens instead of grams of this length.
        """
        left, partner = (names >> 32).astype(np.int32), (names & _LOW).astype(np.int32)
        # With both-side pruning, the new token is the last token of the partner.
        last = partner if single else self.tokens[partner, -1]
        # Shape (grams, length + 1). Names increase, so rows are in the order of their tokens.
        return Grams(np.hstack([self.tokens[left], last[:, None]]), left, partner)

    @property
    def length(self) -> int:
        """The number of tokens in each gram."""
        return int(self.tokens.shape[1])

    def __len__(self) -> int:
        return len(self.tokens)


@dataclass(frozen=True)
class Pairs:
    """Left grams and partners, with the groups that determine which of them can be combined.

    Attributes:
        left_group: int64 (left grams), the group of each left gram.
        partner_group: int64 (partners), the group of each partner.
        estimates: int64 (partners), the estimates, from 0 to `MOST_ESTIMATE`.
        single: Whether partners are tokens.
    """

    left_group: Int64s
    partner_group: Int64s
    estimates: Int64s
    single: bool

    @cached_property
    def order(self) -> Int64s:
        """The partners, sorted by group and then by decreasing estimate."""
        return np.argsort(_key(self.partner_group, self.estimates), kind="stable")

    @cached_property
    def keys(self) -> Int64s:
        """The keys of the partners in increasing order, which is also the order of the array `order`."""
        return _key(self.partner_group, self.estimates)[self.order]

    @cached_property
    def begin(self) -> Int64s:
        """For each left gram, the position of its first partner in the array `order`."""
        return self.keys.searchsorted(_key(self.left_group, np.int64(MOST_ESTIMATE)), side="left")


@dataclass(frozen=True)
class Candidates:
    """A public set of pairs.

    Attributes:
        pairs: The left grams and their possible partners.
        need: int64 (left grams), the minimum estimate of a partner, from 0 to `NO_ESTIMATE`.
    """

    pairs: Pairs
    need: Int64s

    @staticmethod
    def all_valid(grams: Grams, tokens: int, *, single: bool) -> "Candidates":
        """Return all pairs that the pruning rule allows (DPNE, Section 2), without estimates.

        Args:
            grams: The released grams of one length.
            tokens: The number of released tokens.
            single: Whether to use single-side pruning instead of both-side pruning.
        """
        zeros = np.zeros(len(grams), np.int64)
        if single:
            partners = np.zeros(tokens, np.int64)
            return Candidates(Pairs(zeros, partners, partners, single=True), zeros)
        # a and b can be combined if a without its first token equals b without its last token. This overlap is their
        # group.
        groups = grams.suffix.astype(np.int64), grams.prefix.astype(np.int64)
        return Candidates(Pairs(*groups, zeros, single=False), zeros)

    @property
    def estimates(self) -> Int64s:
        """The estimates of the partners, which are compared with `need`."""
        return self.pairs.estimates

    @property
    def single(self) -> bool:
        """Whether partners are tokens."""
        return self.pairs.single

    @cached_property
    def _totals(self) -> Int64s:
        """The cumulative number of candidates up to and including each left gram."""
        # Shape (left grams,). Estimates decrease within a group, so the partners with sufficient estimates are the
        # first partners of the group.
        end = self.pairs.keys.searchsorted(_key(self.pairs.left_group, self.need), side="right")
        # Shape (left grams,), in integers. The last entry is the exact number of candidates.
        return np.cumsum(np.maximum(end - self.pairs.begin, 0))

    @property
    def count(self) -> int:
        """The exact number of candidates.

        If every need is 0, this is the number of left grams times the number of partners, summed over all overlaps.
        """
        return int(self._totals[-1]) if self._totals.size else 0

    def names(self, numbers: Int64s) -> Int64s:
        """Return the names of the candidates with these numbers (0 to count - 1). Each candidate has one number."""
        # A binary search in the totals finds the left gram of each number. The remainder is the position of the partner
        # among the partners of this left gram.
        left = self._totals.searchsorted(numbers, side="right")
        before = np.where(left > 0, self._totals[left - 1], 0)
        partner = self.pairs.order[self.pairs.begin[left] + numbers - before]
        return np.asarray((left.astype(np.int64) << 32) | partner, np.int64)


def _key(group: Int64s, estimate: Int64s | np.int64) -> Int64s:
    """Return keys that increase with the group, and that decrease with the estimate within a group.

    Raises:
        InputError: There are too many groups for keys of 63 bits. If keys overflowed, their order and the set of
            candidates would be wrong.
    """
    if group.size and int(group.max()) >= MOST_GROUPS:
        raise InputError(
            f"grams of one length may overlap in at most {MOST_GROUPS:,} ways, and more were released. Lower "
            "`max_spurious_share` or the budget."
        )
    # group < 2^27 and estimate <= 2^36, so the key is below 2^63.
    return np.asarray(group * (MOST_ESTIMATE + 2) + (MOST_ESTIMATE - estimate), np.int64)


@dataclass(frozen=True, slots=True)
class Joined:
    """The likely candidates of a vote, and further candidates that passed a screening vote.

    Attributes:
        likely: The candidates with a high forecast.
        further: int64, the names of the other candidates, in increasing order.
        band: int64, the number of cutpoints above the first cutpoint that each further candidate reached.
        sigma: The noise scale of the screening vote.
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
        """Return the names of the candidates with these numbers. The likely candidates have the lowest numbers."""
        first = self.likely.count
        mine = numbers < first
        return np.concatenate([self.likely.names(numbers[mine]), self.further[numbers[~mine] - first]])

    @property
    def subset(self) -> Subset:
        """Return these candidates as a subset of the valid candidates."""
        return Subset(self.likely, self.further)


@dataclass(frozen=True)
class Bands:
    """A partition of candidates by likelihood. The bands of the forecast precede the bands of the screening vote.

    Attributes:
        sets: Nested sets of candidates, from the set of all candidates to the set with the highest forecasts.
        joined: The candidates, including those that passed the screening vote, or None without a screening vote.
        further_bands: The number of bands of the candidates that passed the screening vote.
    """

    sets: tuple[Candidates, ...]
    joined: Joined | None = None
    further_bands: int = 0

    @property
    def sizes(self) -> Int64s:
        """The number of candidates in each band, as int64 (bands)."""
        counts = np.array([each.count for each in self.sets], np.int64)
        # The sets are nested, so each band contains the candidates of one set that are not in the next set.
        sizes = np.asarray(counts - np.append(counts[1:], 0))
        if self.joined is None:
            return sizes
        return np.append(sizes, np.bincount(self.joined.band, minlength=self.further_bands))

    def of_names(self, names: Int64s) -> Int64s:
        """Return the bands of the candidates with these names."""
        left, partner = names >> 32, names & _LOW
        band = np.zeros(names.size, np.int64)
        for each in self.sets[1:]:
            # The same comparison decides membership in a set, so each candidate is in exactly one band.
            band += each.estimates[partner] >= each.need[left]
        if self.joined is not None and self.joined.further.size:
            further = self.joined.further
            place = np.minimum(further.searchsorted(names), further.size - 1)
            mine = further[place] == names
            band[mine] = len(self.sets) + self.joined.band[place[mine]]
        return band


@dataclass(frozen=True, slots=True)
class Deferred:
    """The candidates of one length that nearly reached their threshold.

    Attributes:
        names: int64, the names of the candidates at that length, in increasing order.
        piece: int64, the number of each candidate's piece. The candidates of a piece are at similar distances from the
            threshold.
        tokens: int32 (names, length), the ranks of their tokens.
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
    """The deferred candidates of all lengths from 2 on, in one list. The number of a candidate is also its name."""

    lengths: tuple[Deferred, ...]

    @cached_property
    def starts(self) -> Int64s:
        """The number of the first candidate of each length, as int64 (lengths + 1)."""
        return np.cumsum([0, *(each.names.size for each in self.lengths)])

    @property
    def count(self) -> int:
        """Return the number of candidates."""
        return int(self.starts[-1])

    def names(self, numbers: Int64s) -> Int64s:
        """Return the names of the candidates with these numbers."""
        return numbers

    @cached_property
    def _piece(self) -> Int64s:
        before = np.cumsum([0, *(each.pieces for each in self.lengths)])
        pieces = (each.piece + start for each, start in zip(self.lengths, before, strict=False))
        return np.concatenate([np.empty(0, np.int64), *pieces])

    @cached_property
    def sizes(self) -> Int64s:
        """The number of candidates in each piece, as int64 (pieces)."""
        return np.bincount(self._piece)

    def of_names(self, names: Int64s) -> Int64s:
        """Return the piece of each candidate."""
        return self._piece[names]

    def lengths_of(self, by_piece: Sequence[float]) -> tuple[float, ...]:
        """For each length, return the sum of the given numbers over its pieces."""
        cuts = np.cumsum([each.pieces for each in self.lengths])[:-1]
        return tuple(float(each.sum()) for each in np.split(np.array(by_piece, np.float64), cuts))

    def joined(self, released: Sequence[Grams], selected: Int64s) -> tuple[tuple[Grams, ...], tuple[int, ...]]:
        """Return the grams of each length, including the selected grams, and the number added at each length from 2 on.

        The grams remain in the order of their tokens, but the ranks of their prefixes and suffixes are lost.
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
"""A public set of candidates. Each candidate has one number and one name."""
Grouped = Bands | DeferredList
"""A public partition of candidates."""
