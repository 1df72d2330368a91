"""Even shares of at most a cap, for set-only accounting."""

from math import floor, isqrt
from typing import final

import numpy as np

from voxpop.arrays import Int32s, Int64s
from voxpop.privacy.unique_items import UniqueItems
from voxpop.weighting.rule import RuleSetting, WeightingRule


@final
class CappedRule(WeightingRule):
    """Even l2 shares of at most a cap: of the user's own number of items, or of the limit for everybody."""

    __slots__ = ("cap", "own")
    sound_norms = (2,)
    unsound = "set-only accounting is proved in l2 alone"

    def __init__(self, cap: float, *, own: bool) -> None:
        self.cap = cap
        self.own = own

    @property
    def name(self) -> str:
        """The word for it."""
        return "weighted" if self.own else "count"

    def novelty(self, setting: RuleSetting) -> UniqueItems:
        """Novel items weigh what all items of the user weigh."""
        return UniqueItems(setting.limit, "even", self._units(setting.limit, setting) / setting.unit, setting.norm)

    def share(self, held: int, setting: RuleSetting) -> float:
        """Return the share, rounded down as it is when weighing."""
        return self._units(held, setting) / setting.unit

    def table(self, setting: RuleSetting) -> Int64s:
        """Return the share in units, by the number of items held; 0 comes first."""
        return np.array([0, *(self._units(held, setting) for held in range(1, setting.limit + 1))], np.int64)

    def add(self, histogram: Int64s, items: Int32s, starts: Int64s, setting: RuleSetting) -> None:
        """Add the share to every item."""
        from voxpop.kernels.weigh import add_even

        add_even(histogram, items, starts, self.table(setting))

    def _units(self, held: int, setting: RuleSetting) -> int:
        weighting_rule = held if self.own else setting.limit
        # min(1 / sqrt(n), cap) in units, rounded down: n shares have an l2 norm of at most 1
        # (docs/privacy/set-only.md).
        return min(isqrt(setting.unit * setting.unit // weighting_rule), floor(self.cap * setting.unit))
