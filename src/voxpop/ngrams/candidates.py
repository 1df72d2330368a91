"""Which grams of the next length may be voted for: a public set, counted exactly and listed by number.

A candidate is a pair (left gram, partner) in the same group whose partner's estimate reaches what the left gram needs.
Under both-side pruning partners are grams of the same length, and the group is the overlap: what is left of the left
gram without its first token, and of the partner without its last. Under single-side pruning partners are the released
tokens, and there is one group. `need` is computed once, in whole numbers, and the test of membership, the count and the
list all compare with it, so they cannot disagree.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from voxpop.ngrams.grams import Grams

Int64s = NDArray[np.int64]

MOST_ESTIMATE = 2**36
"""Estimates are capped here, so that (group, estimate) fits into 63 bits for up to 2^26 groups."""
NOTHING = MOST_ESTIMATE + 1
"""A need that no partner meets."""


@dataclass(frozen=True)
class Candidates:
    """A public set of pairs.

    Attributes:
        need: int64 (left grams), least estimate of a partner, at most `NOTHING`.
        estimates: int64 (partners), 0 to `MOST_ESTIMATE`.
        left_group: int64 (left grams).
        partner_group: int64 (partners).
        single: whether partners are tokens.
    """

    need: Int64s
    estimates: Int64s
    left_group: Int64s
    partner_group: Int64s
    single: bool

    @staticmethod
    def all_valid(grams: Grams, tokens: int, *, single: bool) -> "Candidates":
        """Return all pairs that the pruning rule allows (DPNE, Section 2).

        Args:
            grams: the released grams of one length.
            tokens: how many tokens were released.
            single: single-side pruning instead of both-side.
        """
        need = np.zeros(len(grams), np.int64)
        if single:
            zeros = np.zeros(tokens, np.int64)
            return Candidates(need, zeros, need, zeros, single=True)
        groups = grams.suffix.astype(np.int64), grams.prefix.astype(np.int64)
        return Candidates(need, np.zeros(len(grams), np.int64), *groups, single=False)

    @cached_property
    def _ordered(self) -> tuple[Int64s, Int64s]:
        """Partners by group and falling estimate, and the key of each."""
        keys = _key(self.partner_group, self.estimates)
        order = np.argsort(keys, kind="stable")
        return order, keys[order]

    @cached_property
    def _spans(self) -> tuple[Int64s, Int64s]:
        """For each left gram, where its partners begin in the order, and how many candidates come up to its last."""
        keys = self._ordered[1]
        begin = np.searchsorted(keys, _key(self.left_group, np.full_like(self.need, MOST_ESTIMATE)), side="left")
        end = np.searchsorted(keys, _key(self.left_group, np.maximum(self.need, 0)), side="right")
        return begin, np.cumsum(np.maximum(end - begin, 0))

    @property
    def count(self) -> int:
        """How many candidates there are, exactly (theory: sum over overlaps of left times right)."""
        totals = self._spans[1]
        return int(totals[-1]) if totals.size else 0

    def names(self, numbers: Int64s) -> Int64s:
        """Return the names of candidates by number, from 0 to count - 1: each candidate has exactly one number."""
        begin, totals = self._spans
        left = np.searchsorted(totals, numbers, side="right")
        before = np.where(left > 0, totals[left - 1], 0)
        partner = self._ordered[0][begin[left] + numbers - before]
        return np.asarray((left.astype(np.int64) << 32) | partner, np.int64)


def _key(group: Int64s, estimate: Int64s) -> Int64s:
    """Rise with the group, then fall with the estimate."""
    return np.asarray(group * (MOST_ESTIMATE + 2) + (MOST_ESTIMATE - estimate), np.int64)
