"""Which candidates of a length may be voted for, and some of them: public."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from voxpop.kernels.arrays import Bools, Int64s
from voxpop.kernels.pairs import belongs, table_of


class Candidates(Protocol):
    """Which pairs of kept grams may be voted for: public."""

    @property
    def need(self) -> Int64s:
        """By left gram, the least estimate of a partner; a pair is a candidate exactly where it is reached."""

    @property
    def estimates(self) -> Int64s:
        """By partner: a kept gram of the same length, or where `single` a kept token."""

    @property
    def single(self) -> bool:
        """Whether the partner is the token that follows, rather than the gram that starts one token later."""


@dataclass(frozen=True, slots=True, eq=False)
class Subset:
    """The pairs that a rule allows and some further ones, or all that it does not allow.

    Attributes:
        rule: which pairs of kept grams it allows.
        further: int64, rising, names of pairs that belong to it as well; None for those that the rule does not allow.
    """

    rule: Candidates
    further: Int64s | None

    def holds(self, names: Int64s) -> Bools:
        """Return which candidates belong to it, by their names."""
        table = table_of(np.empty(0, np.int64) if self.further is None else self.further)
        mine = belongs(names, self.rule.need, self.rule.estimates, table).view(np.bool_)
        # Without further names the rule does not allow them.
        return ~mine if self.further is None else mine
