"""The interface of weightings, with soundness, the smallest and largest weights from one user, and the kernel.

A custom weighting defines the division of a user's weight, and declares the properties that its author has proved.
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
"""A public bound on the number of users, which exceeds the number of people."""

ADDITIVE_BITS: Final = 32
EQUAL: Final = 2.0**-48
"""The maximum difference of shares that count as equal, because functions of NumPy may round equal arguments
differently. The relative change of delta is below 1e-11, which `joint.ROUNDING` covers."""
WEIGHT_ROUNDING: Final = 8 * 2.0**-53
"""The relative float64 error of one user's l2 step, derived in `kernels/weigh.py` and docs/privacy/set-union.md."""

USUAL_ALPHA: Final[dict[str, float]] = {"gaussian": 5.0, "laplace": 14.0}
"""The distance of the cutoff above the threshold, in noise scales. The probability that an item at the cutoff is missed
is 2.9e-7 and 4.2e-7, compared to 1 in 740 with a distance of 3."""


@dataclass(frozen=True, slots=True)
class RuleSetting:
    """The public parameters of a weighting.

    Attributes:
        limit: The maximum number of items per user.
        norm: The norm that bounds the weight of a user by 1, either 1 (Laplace noise) or 2 (Gaussian noise).
        bits: The grid of weights, which are multiples of 2^-bits.
        cutoff: The weight above which an item receives no more weight, in units of 2^-bits, or 0 without a cutoff.
        bound: The largest change of the histogram by one user, which is 1, or more if users have individual
            sensitivities.
    """

    limit: int
    norm: int
    bits: int = ADDITIVE_BITS
    cutoff: int = 0
    bound: int = 1

    @property
    def unit(self) -> int:
        """The units of the grid per weight of 1."""
        # A weight of 1 is 2^bits units of 2^-bits.
        return int(1 << self.bits)

    @property
    def cutoff_weight(self) -> float | None:
        """The weight above which an item receives no more weight, or None without a cutoff."""
        # Convert units to weight, where 0 means no cutoff.
        return self.cutoff / self.unit if self.cutoff else None


class WeightingRule(ABC):
    """A division of a user's unit of weight among their items, with the properties that the proof requires."""

    __slots__ = ()
    name: ClassVar[str]
    """The name of the weighting in plans and reports."""
    noise: Noise
    """The kind of noise."""
    alpha: float | None = None
    """The distance of the cutoff above the threshold, in scales of the noise, or None without a cutoff."""
    sequential: ClassVar[bool] = False
    """Whether a user's shares depend on the weights from earlier users."""
    sound_norms: ClassVar[tuple[int, ...]]
    """The norms of noise with a proof (1 for Laplace, 2 for Gaussian). Every class must define them."""
    unsound: ClassVar[str] = "nobody has proved it"
    """The reason why there is no proof for other norms."""

    @property
    def norm(self) -> int:
        """The norm that bounds the weight of a user by 1."""
        return NORMS[self.noise]

    @property
    def label(self) -> str:
        """The name in the registry, which contains the noise if the weighting also has a proof for Gaussian noise."""
        return f"{self.name}-laplace" if self.norm == 1 and len(self.sound_norms) > 1 else self.name

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""
        return {"weighting": self.name, "noise": self.noise, **({} if self.alpha is None else {"alpha": self.alpha})}

    @abstractmethod
    def novelty(self, setting: RuleSetting) -> UniqueItems:
        """Return the possible weights of items of only one user."""

    def share(self, held: int, setting: RuleSetting) -> float:
        """Return the weight that each of `held` equally rare items gets from one user, by default an even share."""
        return even_share(held, setting.norm)

    def largest(self, setting: RuleSetting) -> float:
        """Return a bound on the weight that one user gives one item, by default all weight of the user."""
        return 1.0 + self.step_error(setting)

    @abstractmethod
    def add(self, histogram: Int64s, items: Int32s, starts: Int64s, setting: RuleSetting) -> None:
        """Add bounded sets to the histogram in place, in the order of users."""

    def add_within(
        self, histogram: Int64s, items: Int32s, starts: Int64s, setting: RuleSetting, bounds: Int64s
    ) -> None:
        """Add bounded sets in place, where each user moves the histogram by at most their bound, in steps of 2^-20."""
        raise InternalError(f"{self.name} weighting has no proof for users with unequal bounds")

    def bits(self, cutoff: float) -> int:
        """Return the grid for weights up to `cutoff`."""
        return bits_below(cutoff) if self.sequential else ADDITIVE_BITS

    @proved("set-union.md#what-integers-and-doubles-change")
    def sensitivity(self, setting: RuleSetting) -> float:
        """Return the sensitivity of the histogram to a user with bound 1, with the rounding of users with any bound.

        Proof: "So the sensitivity used is S = 1 + 2  2^33  (that error)"
        """
        # Each of two runs has an error of step_error at every later user (docs/privacy/set-union.md, "What integers and
        # doubles change").
        return 1.0 + 2.0 * USERS_BOUND * self.step_error(setting)

    def step_error(self, setting: RuleSetting) -> float:
        """Return a bound on the distance of one user's step from the exact step, in the norm of the noise."""
        return 0.0


@dataclass(frozen=True, slots=True)
class CalibratedRule:
    """A weighting and its setting, which a corpus uses to weigh items."""

    weighting_rule: WeightingRule
    setting: RuleSetting

    def __post_init__(self) -> None:
        """Raise an error if the weighting has no proof for the norm."""
        if self.setting.norm not in self.weighting_rule.sound_norms:
            (noise,) = (noise for noise, norm in NORMS.items() if norm == self.setting.norm)
            raise UnsoundError(
                f"{self.weighting_rule.name} weighting with {noise} noise is refused: {self.weighting_rule.unsound}. "
                "Use an object of vp.weightings: each has only noise for which there is a proof."
            )

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
        """The possible weights of items of only one user, on this grid."""
        return self.weighting_rule.novelty(self.setting)

    def add(self, histogram: Int64s, items: Int32s, starts: Int64s, bounds: Int64s | None = None) -> None:
        """Add bounded sets to the histogram in place, with a bound of 1 or individual bounds in steps of 2^-20."""
        if bounds is None:
            self.weighting_rule.add(histogram, items, starts, self.setting)
        else:
            self.weighting_rule.add_within(histogram, items, starts, self.setting, bounds)


def bits_below(cutoff: float) -> int:
    """Return the finest grid such that twice the cutoff is below 2^62 units.

    Raises:
        BudgetError: If not even integer weights are possible.
    """
    # With 2 cutoff 2^bits <= 2^62, the sum of a weight and one user's step fits 63 bits.
    bits = 62 - max(1, ceil(log2(2.0 * cutoff))) if cutoff < inf else 0
    if bits < 1:
        raise BudgetError(
            f"weights would rise to {cutoff:.3g}, too high for integers: what rounding costs has grown into the noise. "
            "Lower the limit or `alpha`, or raise `epsilon`."
        )
    return bits


def even_share(held: int, norm: int) -> float:
    """Return the weight of each of `held` items with equal weights and a norm of 1."""
    # The solution x of held x^p = 1, for p the norm.
    return 1.0 / held if norm == 1 else 1.0 / sqrt(held)


class Weighting(ABC):
    """A division of a user's unit of weight among their items. Derive a class from it for a custom weighting.

    You must prove that for every fixed order of users, adding or removing one user moves the final histogram by at most
    1 in the given norm. `voxpop.testing.search_sensitivity` searches for a counterexample, but an unsuccessful search
    is not a proof. Voxpop checks on every call that shares are finite, not negative, within 1 in the norm, and that
    items without weight get equal shares of at least `least(limit)`.

    Attributes:
        norm: 1 for Laplace noise, or 2 for Gaussian noise.
        error: The largest distance, in the norm, of `share` from the proved function because of floating point, from 0
            to below 1.

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
        """Return the smallest weight (above 0) that a user of at most `limit` items gives to an item without weight."""

    @abstractmethod
    def share(self, weights: Floats, cutoff: float) -> Floats:
        """Return the weight that a user adds to each of their items.

        Args:
            weights: The current weights of the items of the user, as float64. They must not be changed.
            cutoff: The weight `threshold + alpha * scale`, above which more weight is wasted.

        Returns:
            The added weights as float64 of the same length, not negative, at most 1 in the norm.
        """


@final
@dataclass(frozen=True, slots=True)
class CustomRule(WeightingRule):
    """A custom `Weighting`, which runs for one user at a time on the integer grid."""

    weighting: Weighting
    sequential = True

    def __post_init__(self) -> None:
        """Check the norm and the error, which affects the sensitivity."""
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
        """The noise of the norm."""
        return "laplace" if self.weighting.norm == 1 else "gaussian"

    @property
    def alpha(self) -> float:  # type: ignore[override]
        """The usual alpha of the noise."""
        return USUAL_ALPHA[self.noise]

    def novelty(self, setting: RuleSetting) -> UniqueItems:
        """Return the bound on novel items from the author's smallest weight.

        Every call checks that novel items, which have no weight, get equal shares.
        """
        least = self.weighting.least(setting.limit)
        # The smallest weight cannot exceed the even share of `limit` items, because the norm would exceed 1.
        if not 0.0 < least <= even_share(setting.limit, setting.norm) * (1 + WEIGHT_ROUNDING):
            raise InputError(
                f"`least({setting.limit})` of {self.name} must lie above 0 and at most an even share, got {least}."
            )
        return UniqueItems(setting.limit, "symmetric", least - self.step_error(setting), setting.norm)

    def share(self, held: int, setting: RuleSetting) -> float:
        """Return the shares of equally rare items."""
        # All equally rare items have weight 0.
        return float(self.weighting.share(np.zeros(held), setting.cutoff / setting.unit)[0])

    def step_error(self, setting: RuleSetting) -> float:
        """Return the sum of the author's error and the error of rounding down to the grid."""
        # Rounding down loses less than one unit per item, which is the number of items in l1 and its root in l2.
        grid = setting.limit if setting.norm == 1 else sqrt(setting.limit)
        return self.weighting.error + grid / setting.unit

    def add(self, histogram: Int64s, items: Int32s, starts: Int64s, setting: RuleSetting) -> None:
        """Run the weighting for one user at a time, and check every result."""
        cutoff = setting.cutoff / setting.unit
        least = self.weighting.least(setting.limit) - self.step_error(setting)
        for begin, end in pairwise(starts):
            if begin == end:
                continue
            mine = items[begin:end]
            weights = histogram[mine] / setting.unit
            shares = np.asarray(self.weighting.share(weights.copy(), cutoff), np.float64)
            self._check(shares, weights, least, setting.norm)
            # Weight above the cutoff is wasted, and would overflow if an item has many users. The limit never increases
            # the distance of two histograms.
            raised = histogram[mine] + np.floor(shares * setting.unit).astype(np.int64)
            histogram[mine] = np.minimum(raised, setting.cutoff)

    def _check(self, shares: Floats, weights: Floats, least: float, norm: int) -> None:
        """Raise an error if shares violate the requirements. The message contains no shares."""
        broken = None
        if shares.shape != weights.shape:
            broken = "one share per item"
        elif not np.isfinite(shares).all() or (shares < 0).any():
            broken = "finite shares that are not negative"
        # This check is for each user. The author must prove the sensitivity of the whole histogram.
        elif np.linalg.norm(shares, norm) > 1.0 + self.weighting.error:
            broken = f"shares of at most 1 in the l{norm} norm"
        elif (novel := shares[weights == 0.0]).size and (novel.min() < least or np.ptp(novel) > EQUAL):
            broken = "equal shares of at least `least(limit)` for items without weight"
        if broken:
            raise InputError(f"`share` of {self.name} must return {broken}; it did not. Nothing was released.")
