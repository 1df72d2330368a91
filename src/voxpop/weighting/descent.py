"""Weightings that stop spending on items already won: l1-descent and l2-descent, each sound with one noise only."""

from math import isqrt, sqrt
from typing import final

import numpy as np

from voxpop.arrays import Int32s, Int64s
from voxpop.privacy.unique_items import UniqueItems
from voxpop.weighting.rule import ROUNDING, RuleSetting, WeightingRule


@final
class L1Descent(WeightingRule):
    """A user raises its items together, those at the cutoff standing still (DPSU, Algorithm 4).

    Proof: docs/privacy/set-union.md. With Gaussian noise (DPSU, Algorithm 8) the published proof is wrong and one user
    can move the histogram by more than 1; docs/privacy/algorithm-8.md has two users who do.
    """

    __slots__ = ()
    name = "l1-descent"
    sound_norms = (1,)
    unsound = (
        "it is not private at the epsilon that its paper claims (DPSU, Algorithm 8): two users already move the "
        "histogram by 1.046 instead of 1, more users by over 7; docs/privacy/algorithm-8.md works it out"
    )
    sequential = True
    refused_for_grams = "its proof is for Laplace noise, and the lengths share a Gaussian budget"

    def novelty(self, setting: RuleSetting) -> UniqueItems:
        """Novel items of a user all weigh the level poured, at least an even share of `limit`."""
        # Items at 0 have the widest gaps of all, so the level poured is at least an even share.
        least = (setting.unit // setting.limit) / setting.unit
        return UniqueItems(setting.limit, "symmetric", least, setting.norm)

    def step_error(self, setting: RuleSetting) -> float:
        """Whole levels leave less than one unit per item unpoured."""
        # l1: less than a unit for each of at most `limit` items.
        return setting.limit / setting.unit

    def add(self, histogram: Int64s, items: Int32s, starts: Int64s, setting: RuleSetting) -> None:
        """Pour each user's unit evenly over the items below the cutoff."""
        from voxpop.kernels.weigh import l1_descent

        l1_descent(histogram, items, starts, setting.cutoff, setting.unit)


@final
class L2Descent(WeightingRule):
    """A user moves its items towards the cutoff by an l2 distance of 1 (DPSU, Algorithm 7).

    Proof: docs/privacy/set-union.md: the step is a proximal map, so it brings no two histograms further apart.
    """

    __slots__ = ()
    name = "l2-descent"
    sound_norms = (2,)
    unsound = (
        "nothing bounds how far one user moves its histogram in l1, the distance that Laplace noise hides; its "
        "proof is about l2"
    )
    sequential = True

    def novelty(self, setting: RuleSetting) -> UniqueItems:
        """Novel items have the widest gap of the user's items, so at least an even share of `limit`."""
        # 1 / sqrt(limit), the share of the widest of `limit` gaps at least, less what the step may miss.
        root = isqrt(setting.unit * setting.unit // setting.limit)
        least = root / setting.unit - self.step_error(setting)
        return UniqueItems(setting.limit, "symmetric", least, setting.norm)

    def step_error(self, setting: RuleSetting) -> float:
        """One user's step in float64, rounded down to the grid; the first grows with the step, the second does not."""
        # 8 * 2^-53 r + sqrt(limit) 2^-bits (docs/privacy/individual.md, "Steps"; r is 1 in set union).
        return setting.reach * ROUNDING + sqrt(setting.limit) / setting.unit

    def add(self, histogram: Int64s, items: Int32s, starts: Int64s, setting: RuleSetting) -> None:
        """Move each user's items towards the cutoff by 1."""
        from voxpop.kernels.weigh import ONE_REACH

        # One entry stands for all users: everybody's reach is 1.
        self.add_within(histogram, items, starts, setting, np.array([ONE_REACH]))

    def add_within(
        self, histogram: Int64s, items: Int32s, starts: Int64s, setting: RuleSetting, reaches: Int64s
    ) -> None:
        """Move each user's items towards the cutoff by the user's own reach: a proximal map whatever it is."""
        from voxpop.kernels.weigh import l2_descent

        l2_descent(histogram, items, starts, setting.cutoff, setting.unit, reaches)
