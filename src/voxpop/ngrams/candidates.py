"""Which grams of the next length may be voted for: a public set, counted exactly and listed by number.

A candidate is a pair (left gram, partner) in the same group whose partner's estimate reaches what the left gram needs.
Under both-side pruning partners are grams of the same length, and the group is the overlap: what is left of the left
gram without its first token, and of the partner without its last. Under single-side pruning partners are the released
tokens, and there is one group. `need` is computed once, in whole numbers, and the test of membership, the count and the
list all compare with it, so they cannot disagree.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from voxpop.arrays import Int64s
from voxpop.errors import InputError
from voxpop.ngrams.grams import Grams

MOST_ESTIMATE = 2**36
"""Estimates are capped here, so that (group, estimate) fits into 63 bits for up to `MOST_GROUPS`."""
MOST_GROUPS = (2**63 - 1) // (MOST_ESTIMATE + 2)
"""A little below 2^27."""
NOTHING = MOST_ESTIMATE + 1
"""A need that no partner meets."""


class Numbered(Protocol):
    """A public set of candidates: each has one number and one name."""

    @property
    def count(self) -> int:
        """How many there are, exactly."""

    def names(self, numbers: Int64s) -> Int64s:
        """Return the names of candidates by number, from 0 to count - 1."""


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

    @staticmethod
    def valid(grams: Grams, tokens: int, *, single: bool) -> "Pairs":
        """Return the pairs that the pruning rule allows (DPNE, Section 2), nothing estimated.

        Args:
            grams: the released grams of one length.
            tokens: how many tokens were released.
            single: single-side pruning instead of both-side.
        """
        if single:
            zeros = np.zeros(tokens, np.int64)
            return Pairs(np.zeros(len(grams), np.int64), zeros, zeros, single=True)
        # a and b meet where a without its first token is b without its last: both are named by that overlap.
        groups = grams.suffix.astype(np.int64), grams.prefix.astype(np.int64)
        return Pairs(*groups, np.zeros(len(grams), np.int64), single=False)

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
        need: int64 (left grams), least estimate of a partner, 0 to `NOTHING`.
    """

    pairs: Pairs
    need: Int64s

    @staticmethod
    def all_valid(grams: Grams, tokens: int, *, single: bool) -> "Candidates":
        """Return all pairs that the pruning rule allows; see `Pairs.valid`."""
        return Candidates(Pairs.valid(grams, tokens, single=single), np.zeros(len(grams), np.int64))

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
        """How many candidates come up to each left gram, its own among them."""
        # (left grams,): within a group estimates fall, so the partners that reach the need stand first.
        end = self.pairs.keys.searchsorted(_key(self.pairs.left_group, self.need), side="right")
        # (left grams,), whole numbers: N is its last entry, exactly.
        return np.cumsum(np.maximum(end - self.pairs.begin, 0))

    @property
    def count(self) -> int:
        """How many candidates there are, exactly: the sum over overlaps of left times right where nothing is pruned."""
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
            f"grams of one length may overlap in at most {MOST_GROUPS:,} ways, and more were released. Lower `eta` or "
            'the budget, or use pruning="single".'
        )
    # group < 2^27 and estimate <= 2^36: below 2^63.
    return np.asarray(group * (MOST_ESTIMATE + 2) + (MOST_ESTIMATE - estimate), np.int64)
