"""Some of the candidates of a length: public."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from voxpop.arrays import Bools, Int64s

if TYPE_CHECKING:
    from voxpop.corpus.engine import Candidates

LOW = 2**32 - 1


@dataclass(frozen=True, slots=True, eq=False)
class Subset:
    """The pairs that a rule allows and some further ones, or all that it does not allow.

    Attributes:
        rule: which pairs of kept grams it allows.
        further: int64, rising, names of pairs that belong to it as well; None for those that the rule does not allow.
    """

    rule: "Candidates"
    further: Int64s | None

    def holds(self, names: Int64s) -> Bools:
        """Return which candidates belong to it, by their names."""
        allowed: Bools = self.rule.estimates[names & LOW] >= self.rule.need[names >> 32]
        if self.further is None:
            return ~allowed
        if self.further.size:
            place = np.minimum(self.further.searchsorted(names), self.further.size - 1)
            allowed |= self.further[place] == names
        return allowed
