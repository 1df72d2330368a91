"""What rounds of weights cost, computed from the settings that will run, whoever planned them.

A plan chooses a grid, charges for the sensitivity on it, and settles noise and cutoff afterwards, from which another
grid might follow. So whatever is about to run is looked at once more here: every mechanism that adds noise to weights
asks these functions, and none has its own.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, inf
from typing import TYPE_CHECKING, Final

from voxpop.errors import BudgetError, InternalError
from voxpop.privacy.calibrate import Scale, total_delta
from voxpop.weighting.rule import CalibratedRule, RuleSetting, WeightingRule

if TYPE_CHECKING:
    from voxpop.rounds.plan import RoundPlan

MOST_UNITS: Final = 2**62
"""Weights and cutoffs stay below it, so that a user's step on top of them still fits 64 bits."""


def with_cutoff(weighting_rule: WeightingRule, setting: RuleSetting, cutoff: float) -> CalibratedRule:
    """Return a weighting that stops raising items at a cutoff, if it has one; never below what one user can give.

    Args:
        weighting_rule: the weighting.
        setting: limit, norm and grid, as charged.
        cutoff: in weight.

    Raises:
        BudgetError: where the cutoff is too high for integer weights on that grid.
    """
    if weighting_rule.sequential and not max(cutoff, 1.0) * setting.unit < MOST_UNITS:
        raise BudgetError(
            f"the cutoff, {cutoff:.3g}, is too high for integer weights on the grid that limit {setting.limit:,} was "
            "charged for: what rounding costs has grown into the noise. Lower the limit or `alpha`, or raise `epsilon`."
        )
    # At least 1: items at weight 0 must be able to take an even share (docs/privacy/set-union.md, "Items that only the
    # extra user holds").
    units = ceil(max(cutoff, 1.0) * setting.unit) if weighting_rule.sequential else 0
    return CalibratedRule(weighting_rule, replace(setting, cutoff=units))


def rounds_delta(rounds: Sequence["RoundPlan"], epsilon: float, later: float = 0.0) -> float:
    """Return what rounds spend as they will run, slack for 128-bit decisions included.

    Args:
        rounds: with Gaussian or Laplace noise, all on one grid.
        epsilon: of the guarantee.
        later: total mu^2 of Gaussian releases that follow, about items that are known by then.

    Returns:
        Delta, rounded up.

    Raises:
        InternalError: where rounds are on different grids, for which one bound does not hold.
    """
    # Sensitivity and least share follow from limit, norm, grid and reach; the cutoff has no part in them.
    settings = {replace(each.shares.setting, cutoff=0) for each in rounds}
    noises = {each.noise for each in rounds}
    if len(settings) != 1 or not noises <= {"gaussian", "laplace"} or len(noises) != 1:
        raise InternalError("the rounds of a plan differ in grid or noise; please report the parameters of the call.")
    first = rounds[0]
    return total_delta(
        [Scale(each.scale, each.threshold, 0.0) for each in rounds],
        epsilon,
        first.shares.novelty,
        noise="laplace" if first.noise == "laplace" else "gaussian",
        sensitivity=first.shares.sensitivity,
        # mu from mu^2; the factor is more than the root may lose.
        mu_rest=later**0.5 * (1.0 + 2.0**-50),
    )


def check_charged(shares: CalibratedRule, sigma: float, square: float | Fraction) -> None:
    """Refuse to run a round of known items whose noise is less than was charged for it: by exact arithmetic.

    Args:
        shares: the weighting on the grid that will run.
        sigma: of the noise that will run.
        square: the mu^2 that was charged.

    Raises:
        InternalError: where (sensitivity / sigma)^2 is more than that.

    Example:
        >>> from voxpop.weighting.additive import Weighted
        >>> check_charged(CalibratedRule(Weighted(), RuleSetting(limit=10, norm=2)), sigma=2.0, square=0.25)
    """
    # (S / sigma)^2 <= mu^2 in exact fractions, of the sensitivity on the grid that runs.
    if not 0.0 < sigma < inf or (Fraction(shares.sensitivity) / Fraction(sigma)) ** 2 > Fraction(square):
        raise InternalError("a round would run with less noise than was charged for; please report the call.")
