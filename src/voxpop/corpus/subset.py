"""Some of the candidates of a length: public."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from voxpop.arrays import Bools, Int64s
from voxpop.kernels.pairs import belongs, table_of

if TYPE_CHECKING:
    from voxpop.corpus.engine import Candidates


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
        table = table_of(np.empty(0, np.int64) if self.further is None else self.further)
        mine = belongs(names, self.rule.need, self.rule.estimates, table).view(np.bool_)
        # Without further names it is what the rule does not allow.
        return ~mine if self.further is None else mine
