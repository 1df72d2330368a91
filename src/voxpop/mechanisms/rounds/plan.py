"""The constants that divide a budget among adaptive rounds, and the plan of one round with its noise."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, inf
from typing import TYPE_CHECKING, Any, Final, Literal, final

import numpy as np

from voxpop.errors import BudgetError, InternalError
from voxpop.privacy.budget import Budget
from voxpop.privacy.certificate import bounding_of
from voxpop.privacy.decisions import SelectionRule, ThresholdRule
from voxpop.privacy.numerics import optimal_delta
from voxpop.privacy.passes import Threshold
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting, WeightingRule

if TYPE_CHECKING:
    from voxpop.privacy.decisions import Rule


@final
@dataclass(frozen=True, slots=True)
class RoundPlan:
    """One round, which consists of a weighting on its grid, the noise, and the threshold.

    Attributes:
        shares: The weighting, with its limit, grid and cutoff.
        noise: The type of noise, "gaussian" or "laplace", or "optimal" if items are selected only by their number of
            users.
        scale: The sigma of Gaussian noise or the b of Laplace noise, in units of weight, or 0 for "optimal".
        threshold: The minimum noisy weight of a released item. For "optimal", the number of users up to which an item
            is never released.
    """

    shares: CalibratedRule
    noise: Literal["gaussian", "laplace", "optimal"]
    scale: float
    threshold: float

    @property
    def cutoff(self) -> float | None:
        """The weight above which items get no more weight (None for weightings without a cutoff)."""
        return self.shares.setting.cutoff_weight

    def rule(self, budget: Budget) -> "Rule":
        """Return the probability of release as a function of weight."""
        if self.noise == "optimal":
            # The charge for decisions with 128 bits is subtracted before the rule is constructed, not after.
            delta = optimal_delta(budget.epsilon, budget.delta)
            few = round(self.threshold)
            return SelectionRule(budget.epsilon, delta, unit_weight=self.shares.setting.unit, few=few)
        unit = self.shares.setting.unit
        # The threshold is a whole number of units, because plans rounded it up to the grid.
        return ThresholdRule(self.noise, self.scale, round(self.threshold * unit), 1.0 / unit)

    def stated(self) -> Threshold:
        """Return the numbers that a certificate contains."""
        if self.noise == "optimal":
            raise InternalError("optimal selection has no threshold")
        units = round(self.threshold * self.shares.setting.unit)  # plans rounded it up to the grid
        return Threshold(bounding_of(self.shares), self.noise, self.scale, units)

    def rows(self) -> list[dict[str, Any]]:
        """Return the numbers of this round, ready for JSON."""
        row = {
            "pass": "selection" if self.noise == "optimal" else "threshold",
            "noise": self.noise,
            "scale": self.scale,
            "threshold": self.threshold,
            "cutoff": self.cutoff,
            "grid_bits": self.shares.setting.bits,
        }
        return [row]


# A plan chooses a grid, charges for the sensitivity on it, and computes the noise and the cutoff afterwards. The noise
# and the cutoff could require a different grid. Therefore every mechanism that adds noise to weights checks the final
# numbers with the functions below.

MOST_UNITS: Final = 2**62
"""The upper bound on weights and cutoffs, so that the sum with a user's step still fits in 64 bits."""


def with_cutoff(weighting_rule: WeightingRule, setting: RuleSetting, cutoff: float) -> CalibratedRule:
    """Return a weighting with a cutoff of at least one user's weight, if weightings of this kind have a cutoff.

    Args:
        weighting_rule: The weighting.
        setting: The limit, norm and grid that were charged.
        cutoff: The cutoff, in units of weight.

    Raises:
        BudgetError: The cutoff is too high for integer weights on that grid.
    """
    if weighting_rule.sequential and not max(cutoff, 1.0) * setting.unit < MOST_UNITS:
        raise BudgetError(
            f"the cutoff, {cutoff:.3g}, is too high for integer weights on the grid that limit {setting.limit:,} was "
            "charged for, because rounding increases the noise. Lower the limit or `alpha`, or raise `epsilon`."
        )
    # The cutoff is at least 1, because items of weight 0 must be able to take an even share
    # (docs/privacy/set-union.md, "Items that only the extra user has").
    units = ceil(max(cutoff, 1.0) * setting.unit) if weighting_rule.sequential else 0
    return CalibratedRule(weighting_rule, replace(setting, cutoff=units))


def check_charged(shares: CalibratedRule, sigma: float, square: float | Fraction) -> None:
    """Check with exact arithmetic that a round of known items has at least the noise that it was charged for.

    Args:
        shares: The weighting on the grid of the round.
        sigma: The sigma of the noise.
        square: The mu^2 that was charged.

    Raises:
        InternalError: (sensitivity / sigma)^2 exceeds the charge.

    Example:
        >>> from voxpop.privacy.weightings.builtin import Weighted
        >>> check_charged(CalibratedRule(Weighted(), RuleSetting(limit=10, norm=2)), sigma=2.0, square=0.25)
    """
    # The condition is (S / sigma)^2 <= mu^2 in exact fractions, with the sensitivity S on this grid.
    if not 0.0 < sigma < inf or (Fraction(shares.sensitivity) / Fraction(sigma)) ** 2 > Fraction(square):
        raise InternalError("a round would run with less noise than was charged for")


@dataclass(frozen=True, slots=True)
class Schedule:
    """The shape of the rounds, before a budget determines their noise.

    Attributes:
        shares: The relative mu of the later rounds, which add up the cumulative score.
        parts: The factor of each later round in the cumulative score. Only the ratios of these factors matter.
        falls: The distance of the threshold of each later round above the last threshold, in standard deviations.
        drop_thresholds: The cumulative score below which items are dropped, after each later round except the last.
    """

    shares: tuple[float, ...]
    parts: tuple[float, ...]
    falls: tuple[float, ...]
    drop_thresholds: tuple[float, ...]


SHARES: Final = (1.8, 1.7, 1.8, 2.0, 2.3, 2.7, 3.2)
"""The relative mu of seven tuned steps. Schedules for any number of rounds are interpolated from these steps."""
_POWER: Final = 0.8
"""The exponent of the share of a step. A round's part in the cumulative score is its mu times this power of the share.
"""
STEP_FALL: Final = 0.18
"""The decrease of the threshold over one step."""
DROP_THRESHOLDS: Final = (-1.7, -0.7, 0.4, 1.4, 2.3, 3.2)
"""The cumulative score below which items are dropped at the end of each step except the last.

Shares and drop thresholds were found by random search on both reddit_posts and ubuntu_irc. On each collection, the best
values for the other collection release at most one percent fewer words than the best values for this collection. A
further search over nine of the numbers gained 0.1 percent, which is noise. At (1, 1e-5) and 14 rounds, these values
release 19,179 words of the posts and 1,626 words of the chat. Thresholds that decrease by 0.1 per step release 19,155
and 1,631, and parts that use the share instead of its power 0.8 release 19,179 and 1,629. The source of these numbers
and of all numbers below is docs/design/0010-adaptive.md.
"""
ROUNDS: Final = 20
"""The number of later rounds. With 14 rounds, half a percent fewer words are released, and with 28 rounds, the same
number. Each round takes time. The numbers below are for 14 rounds.
"""
FIRST_SHARE: Final = 0.7
"""The relative mu of the first round, compared with 1.7 to 3.2 for the steps. A value of 0.5 released 19,139 and 1,615
words, 0.7 released 19,179 and 1,626, and 1.2 released half a percent fewer. With 20 rounds, 0.9 releases half a percent
more words of the chat, and no more words of the posts.
"""
RELIEF: Final = (0.9, 1.8, 2.2)
"""The reduction of the first drop threshold for limits up to the low limit, in standard deviations. It is the first
number plus the second number times mu, and at most the third number. Above the low limit, it is inversely proportional
to the limit. The reduction is needed because the cumulative score grows slowly if users draw one or two items per
round. At limit 2, reductions of 1.2 and 2.2 released 2,080 and 2,140 words of the chat at (3, e^-10), and 7,031 and
6,850 words of the posts at (0.5, 1e-7).
"""
LOW_LIMIT: Final = 2
ALPHA: Final = 4.0
"""The distance from the threshold up to the cutoff, in standard deviations of a round. A distance of 5 released 19,180
and 1,627 words, and 4 released 19,179 and 1,626.
"""
NOVELTY: Final = 0.4
"""The share of delta for items that only one user has. A share of 0.3 released 19,180 and 1,628 words, 0.4 released
19,179 and 1,626, and 0.5 released 19,135 and 1,620.
"""
FIRST_NOVELTY: Final = 0.03
"""The part of `NOVELTY` for the first round. With a part of 0.1, the number of released words of the posts was lower by
22 at (1, 1e-5), and by 45 at (3, e^-10).
"""
USUAL_THRESHOLD: Final = 5.5
"""The approximate score at which items are released, in standard deviations. The value affects only utility."""
LISTED_NOVELTY: Final = 0.2
"""The value of `NOVELTY` with a public list."""
SHARE_WITHOUT_USERS: Final = 0.01
"""The maximum expected share of listed items without users among the released items."""
LEAST_POOL: Final = 100
"""The size of the pool for smaller limits. A pool of 60 released one to three percent fewer words of the chat, and the
same number of words of the posts.
"""


def schedule_of(rounds: int, relief: float = 0.0) -> Schedule:
    """Return the schedule for a number of rounds, which are spaced evenly over the tuned steps.

    Args:
        rounds: The number of rounds after the first.
        relief: The reduction of the first drop threshold. Later drop thresholds are reduced less.
    """
    steps = len(SHARES)
    # Compute the beginning and end of each round, in steps.
    ends = np.linspace(0.0, steps, rounds + 1)
    # The mu^2 of rounds add up, so shares are the square roots of the differences of their running sum.
    budget = np.interp(ends, np.arange(steps + 1), np.append(0.0, np.cumsum(np.square(SHARES))))
    shares = np.sqrt(np.diff(budget))
    # Compute the share of the steps at the middle of each round.
    local = np.interp((ends[1:] + ends[:-1]) / 2, np.arange(steps) + 0.5, SHARES)
    drop_thresholds = np.interp(ends[1:-1], np.arange(steps - 1) + 1.0, DROP_THRESHOLDS)
    # The relief applies fully to the first drop threshold and does not apply to the last drop threshold.
    drop_thresholds -= relief * (1 - np.arange(rounds - 1) / (rounds - 1))
    return Schedule(
        shares=tuple(shares.tolist()),
        parts=tuple((shares * local**_POWER).tolist()),
        falls=tuple((STEP_FALL * (steps - ends[1:])).tolist()),
        drop_thresholds=tuple(drop_thresholds.tolist()),
    )


def schedule_for(limit: int, mu: float) -> Schedule:
    """Return the schedule for a limit and the mu of all rounds."""
    least, per_mu, most = RELIEF
    return schedule_of(ROUNDS, min(least + per_mu * mu, most) * min(1.0, LOW_LIMIT / limit))


def pool_for(limit: int) -> int:
    """Return the maximum number of items per user in all rounds after the first.

    The number is public and never below the limit. Items of a public list do not count.
    """
    return max(limit, LEAST_POOL)
