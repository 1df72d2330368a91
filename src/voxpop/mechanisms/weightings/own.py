"""Weightings of your own: define how a user shares its weight, and the properties that you have proved."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import final

import numpy as np

from voxpop.errors import InputError
from voxpop.kernels.arrays import Floats, Int32s, Int64s
from voxpop.mechanisms.weightings.rule import ROUNDING, USUAL_ALPHA, RuleSetting, WeightingRule, even_share
from voxpop.privacy.budget import check_choice
from voxpop.privacy.threshold import Noise, Shape, UniqueItems


class Weighting(ABC):
    """How a user's unit of weight is shared over the user's items; subclass it for a weighting of your own.

    You promise, with a proof, that for every fixed order of users one user more or less moves the final histogram by at
    most 1 in the norm you name. `voxpop.testing.search_sensitivity` looks for a counterexample; finding none is not a
    proof. Voxpop checks on every call that shares are finite, not negative, within 1 in the norm, and that an item
    without weight gets at least `least(limit)`.

    Attributes:
        norm: 1 for Laplace noise, 2 for Gaussian noise.
        symmetric: whether items of equal weight always get equal shares. Symmetric weightings have lower thresholds.
        error: largest distance, in the norm, of `share` from the proved function, through floating point.

    Example:
        >>> import numpy as np
        >>> import voxpop as vp
        >>> class Half(vp.weightings.Weighting):
        ...     "Every user gives half of what it may."
        ...     norm = 2
        ...     symmetric = True
        ...     def least(self, limit):
        ...         return 0.5 / np.sqrt(limit)
        ...     def share(self, weights, cutoff):
        ...         return np.full(len(weights), 0.5 / np.sqrt(len(weights)))
        >>> plan = vp.SetUnion(limit=10, weighting=Half()).plan(vp.Budget(3, 1e-6))
        >>> plan.threshold > 1
        True
    """

    norm: int = 2
    symmetric: bool = False
    error: float = 2.0**-45

    @abstractmethod
    def least(self, limit: int) -> float:
        """Return the least weight an item without weight may get from a user of at most `limit` items; above 0."""

    @abstractmethod
    def share(self, weights: Floats, cutoff: float) -> Floats:
        """Return the weight that a user adds to each of its items.

        Args:
            weights: float64 (items of the user), the current weights of the items; not to be changed.
            cutoff: weight above the threshold at which more weight is wasted: `threshold + alpha * scale`.

        Returns:
            float64 of the same length, not negative, at most 1 in the norm.
        """


@final
@dataclass(frozen=True, slots=True)
class CustomRule(WeightingRule):
    """A `Weighting` from outside, run user by user on the integer grid."""

    weighting: Weighting
    sequential = True

    def __post_init__(self) -> None:
        """Check the norm."""
        check_choice("norm", self.weighting.norm, (1, 2))

    @property
    def name(self) -> str:  # type: ignore[override]
        """The class name of the weighting."""
        return type(self.weighting).__name__

    @property
    def sound_norms(self) -> tuple[int, ...]:  # type: ignore[override]
        """The norm of the author's proof."""
        return (self.weighting.norm,)

    @property
    def noise(self) -> Noise:  # type: ignore[override]
        """The noise of that norm."""
        return "laplace" if self.weighting.norm == 1 else "gaussian"

    @property
    def alpha(self) -> float:  # type: ignore[override]
        """The usual alpha of the noise."""
        return USUAL_ALPHA[self.noise]

    def novelty(self, setting: RuleSetting) -> UniqueItems:
        """Use the author's least weight; unsymmetric weightings get the worst case."""
        least = self.weighting.least(setting.limit)
        # More than an even share of `limit` items cannot be promised: limit such shares would exceed norm 1.
        if not 0.0 < least <= even_share(setting.limit, setting.norm) * (1 + ROUNDING):
            raise InputError(
                f"`least({setting.limit})` of {self.name} must lie above 0 and at most an even share, got {least}."
            )
        # Without symmetry novel items may differ in weight, which costs a higher threshold.
        shape: Shape = "symmetric" if self.weighting.symmetric else "any"
        return UniqueItems(setting.limit, shape, least - self.step_error(setting), setting.norm)

    def share(self, held: int, setting: RuleSetting) -> float:
        """Return the shares of equally rare items."""
        # Equally rare: all at weight 0.
        return float(self.weighting.share(np.zeros(held), setting.cutoff / setting.unit)[0])

    def step_error(self, setting: RuleSetting) -> float:
        """The author's error, and rounding down to the grid."""
        # Rounding down loses less than a unit an item: in l1 their number, in l2 its root.
        grid = setting.limit if setting.norm == 1 else sqrt(setting.limit)
        return self.weighting.error + grid / setting.unit

    def add(self, histogram: Int64s, items: Int32s, starts: Int64s, setting: RuleSetting) -> None:
        """Run the weighting user by user, checking every answer."""
        cutoff = setting.cutoff / setting.unit
        least = self.weighting.least(setting.limit) - self.step_error(setting)
        for begin, end in pairwise(starts):
            if begin == end:
                continue
            mine = items[begin:end]
            weights = histogram[mine] / setting.unit
            shares = np.asarray(self.weighting.share(weights.copy(), cutoff), np.float64)
            self._check(shares, weights, least, setting.norm)
            # More is wasted, and would wrap where many hold an item; stopping brings no two histograms further apart.
            raised = histogram[mine] + np.floor(shares * setting.unit).astype(np.int64)
            histogram[mine] = np.minimum(raised, setting.cutoff)

    def _check(self, shares: Floats, weights: Floats, least: float, norm: int) -> None:
        """Refuse shares that break the promise; the message shows none of them."""
        broken = None
        if shares.shape != weights.shape:
            broken = "one share per item"
        elif not np.isfinite(shares).all() or (shares < 0).any():
            broken = "finite shares that are not negative"
        # Checked for each user; the author must prove the sensitivity of the whole histogram.
        elif np.linalg.norm(shares, norm) > 1.0 + self.weighting.error:
            broken = f"shares of at most 1 in the l{norm} norm"
        elif (shares[weights == 0.0] < least).any():
            broken = "at least `least(limit)` for an item without weight"
        if broken:
            raise InputError(f"`share` of {self.name} must return {broken}; it did not. Nothing was released.")
