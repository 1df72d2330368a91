"""The constants by which adaptive rounds share a budget, and one round with its noise filled in."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, inf
from typing import TYPE_CHECKING, Any, Final, Literal, final

import numpy as np

from voxpop.errors import BudgetError, InternalError
from voxpop.privacy.budget import Budget
from voxpop.privacy.certificate import bounding_of
from voxpop.privacy.numerics import optimal_delta
from voxpop.privacy.passes import Threshold
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting, WeightingRule

if TYPE_CHECKING:
    from voxpop.privacy.decisions import Rule


@final
@dataclass(frozen=True, slots=True)
class RoundPlan:
    """One round: a weighting on its grid, and the noise and threshold that decide.

    Attributes:
        shares: the weighting with limit, grid and cutoff.
        noise: "gaussian", "laplace", or "optimal" if items are selected only by their number of users.
        scale: sigma of Gaussian noise, b of Laplace noise, in units of weight; 0 where "optimal".
        threshold: an item is released where weight plus noise reaches it; if "optimal", a number of users that is not
            counted.
    """

    shares: CalibratedRule
    noise: Literal["gaussian", "laplace", "optimal"]
    scale: float
    threshold: float

    @property
    def cutoff(self) -> float | None:
        """Weight at which items stop rising, or None where nothing stops them."""
        return self.shares.setting.cutoff_weight

    def rule(self, budget: Budget) -> "Rule":
        """Return the probability of release as a function of weight."""
        from voxpop.privacy.decisions import SelectionRule, ThresholdRule

        if self.noise == "optimal":
            # What 128 bits cost is taken off before the rule is made, not after.
            delta = optimal_delta(budget.epsilon, budget.delta)
            few = round(self.threshold)
            return SelectionRule(budget.epsilon, delta, unit_weight=self.shares.setting.unit, few=few)
        unit = self.shares.setting.unit
        # The threshold is a whole number of units; plans rounded it up to the grid.
        return ThresholdRule(self.noise, self.scale, round(self.threshold * unit), 1.0 / unit)

    def stated(self) -> Threshold:
        """Return the numbers for a certificate."""
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


# A plan chooses a grid, charges for the sensitivity on it, and computes noise and cutoff afterwards, from which another
# grid might follow. So every mechanism that adds noise to weights checks the final numbers with the functions below.

MOST_UNITS: Final = 2**62
"""Weights and cutoffs stay below it, so that a user's step on top of them still fits 64 bits."""


def with_cutoff(weighting_rule: WeightingRule, setting: RuleSetting, cutoff: float) -> CalibratedRule:
    """Return a weighting that stops raising items at a cutoff, if it has one; at least one user's weight.

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


def check_charged(shares: CalibratedRule, sigma: float, square: float | Fraction) -> None:
    """Refuse to run a round of known items whose noise is less than was charged for it: by exact arithmetic.

    Args:
        shares: the weighting on the grid that will run.
        sigma: of the noise that will run.
        square: the mu^2 that was charged.

    Raises:
        InternalError: where (sensitivity / sigma)^2 is more than that.

    Example:
        >>> from voxpop.privacy.weightings.builtin import Weighted
        >>> check_charged(CalibratedRule(Weighted(), RuleSetting(limit=10, norm=2)), sigma=2.0, square=0.25)
    """
    # (S / sigma)^2 <= mu^2 in exact fractions, of the sensitivity on the grid that runs.
    if not 0.0 < sigma < inf or (Fraction(shares.sensitivity) / Fraction(sigma)) ** 2 > Fraction(square):
        raise InternalError("a round would run with less noise than was charged for")


@dataclass(frozen=True, slots=True)
class Schedule:
    """The shape of the rounds, before a budget determines its noise.

    Attributes:
        shares: shares of the later rounds, which add up the cumulative score, in mu.
        parts: by later round, its factor in the cumulative score; only ratios matter.
        falls: by later round, distance of its threshold above the last one, in standard deviations.
        drop_thresholds: cumulative score below which items are dropped, after each later round but the last.
    """

    shares: tuple[float, ...]
    parts: tuple[float, ...]
    falls: tuple[float, ...]
    drop_thresholds: tuple[float, ...]


SHARES: Final = (1.8, 1.7, 1.8, 2.0, 2.3, 2.7, 3.2)
"""Shares in mu of seven tuned steps, from which a schedule for any number of rounds is interpolated."""
_POWER: Final = 0.8
"""A round's part in the cumulative score is its mu, times the share of its step to this power."""
STEP_FALL: Final = 0.18
"""Decrease of the threshold over one step."""
DROP_THRESHOLDS: Final = (-1.7, -0.7, 0.4, 1.4, 2.3, 3.2)
"""Cumulative score below which items are dropped at the end of each step but the last.

Shares and drop thresholds were found by random search on reddit_posts and ubuntu_irc alike; what is best for one is
within one percent of the best for the other. A further search over nine of the numbers found 0.1 percent, which is
noise. Of 19,179 and 1,626 words at (1, 1e-5) and 14 rounds: thresholds that fall by 0.1 a step 19,155 and 1,631, parts
by the share itself instead of its power 0.8 19,179 and 1,629 (docs/design/0010-adaptive.md, as all that follows)."""
ROUNDS: Final = 20
"""14 release half a percent fewer, 28 as many; each costs time. The figures below are of 14."""
FIRST_SHARE: Final = 0.7
"""Share of the first round in mu, where the steps have 1.7 to 3.2: 0.5 released 19,139 and 1,615 words, 0.7 19,179 and
1,626, and 1.2 half a percent fewer. At 20 rounds 0.9 is half a percent more of the chat and nothing on posts."""
RELIEF: Final = (0.9, 1.8, 2.2)
"""Reduction of the first drop threshold up to the low limit, in standard deviations: the first number plus the second
times mu, at most the third; in inverse proportion to limits above it. If users draw one or two items a round, the
cumulative score grows slowly. At limit 2, 1.2 and 2.2 released 2,080 and 2,140 words of the chat at (3, e^-10), and
7,031 and 6,850 of posts at (0.5, 1e-7)."""
LOW_LIMIT: Final = 2
ALPHA: Final = 4.0
"""Distance above the threshold at which weight stops rising, in standard deviations of a round: 5 released 19,180 and
1,627 words, 4 19,179 and 1,626."""
NOVELTY: Final = 0.4
"""Share of delta for items that only one user holds: 0.3 released 19,180 and 1,628 words, 0.4 19,179 and 1,626, 0.5
19,135 and 1,620."""
FIRST_NOVELTY: Final = 0.03
"""Share of that for the first round: 0.1 released 22 words of posts fewer at (1, 1e-5), 45 fewer at (3, e^-10)."""
USUAL_THRESHOLD: Final = 5.5
"""Approximate score at which items are released, in standard deviations; the value affects only the result."""
LISTED_NOVELTY: Final = 0.2
"""`NOVELTY` beside a public list."""
SHARE_WITHOUT_USERS: Final = 0.01
"""Largest expected share of listed items that nobody has among the released items."""
LEAST_POOL: Final = 100
"""Smaller limits draw from a pool of this size: a pool of 60 released one to three percent fewer words of the chat, and
the same of posts."""


def schedule_of(rounds: int, relief: float = 0.0) -> Schedule:
    """Return the schedule of a number of rounds, spaced evenly over the tuned steps.

    Args:
        rounds: number of rounds after the first.
        relief: reduction of the first drop threshold; later ones are reduced less.
    """
    steps = len(SHARES)
    # Where rounds begin and end, in steps.
    ends = np.linspace(0.0, steps, rounds + 1)
    # mu^2 adds up: shares are differences of its running sum, then roots.
    budget = np.interp(ends, np.arange(steps + 1), np.append(0.0, np.cumsum(np.square(SHARES))))
    shares = np.sqrt(np.diff(budget))
    # The share of the steps at the middle of each round.
    local = np.interp((ends[1:] + ends[:-1]) / 2, np.arange(steps) + 0.5, SHARES)
    drop_thresholds = np.interp(ends[1:-1], np.arange(steps - 1) + 1.0, DROP_THRESHOLDS)
    # In full at the first drop threshold, not at all at the last.
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
    """Return the most items of a user in all rounds after the first: a public constant, never below the limit.

    Beside a public list it is the number of unknown items.
    """
    return max(limit, LEAST_POOL)
