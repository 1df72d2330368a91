"""What every weighting answers: is it sound, how little and how much can one user weigh, and the kernel itself."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import ceil, inf, log2, sqrt
from typing import Final

from voxpop.arrays import Int32s, Int64s
from voxpop.errors import BudgetError, InternalError
from voxpop.privacy.unique_items import UniqueItems

USERS_BOUND: Final = 2**33
"""A public bound on the number of users: more than there are people."""

ADDITIVE_BITS: Final = 32
ROUNDING: Final = 8 * 2.0**-53
"""Relative float64 error of one user's l2 step; derived in `kernels/weigh.py` and docs/privacy/set-union.md."""


@dataclass(frozen=True, slots=True)
class RuleSetting:
    """The public numbers under which a weighting runs.

    Attributes:
        limit: most items of one user.
        norm: 1 where the noise is Laplace, 2 where it is Gaussian: the norm in which a user has weight 1.
        bits: weights are whole multiples of 2^-bits.
        cutoff: weight at which items stop rising, in units of 2^-bits; 0 where the weighting has none.
        reach: the most by which one user may move the histogram: 1, or more where users have reaches of their own.
    """

    limit: int
    norm: int
    bits: int = ADDITIVE_BITS
    cutoff: int = 0
    reach: int = 1

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
    """How a user's unit of weight is shared over the user's items, with what its proof needs."""

    __slots__ = ()
    sequential: bool = False
    """Whether a user's shares depend on the weights that earlier users left."""
    sound_norms: tuple[int, ...]
    """Under noise of which norms there is a proof: 1 for Laplace, 2 for Gaussian. No default: every class must say."""
    unsound: str = "nobody has proved it"
    """Why not under others."""
    refused_for_grams: str | None = None
    """Why n-grams cannot use it; None where they can."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The word for it, as in `SetUnion(weighting=...)`."""

    def refusal(self, norm: int) -> str | None:
        """Say why there is no guarantee under noise of this norm, or None where there is a proof."""
        return None if norm in self.sound_norms else self.unsound

    @abstractmethod
    def novelty(self, setting: RuleSetting) -> UniqueItems:
        """Return which weights items can have that one user alone holds."""

    def share(self, held: int, setting: RuleSetting) -> float:
        """Return the weight that each of `held` equally rare items gets from one user: an even share, as a rule."""
        return even_share(held, setting.norm)

    def largest(self, setting: RuleSetting) -> float:
        """Bound what one user gives one item: all of its weight, but where a rule says otherwise."""
        return 1.0 + self.step_error(setting)

    @abstractmethod
    def add(self, histogram: Int64s, items: Int32s, starts: Int64s, setting: RuleSetting) -> None:
        """Add bounded sets to the histogram in place, users in order."""

    def add_within(
        self, histogram: Int64s, items: Int32s, starts: Int64s, setting: RuleSetting, reaches: Int64s
    ) -> None:
        """Add bounded sets of users who move the histogram by at most their own reach, in steps of 2^-20."""
        raise InternalError(f"{self.name} weighting has no proof for users of unequal reach; please report the call.")

    def bits(self, cutoff: float) -> int:
        """Return the grid for weights up to `cutoff`."""
        return bits_below(cutoff) if self.sequential else ADDITIVE_BITS

    def sensitivity(self, setting: RuleSetting) -> float:
        """Bound how far a user of reach 1 moves the histogram, rounding of all users included, whatever their reach."""
        # Two runs, each astray by step_error at every later user: docs/privacy/set-union.md, "What integers and doubles
        # change".
        return 1.0 + 2.0 * USERS_BOUND * self.step_error(setting)

    def step_error(self, setting: RuleSetting) -> float:
        """Bound how far one user's implemented step lies from the exact one, in the norm of the noise."""
        return 0.0


@dataclass(frozen=True, slots=True)
class CalibratedRule:
    """A weighting with its setting: what a corpus weighs with."""

    weighting_rule: WeightingRule
    setting: RuleSetting

    @property
    def sequential(self) -> bool:
        """Whether a user's shares depend on the weights that earlier users left."""
        return self.weighting_rule.sequential

    @property
    def sensitivity(self) -> float:
        """How far one user moves the histogram at most, on this grid."""
        return self.weighting_rule.sensitivity(self.setting)

    @property
    def largest(self) -> float:
        """What one user gives one item at most, on this grid."""
        return self.weighting_rule.largest(self.setting)

    @property
    def novelty(self) -> UniqueItems:
        """Which weights items can have that one user alone holds, on this grid."""
        return self.weighting_rule.novelty(self.setting)

    def add(self, histogram: Int64s, items: Int32s, starts: Int64s, reaches: Int64s | None = None) -> None:
        """Add bounded sets to the histogram in place, each user by 1 or by its own reach, in 2^-20."""
        if reaches is None:
            self.weighting_rule.add(histogram, items, starts, self.setting)
        else:
            self.weighting_rule.add_within(histogram, items, starts, self.setting, reaches)


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
