"""Set-only accounting of set union: capped shares on a coarse grid, and a table of probabilities for each round."""

from math import floor, isqrt
from typing import TYPE_CHECKING, Final, final

import numpy as np
from numpy.typing import NDArray

from voxpop.errors import InternalError
from voxpop.privacy.budget import Budget
from voxpop.privacy.novelty import Novelty
from voxpop.privacy.set_only import plan_set_only, spent_delta, total_allowance
from voxpop.union.plan import RoundPlan, UnionPlan
from voxpop.union.planning import round_fractions
from voxpop.union.sharing import BoundShares, Integers, Setting, Sharing

if TYPE_CHECKING:
    from voxpop.union.set_union import SetUnion

CAP: Final = 0.5
"""A public choice for all data; benchmarks/results/set_only.md compares others on two collections."""
LEAST_UNITS: Final = 40
"""Units in the least weight, at least: rounding shares down costs an item less than one part in 40."""


@final
class CappedSharing(Sharing):
    """Even l2 shares of at most a cap: of the user's own number of items, or of the limit for everybody."""

    __slots__ = ("cap", "own")

    def __init__(self, cap: float, *, own: bool) -> None:
        self.cap = cap
        self.own = own

    @property
    def name(self) -> str:
        """The word for it."""
        return "weighted" if self.own else "count"

    def refusal(self, norm: int) -> str | None:
        """Sound in l2, under set-only accounting."""
        return None if norm == 2 else "set-only accounting is proved in l2 alone"

    def novelty(self, setting: Setting) -> Novelty:
        """Novel items weigh what all items of the user weigh."""
        return Novelty(setting.limit, "even", self._units(setting.limit, setting) / setting.unit, setting.norm)

    def share(self, held: int, setting: Setting) -> float:
        """Return the share, rounded down as it is when weighing."""
        return self._units(held, setting) / setting.unit

    def table(self, setting: Setting) -> Integers:
        """Return the share in units, by the number of items held; 0 comes first."""
        return np.array([0, *(self._units(held, setting) for held in range(1, setting.limit + 1))], np.int64)

    def add(self, histogram: Integers, items: NDArray[np.int32], starts: Integers, setting: Setting) -> None:
        """Add the share to every item."""
        from voxpop.kernels.weigh import add_even

        add_even(histogram, items, starts, self.table(setting))

    def _units(self, held: int, setting: Setting) -> int:
        sharing = held if self.own else setting.limit
        return min(isqrt(setting.unit * setting.unit // sharing), floor(self.cap * setting.unit))


def plan_union_set_only(union: "SetUnion", budget: Budget) -> UnionPlan:
    """Fill in the tables of a set union under set-only accounting; see `SetUnion.plan`."""
    sharing = CappedSharing(CAP if union.cap is None else union.cap, own=union.weighting == "weighted")
    bits = 1
    while sharing.table(Setting(union.limit_used, 2, bits))[-1] < LEAST_UNITS:
        bits += 1
    shares = BoundShares(sharing, Setting(union.limit_used, 2, bits))
    tables = plan_set_only(budget, sharing.table(shares.setting), round_fractions(union.rounds))
    delta = spent_delta(total_allowance(tables), budget.epsilon, union.limit_used, several=union.rounds > 1)
    if not delta <= budget.delta:
        raise InternalError("the plan's own numbers exceed the budget; please report the parameters of the call.")
    rounds = tuple(
        RoundPlan(shares, "set-only", 0.0, each.table.half / shares.setting.unit, set_only=each) for each in tables
    )
    return UnionPlan(union, budget, rounds, delta=delta)
