"""The interface of weightings: soundness, the least and largest weights of one user, and the kernel."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import ceil, inf, log2, sqrt
from typing import Any, ClassVar, Final

from voxpop.errors import BudgetError, InternalError, UnsoundError
from voxpop.kernels.arrays import Int32s, Int64s
from voxpop.privacy.threshold import NORMS, Noise, UniqueItems

USERS_BOUND: Final = 2**33
"""A public bound on the number of users: more than there are people."""

ADDITIVE_BITS: Final = 32
ROUNDING: Final = 8 * 2.0**-53
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
        reach: largest change of the histogram by one user: 1, or more if users have individual sensitivities.
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
        self, histogram: Int64s, items: Int32s, starts: Int64s, setting: RuleSetting, reaches: Int64s
    ) -> None:
        """Add bounded sets of users who move the histogram by at most their own reach, in steps of 2^-20."""
        raise InternalError(f"{self.name} weighting has no proof for users of unequal reach; please report the call.")

    def bits(self, cutoff: float) -> int:
        """Return the grid for weights up to `cutoff`."""
        return bits_below(cutoff) if self.sequential else ADDITIVE_BITS

    def sensitivity(self, setting: RuleSetting) -> float:
        """Bound the change of the histogram by a user of reach 1, including the rounding of users of any reach."""
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
