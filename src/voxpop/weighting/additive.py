"""Weightings that ignore what other users hold: count and weighted."""

from math import isqrt
from typing import final

import numpy as np

from voxpop.arrays import Int32s, Int64s
from voxpop.privacy.unique_items import UniqueItems
from voxpop.weighting.rule import RuleSetting, WeightingRule, even_share


def floored_share(held: int, setting: RuleSetting) -> int:
    """Return `unit * held^(-1/norm)`, rounded down exactly, in units."""
    if setting.norm == 1:
        return setting.unit // held
    # floor(2^bits / sqrt(held)) by whole numbers: held shares have a norm of at most 1.
    return isqrt(setting.unit * setting.unit // held)


@final
class Count(WeightingRule):
    """Every item of every user gets the same weight, that of one of `limit` items (DPSU, Section 1.1)."""

    __slots__ = ()
    name = "count"
    sound_norms = (1, 2)
    refused_for_grams = (
        "one weight for all items wastes what a user with few of them may give, and every length pays for it"
    )

    def novelty(self, setting: RuleSetting) -> UniqueItems:
        """Novel items weigh what all items weigh."""
        least = floored_share(setting.limit, setting) / setting.unit
        return UniqueItems(setting.limit, "fixed", least, setting.norm)

    def share(self, held: int, setting: RuleSetting) -> float:
        """Return the fixed weight."""
        return even_share(setting.limit, setting.norm)

    def largest(self, setting: RuleSetting) -> float:
        """Every item gets the same."""
        return floored_share(setting.limit, setting) / setting.unit

    def add(self, histogram: Int64s, items: Int32s, starts: Int64s, setting: RuleSetting) -> None:
        """Add the fixed weight to every item."""
        from voxpop.kernels.weigh import add_even

        # (limit + 1,), units by number of items held: here the same for all.
        shares = np.full(setting.limit + 1, floored_share(setting.limit, setting), np.int64)
        add_even(histogram, items, starts, shares)


@final
class Weighted(WeightingRule):
    """A user shares its weight evenly over the items it holds (DPSU, Section 1.1)."""

    __slots__ = ()
    name = "weighted"
    sound_norms = (1, 2)

    def novelty(self, setting: RuleSetting) -> UniqueItems:
        """Novel items weigh an even share, rounded down."""
        least = floored_share(setting.limit, setting) / setting.unit
        return UniqueItems(setting.limit, "even", least, setting.norm)

    def add(self, histogram: Int64s, items: Int32s, starts: Int64s, setting: RuleSetting) -> None:
        """Add an even share to every item."""
        from voxpop.kernels.weigh import add_even

        add_even(histogram, items, starts, share_table(setting))

    def add_within(
        self, histogram: Int64s, items: Int32s, starts: Int64s, setting: RuleSetting, reaches: Int64s
    ) -> None:
        """Add the part of an even share that a user's reach is of 1: in whole numbers, so it is never more."""
        from voxpop.kernels.weigh import add_even_within

        add_even_within(histogram, items, starts, share_table(setting), reaches)


def share_table(setting: RuleSetting) -> Int64s:
    """Return the even share, in units, by the number of items held (0 to limit)."""
    return np.array([0, *(floored_share(held, setting) for held in range(1, setting.limit + 1))], np.int64)
