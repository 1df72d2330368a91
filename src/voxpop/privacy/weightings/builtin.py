"""The weightings of DPSU (Gopi et al., ICML 2020), and their registry.

Certificates, reports, sensitivity searches and tests derive their lists from `WEIGHTINGS`.
"""

from abc import abstractmethod
from dataclasses import dataclass, field
from functools import lru_cache
from math import isqrt, sqrt
from typing import Final, final

import numpy as np

from voxpop.kernels.arrays import Int32s, Int64s
from voxpop.kernels.proved import proved
from voxpop.privacy.budget import check_choice, check_within
from voxpop.privacy.gaussian import NORMS, Noise, UniqueItems
from voxpop.privacy.weightings.rule import USUAL_ALPHA, WEIGHT_ROUNDING, RuleSetting, WeightingRule, even_share

LARGEST_ALPHA: Final = 1000.0


@proved("set-union.md#one-user-moves-the-histogram-by-at-most-1")
def floored_share(held: int, setting: RuleSetting) -> int:
    """Return `unit * held^(-1/norm)` in units, rounded down exactly.

    Proof: "Weights are whole multiples of 2^-32, rounded down, so the sums are exact in any order."
    """
    if setting.norm == 1:
        return setting.unit // held
    # Compute floor(2^bits / sqrt(held)) in integer arithmetic, so that `held` shares have a norm of at most 1.
    return isqrt(setting.unit * setting.unit // held)


@lru_cache(maxsize=8)
def shares_by_size(setting: RuleSetting) -> Int64s:
    """Return the even share, in units, by a user's number of items (0 to limit)."""
    return np.array([0, *(floored_share(held, setting) for held in range(1, setting.limit + 1))], np.int64)


class _Even(WeightingRule):
    """A weighting that does not depend on the items of other users."""

    __slots__ = ()
    sound_norms = (1, 2)

    def __post_init__(self) -> None:
        """Check the noise."""
        check_choice("noise", self.noise, tuple(NORMS))

    def _least(self, setting: RuleSetting) -> float:
        return floored_share(setting.limit, setting) / setting.unit

    @abstractmethod
    def _table(self, setting: RuleSetting) -> Int64s:
        """Return the share, in units, by the user's number of items, as int64 of shape (limit + 1,)."""

    def add(self, histogram: Int64s, items: Int32s, starts: Int64s, setting: RuleSetting) -> None:
        """Add each user's share to each of the user's items."""
        from voxpop.kernels.weigh import add_even

        add_even(histogram, items, starts, self._table(setting))


@final
@dataclass(frozen=True, slots=True)
class Count(_Even):
    """Give every item of every user the same weight, which is an even share for `limit` items (DPSU, Section 1.1).

    Attributes:
        noise: "gaussian" or "laplace".
    """

    name = "count"
    noise: Noise = "gaussian"

    @proved("set-union.md#items-that-only-the-extra-user-has")
    def novelty(self, setting: RuleSetting) -> UniqueItems:
        """Return the possible weights of novel items. They have the same weight as all other items.

        Proof: "The smallest w is public, namely an even share of 1 over limit items, rounded down"
        """
        return UniqueItems(setting.limit, "fixed", self._least(setting), setting.norm)

    def share(self, held: int, setting: RuleSetting) -> float:
        """Return the fixed weight."""
        return even_share(setting.limit, setting.norm)

    def largest(self, setting: RuleSetting) -> float:
        """Return the fixed weight on the grid."""
        return self._least(setting)

    def _table(self, setting: RuleSetting) -> Int64s:
        return np.full(setting.limit + 1, floored_share(setting.limit, setting), np.int64)


@final
@dataclass(frozen=True, slots=True)
class Weighted(_Even):
    """Divide each user's weight evenly among the user's items (DPSU, Section 1.1).

    Attributes:
        noise: "gaussian" or "laplace".
    """

    name = "weighted"
    noise: Noise = "gaussian"

    @proved("set-union.md#items-that-only-the-extra-user-has")
    def novelty(self, setting: RuleSetting) -> UniqueItems:
        """Return the possible weights of novel items. Each weight is an even share, rounded down.

        Proof: "The smallest w is public, namely an even share of 1 over limit items, rounded down"
        """
        return UniqueItems(setting.limit, "even", self._least(setting), setting.norm)

    def add_within(
        self, histogram: Int64s, items: Int32s, starts: Int64s, setting: RuleSetting, bounds: Int64s
    ) -> None:
        """Add even shares, multiplied by each user's own sensitivity.

        The product is computed in integers, so it is never too large.
        """
        from voxpop.kernels.weigh import add_even_within

        add_even_within(histogram, items, starts, shares_by_size(setting), bounds)

    def _table(self, setting: RuleSetting) -> Int64s:
        return shares_by_size(setting)


class _Descent(WeightingRule):
    """A weighting that increases the weights of a user's items up to a cutoff.

    The increase depends on the weights from earlier users.
    """

    __slots__ = ()
    sequential = True

    def __post_init__(self) -> None:
        """Check alpha."""
        check_within("alpha", self.alpha, 0.0, LARGEST_ALPHA, "the distance from the threshold to the cutoff; omit it")


@final
@dataclass(frozen=True, slots=True)
class PolicyLaplace(_Descent):
    """Increase the weights of a user's items equally, up to the cutoff (DPSU, Algorithm 4, l1-descent).

    This weighting is for Laplace noise.

    The proof is in docs/privacy/set-union.md. With Gaussian noise (DPSU, Algorithm 8), the published proof is wrong,
    and one user can move the histogram by more than 1. docs/privacy/algorithm-8.md contains a counterexample with two
    users.

    Attributes:
        alpha: The distance from the threshold up to the cutoff, in scales of the noise.
    """

    name = "policy-laplace"
    noise: Noise = field(default="laplace", init=False, repr=False)
    sound_norms = (1,)
    alpha: float = USUAL_ALPHA["laplace"]

    @proved("set-union.md#items-that-only-the-extra-user-has")
    def novelty(self, setting: RuleSetting) -> UniqueItems:
        """Return the possible weights of a user's novel items. Each weight is the final level of the user's items.

        Proof: "Items of T start with equal weights of 0, and all rules treat equal items equally, so all of them end
        with the same weight w."
        """
        # Items at 0 have the widest gaps, so the final level is at least an even share.
        least = (setting.unit // setting.limit) / setting.unit
        return UniqueItems(setting.limit, "symmetric", least, setting.norm)

    @proved("set-union.md#what-integers-and-doubles-change")
    def step_error(self, setting: RuleSetting) -> float:
        """Return a bound on the weight that is lost because levels are whole units.

        Proof: "Less than one unit per item remains unused, so a later user adds at most limit * 2^-bits to the
        distance."
        """
        # In l1, the loss is less than one unit for each of at most `limit` items.
        return setting.limit / setting.unit

    def add(self, histogram: Int64s, items: Int32s, starts: Int64s, setting: RuleSetting) -> None:
        """Distribute each user's unit of weight evenly over the items below the cutoff."""
        from voxpop.kernels.weigh import l1_descent

        l1_descent(histogram, items, starts, setting.cutoff, setting.unit)


@final
@dataclass(frozen=True, slots=True)
class PolicyGaussian(_Descent):
    """Move a user's items towards the cutoff by 1 in the l2 norm, by l2-descent (DPSU, Algorithm 7).

    This weighting is for Gaussian noise. The proof is in docs/privacy/set-union.md. The step is a proximal map, so it
    never increases the distance between two histograms.

    Attributes:
        alpha: The distance from the threshold up to the cutoff, in multiples of sigma.
    """

    name = "policy-gaussian"
    noise: Noise = field(default="gaussian", init=False, repr=False)
    sound_norms = (2,)
    alpha: float = USUAL_ALPHA["gaussian"]

    @proved("set-union.md#items-that-only-the-extra-user-has")
    def novelty(self, setting: RuleSetting) -> UniqueItems:
        """Return the possible weights of novel items. Among a user's items, they have the widest gaps to the cutoff.

        Proof: "Items of T start with equal weights of 0, and all rules treat equal items equally, so all of them end
        with the same weight w."
        """
        # The widest of `limit` gaps gets a share of at least 1 / sqrt(limit), minus the error of the step.
        root = isqrt(setting.unit * setting.unit // setting.limit)
        least = root / setting.unit - self.step_error(setting)
        return UniqueItems(setting.limit, "symmetric", least, setting.norm)

    @proved("set-union.md#what-integers-and-doubles-change")
    def step_error(self, setting: RuleSetting) -> float:
        """Return a bound on the error of one user's step, which is computed in float64 and rounded down to the grid.

        Proof: "The errors of conversion, square, sum, root and quotient add up to less than 8 2^-53 of a step of length
        1"
        """
        # The error is 8 * 2^-53 r + sqrt(limit) 2^-bits, with r = 1 in set union (docs/privacy/individual.md, "Steps").
        return setting.bound * WEIGHT_ROUNDING + sqrt(setting.limit) / setting.unit

    def add(self, histogram: Int64s, items: Int32s, starts: Int64s, setting: RuleSetting) -> None:
        """Move each user's items towards the cutoff by 1."""
        from voxpop.kernels.weigh import ONE_BOUND

        # One entry applies to all users, because each user's sensitivity is 1.
        self.add_within(histogram, items, starts, setting, np.array([ONE_BOUND]))

    def add_within(
        self, histogram: Int64s, items: Int32s, starts: Int64s, setting: RuleSetting, bounds: Int64s
    ) -> None:
        """Move each user's items towards the cutoff by the user's own sensitivity.

        The step is a proximal map for every sensitivity.
        """
        from voxpop.kernels.weigh import l2_descent

        l2_descent(histogram, items, starts, setting.cutoff, setting.unit, bounds)


WEIGHTINGS: Final[dict[str, WeightingRule]] = {
    "count": Count(),
    "count-laplace": Count("laplace"),
    "weighted": Weighted(),
    "weighted-laplace": Weighted("laplace"),
    "policy-laplace": PolicyLaplace(),
    "policy-gaussian": PolicyGaussian(),
}
"""All pairs of a weighting and a noise that have a proof, by name."""


def is_proved(rule: object) -> bool:
    """Return whether the class of a weighting is one of the proved classes. Derived classes do not count."""
    return type(rule) in {type(each) for each in WEIGHTINGS.values()}


def share_of(weighting: object, noise: str, limit: int, items: int) -> float | None:
    """Return the weight that one user gives to each of `items` equally rare items.

    Args:
        weighting: The name of the weighting in the plan.
        noise: The noise of the round.
        limit: The contribution bound of the plan.
        items: The number of items, from 1 to `limit`.

    Returns:
        The weight, or None if the weighting is not in the registry.
    """
    known = [each for each in WEIGHTINGS.values() if (each.name, each.noise) == (weighting, noise)]
    if not known:
        return None
    return known[0].share(items, RuleSetting(limit, known[0].norm))
