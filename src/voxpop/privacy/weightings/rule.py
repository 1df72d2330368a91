"""The interface of weightings: their soundness, the smallest and largest weights from one user, and the kernel."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import ceil, inf, log2, sqrt
from typing import Any, ClassVar, Final

from voxpop.errors import BudgetError, InternalError
from voxpop.kernels.arrays import Int32s, Int64s
from voxpop.kernels.proved import proved
from voxpop.privacy.gaussian import NORMS, Noise, UniqueItems

USERS_BOUND: Final = 2**33
"""A public bound on the number of users, which exceeds the number of people on earth."""

ADDITIVE_BITS: Final = 32
WEIGHT_ROUNDING: Final = 8 * 2.0**-53
"""The relative float64 error of one user's l2 step, derived in `kernels/weigh.py` and docs/privacy/set-union.md."""

USUAL_ALPHA: Final[dict[str, float]] = {"gaussian": 5.0, "laplace": 14.0}
"""The distance from the threshold up to the cutoff, in noise scales. An item at the cutoff is missed with probability
2.9e-7 (Gaussian noise) or 4.2e-7 (Laplace noise), compared with 1 in 740 for Gaussian noise at a distance of 3.
"""


@dataclass(frozen=True, slots=True)
class RuleSetting:
    """The public parameters of a weighting.

    Attributes:
        limit: The maximum number of items per user.
        norm: The norm that bounds a user's weights by 1, either 1 (Laplace noise) or 2 (Gaussian noise).
        bits: The number of binary digits of weights after the point. Weights are multiples of 2^-bits.
        cutoff: The weight above which an item receives no more weight, in units of 2^-bits, or 0 if there is no cutoff.
        bound: The largest change of the histogram by one user; 1, or more if users have individual sensitivities.
    """

    limit: int
    norm: int
    bits: int = ADDITIVE_BITS
    cutoff: int = 0
    bound: int = 1

    @property
    def unit(self) -> int:
        """The number of units of the grid in a weight of 1."""
        # A weight of 1 is 2^bits units of 2^-bits.
        return int(1 << self.bits)

    @property
    def cutoff_weight(self) -> float | None:
        """The weight above which an item receives no more weight, or None if there is no cutoff."""
        # Convert units to weight. 0 means no cutoff.
        return self.cutoff / self.unit if self.cutoff else None


class WeightingRule(ABC):
    """A rule that divides a user's unit of weight among their items and has the properties that the proof requires."""

    __slots__ = ()
    name: ClassVar[str]
    """The name of the weighting in plans and reports."""
    noise: Noise
    """The kind of noise."""
    alpha: float | None = None
    """The distance from the threshold up to the cutoff, in noise scales, or None if there is no cutoff."""
    sequential: ClassVar[bool] = False
    """Whether a user's shares depend on the weights from earlier users."""
    sound_norms: ClassVar[tuple[int, ...]]
    """The norms that have a proof (1 for Laplace noise, 2 for Gaussian noise). Every class must define them.
    """

    @property
    def norm(self) -> int:
        """The norm that bounds a user's weights by 1."""
        return NORMS[self.noise]

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""
        return {"weighting": self.name, "noise": self.noise, **({} if self.alpha is None else {"alpha": self.alpha})}

    @abstractmethod
    def novelty(self, setting: RuleSetting) -> UniqueItems:
        """Return the possible weights of items that only one user has."""

    def share(self, held: int, setting: RuleSetting) -> float:
        """Return the weight that one user gives each of `held` equally rare items, by default an even share."""
        return even_share(held, setting.norm)

    def largest(self, setting: RuleSetting) -> float:
        """Return a bound on the weight that one user gives one item, by default all of the user's weight."""
        return 1.0 + self.step_error(setting)

    @abstractmethod
    def add(self, histogram: Int64s, items: Int32s, starts: Int64s, setting: RuleSetting) -> None:
        """Add bounded sets to the histogram in place, in the order of users."""

    def add_within(
        self, histogram: Int64s, items: Int32s, starts: Int64s, setting: RuleSetting, bounds: Int64s
    ) -> None:
        """Add bounded sets in place. Each user moves the histogram by at most their bound, given in steps of 2^-20."""
        raise InternalError(f"{self.name} weighting has no proof for users with unequal bounds")

    def bits(self, cutoff: float) -> int:
        """Return the number of binary digits after the point for weights up to `cutoff`."""
        return bits_below(cutoff) if self.sequential else ADDITIVE_BITS

    @proved("set-union.md#what-integers-and-doubles-change")
    def sensitivity(self, setting: RuleSetting) -> float:
        """Return the sensitivity of the histogram to a user with bound 1, including the rounding errors of all users.

        Proof: "So the sensitivity used is S = 1 + 2 2^33 (that error)"
        """
        # Each of the two runs, with and without the user, adds an error of at most `step_error` for every later user
        # (docs/privacy/set-union.md, "What integers and doubles change").
        return 1.0 + 2.0 * USERS_BOUND * self.step_error(setting)

    def step_error(self, setting: RuleSetting) -> float:
        """Return a bound on the distance of one user's step from the exact step, in the norm of the noise."""
        return 0.0


@dataclass(frozen=True, slots=True)
class CalibratedRule:
    """A weighting and its setting, for weighing the items of a corpus."""

    weighting_rule: WeightingRule
    setting: RuleSetting

    def __post_init__(self) -> None:
        """Raise an error if the weighting has no proof for the norm."""
        if self.setting.norm not in self.weighting_rule.sound_norms:
            raise InternalError(f"{self.weighting_rule.name} weighting has no proof in the norm {self.setting.norm}")

    @property
    def sequential(self) -> bool:
        """Whether a user's shares depend on the weights from earlier users."""
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
        """The possible weights of items that only one user has, on this grid."""
        return self.weighting_rule.novelty(self.setting)

    def add(self, histogram: Int64s, items: Int32s, starts: Int64s, bounds: Int64s | None = None) -> None:
        """Add bounded sets to the histogram in place, with a bound of 1 or individual bounds in steps of 2^-20."""
        if bounds is None:
            self.weighting_rule.add(histogram, items, starts, self.setting)
        else:
            self.weighting_rule.add_within(histogram, items, starts, self.setting, bounds)


@proved("set-union.md#what-integers-and-doubles-change")
def bits_below(cutoff: float) -> int:
    """Return the number of bits of the finest grid on which twice the cutoff is at most 2^62 units.

    Proof: "Weights of both descents are also integers, in units of 2^-bits with bits = 62 - ceil(log2(2 cutoff))."

    Raises:
        BudgetError: Not even integer weights are possible.
    """
    # Because 2 cutoff 2^bits <= 2^62, the sum of a weight and one user's step fits in 63 bits.
    bits = 62 - max(1, ceil(log2(2.0 * cutoff))) if cutoff < inf else 0
    if bits < 1:
        raise BudgetError(
            f"weights would rise to {cutoff:.3g}, too high for integers, because rounding increases the noise. "
            "Lower the limit or `alpha`, or raise `epsilon`."
        )
    return bits


def even_share(held: int, norm: int) -> float:
    """Return the weight of each of `held` items with equal weights and a norm of 1."""
    # This is the solution x of held x^p = 1 for the norm p.
    return 1.0 / held if norm == 1 else 1.0 / sqrt(held)
