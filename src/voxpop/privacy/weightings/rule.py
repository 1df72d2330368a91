"""The interface of weightings: soundness, the least and largest weights of one user, and the kernel.

A weighting of your own defines how a user shares its weight, and states the properties that you have proved.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, inf, log2, sqrt
from numbers import Real
from typing import Any, ClassVar, Final, final

import numpy as np

from voxpop.errors import BudgetError, InputError, InternalError, UnsoundError
from voxpop.kernels.arrays import Floats, Int32s, Int64s
from voxpop.kernels.proved import proved
from voxpop.privacy.budget import check_choice
from voxpop.privacy.gaussian import NORMS, Noise, UniqueItems

USERS_BOUND: Final = 2**33
"""A public bound on the number of users: more than there are people."""

ADDITIVE_BITS: Final = 32
EQUAL: Final = 2.0**-48
"""Shares that differ by no more are equal: functions of NumPy may round equal arguments differently. That changes delta
by less than 1e-11 of itself, which `joint.ROUNDING` covers."""
WEIGHT_ROUNDING: Final = 8 * 2.0**-53
"""Relative float64 error of one user's l2 step; derived in `kernels/weigh.py` and docs/privacy/set-union.md."""

USUAL_ALPHA: Final[dict[str, float]] = {"gaussian": 5.0, "laplace": 14.0}
"""Distance above the threshold at which weight stops rising, in noise scales. The probability that an item at the
cutoff is missed is 2.9e-7 and 4.2e-7; with 3 it was 1 in 740."""


@dataclass(frozen=True, slots=True)
class RuleSetting:
    """The public numbers under which a weighting runs.

    Attributes:
        limit: most items of one user.
        norm: 1 where the noise is Laplace, 2 where it is Gaussian: the norm in which a user has weight 1.
        bits: weights are whole multiples of 2^-bits.
        cutoff: weight at which items stop rising, in units of 2^-bits; 0 where the weighting has none.
        bound: largest change of the histogram by one user: 1, or more if users have individual sensitivities.
    """

    limit: int
    norm: int
    bits: int = ADDITIVE_BITS
    cutoff: int = 0
    bound: int = 1

    @property
    def unit(self) -> int:
        """Units of the grid in a weight of 1."""
        # In units of 2^-bits, 1 is 2^bits.
        return int(1 << self.bits)

    @property
    def cutoff_weight(self) -> float | None:
        """Weight at which items stop rising, or None where nothing stops them."""
        # From units to weight; 0 stands for no cutoff.
        return self.cutoff / self.unit if self.cutoff else None


class WeightingRule(ABC):
    """How a user's unit of weight is shared over the user's items, with the properties that its proof needs."""

    __slots__ = ()
    name: ClassVar[str]
    """The word for the weighting in plans and reports."""
    noise: Noise
    """The noise that hides one user."""
    alpha: float | None = None
    """Weight stops rising at threshold + alpha * scale of the noise; None if the weighting has no cutoff."""
    sequential: ClassVar[bool] = False
    """Whether a user's shares depend on the weights that earlier users left."""
    sound_norms: ClassVar[tuple[int, ...]]
    """The norms of noise with a proof: 1 for Laplace, 2 for Gaussian. No default: every class must define it."""
    unsound: ClassVar[str] = "nobody has proved it"
    """Why there is no proof under others."""

    @property
    def norm(self) -> int:
        """The norm in which a user has weight 1."""
        return NORMS[self.noise]

    @property
    def label(self) -> str:
        """The name in the registry; it contains the noise where the weighting also has a proof for Gaussian noise."""
        return f"{self.name}-laplace" if self.norm == 1 and len(self.sound_norms) > 1 else self.name

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""
        return {"weighting": self.name, "noise": self.noise, **({} if self.alpha is None else {"alpha": self.alpha})}

    @abstractmethod
    def novelty(self, setting: RuleSetting) -> UniqueItems:
        """Return the possible weights of items that only one user holds."""

    def share(self, held: int, setting: RuleSetting) -> float:
        """Return the weight that each of `held` equally rare items gets from one user: an even share, as a rule."""
        return even_share(held, setting.norm)

    def largest(self, setting: RuleSetting) -> float:
        """Bound the weight that one user gives one item: by default all of its weight."""
        return 1.0 + self.step_error(setting)

    @abstractmethod
    def add(self, histogram: Int64s, items: Int32s, starts: Int64s, setting: RuleSetting) -> None:
        """Add bounded sets to the histogram in place, users in order."""

    def add_within(
        self, histogram: Int64s, items: Int32s, starts: Int64s, setting: RuleSetting, bounds: Int64s
    ) -> None:
        """Add bounded sets of users who move the histogram by at most their own bound, in steps of 2^-20."""
        raise InternalError(f"{self.name} weighting has no proof for users with unequal bounds")

    def bits(self, cutoff: float) -> int:
        """Return the grid for weights up to `cutoff`."""
        return bits_below(cutoff) if self.sequential else ADDITIVE_BITS

    @proved("set-union.md#what-integers-and-doubles-change")
    def sensitivity(self, setting: RuleSetting) -> float:
        """Bound the change of the histogram by a user with bound 1, including the rounding of users with any bound.

        Proof: "So the sensitivity used is S = 1 + 2  2^33  (that error)"
        """
        # Two runs, each astray by step_error at every later user: docs/privacy/set-union.md, "What integers and doubles
        # change".
        return 1.0 + 2.0 * USERS_BOUND * self.step_error(setting)

    def step_error(self, setting: RuleSetting) -> float:
        """Bound the distance of one user's implemented step from the exact one, in the norm of the noise."""
        return 0.0


@dataclass(frozen=True, slots=True)
class CalibratedRule:
    """A weighting with its setting, which a corpus uses to weigh."""

    weighting_rule: WeightingRule
    setting: RuleSetting

    def __post_init__(self) -> None:
        """Refuse a norm for which the weighting has no proof."""
        if self.setting.norm not in self.weighting_rule.sound_norms:
            (noise,) = (noise for noise, norm in NORMS.items() if norm == self.setting.norm)
            raise UnsoundError(
                f"{self.weighting_rule.name} weighting with {noise} noise is refused: {self.weighting_rule.unsound}. "
                "Use an object of vp.weightings: each has only noise for which there is a proof."
            )

    @property
    def sequential(self) -> bool:
        """Whether a user's shares depend on the weights that earlier users left."""
        return self.weighting_rule.sequential

    @property
    def sensitivity(self) -> float:
        """The largest change of the histogram by one user, on this grid."""
        return self.weighting_rule.sensitivity(self.setting)

    @property
    def largest(self) -> float:
        """The largest weight that one user gives one item, on this grid."""
        return self.weighting_rule.largest(self.setting)

    @property
    def novelty(self) -> UniqueItems:
        """The possible weights of items that only one user holds, on this grid."""
        return self.weighting_rule.novelty(self.setting)

    def add(self, histogram: Int64s, items: Int32s, starts: Int64s, bounds: Int64s | None = None) -> None:
        """Add bounded sets to the histogram in place, each user by 1 or by its own bound, in 2^-20."""
        if bounds is None:
            self.weighting_rule.add(histogram, items, starts, self.setting)
        else:
            self.weighting_rule.add_within(histogram, items, starts, self.setting, bounds)


def bits_below(cutoff: float) -> int:
    """Return the finest grid on which twice the cutoff stays below 2^62 units.

    Raises:
        BudgetError: where not even whole numbers would do.
    """
    # 2 cutoff 2^bits <= 2^62: a weight and one user's step on top of it fit 63 bits.
    bits = 62 - max(1, ceil(log2(2.0 * cutoff))) if cutoff < inf else 0
    if bits < 1:
        raise BudgetError(
            f"weights would rise to {cutoff:.3g}, too high for integers: what rounding costs has grown into the noise. "
            "Lower the limit or `alpha`, or raise `epsilon`."
        )
    return bits


def even_share(held: int, norm: int) -> float:
    """Return the weight of each of `held` items that share 1 evenly in the norm."""
    # x with held x^p = 1, for p the norm.
    return 1.0 / held if norm == 1 else 1.0 / sqrt(held)


class Weighting(ABC):
    """How a user's unit of weight is shared over the user's items; subclass it for a weighting of your own.

    You promise, with a proof, that for every fixed order of users one user more or less moves the final histogram by at
    most 1 in the norm you name. `voxpop.testing.search_sensitivity` looks for a counterexample; finding none is not a
    proof. Voxpop checks on every call that shares are finite, not negative, within 1 in the norm, and that items
    without weight get equal shares of at least `least(limit)`.

    Attributes:
        norm: 1 for Laplace noise, 2 for Gaussian noise.
        error: largest distance, in the norm, of `share` from the proved function, through floating point; from 0 to
            below 1.

    Example:
        >>> import numpy as np
        >>> import voxpop as vp
        >>> class Half(vp.weightings.Weighting):
        ...     "Every user gives half of what it may."
        ...     norm = 2
        ...     def least(self, limit):
        ...         return 0.5 / np.sqrt(limit)
        ...     def share(self, weights, cutoff):
        ...         return np.full(len(weights), 0.5 / np.sqrt(len(weights)))
        >>> plan = vp.Items(max_items_per_user=10, weighting=Half()).plan(vp.Budget(3, 1e-6))
        >>> plan.threshold > 1
        True
    """

    norm: int = 2
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
        """Check the norm and the error, which enters the sensitivity."""
        check_choice("norm", self.weighting.norm, (1, 2))
        error = self.weighting.error
        if isinstance(error, bool) or not isinstance(error, Real) or not 0.0 <= error < 1.0:
            raise InputError(
                f"`error` of {self.name} must be a number from 0 to below 1, the distance from the proved function; "
                f"got {error!r}."
            )

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
        """Use the author's least weight; every call checks that novel items, which have no weight, get equal shares."""
        least = self.weighting.least(setting.limit)
        # More than an even share of `limit` items cannot be promised: limit such shares would exceed norm 1.
        if not 0.0 < least <= even_share(setting.limit, setting.norm) * (1 + WEIGHT_ROUNDING):
            raise InputError(
                f"`least({setting.limit})` of {self.name} must lie above 0 and at most an even share, got {least}."
            )
        return UniqueItems(setting.limit, "symmetric", least - self.step_error(setting), setting.norm)

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
        elif (novel := shares[weights == 0.0]).size and (novel.min() < least or np.ptp(novel) > EQUAL):
            broken = "equal shares of at least `least(limit)` for items without weight"
        if broken:
            raise InputError(f"`share` of {self.name} must return {broken}; it did not. Nothing was released.")
