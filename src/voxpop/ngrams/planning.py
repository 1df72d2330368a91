"""From a budget to the numbers that will run."""

from math import ceil, nextafter, sqrt
from typing import TYPE_CHECKING

from scipy.special import ndtri

from voxpop.errors import BudgetError, InternalError
from voxpop.ngrams.budgets import Budgets
from voxpop.ngrams.plan import CROWDED, LengthPlan, NGramsPlan
from voxpop.privacy.budget import Budget
from voxpop.privacy.calibrate import calibrate, total_delta
from voxpop.privacy.filter import GaussianFilter
from voxpop.privacy.slack import walk_slack
from voxpop.rounds.plan import RoundPlan
from voxpop.weighting.cells import SHARINGS
from voxpop.weighting.sharing import BoundShares, Setting, Sharing

if TYPE_CHECKING:
    from voxpop.ngrams.ngrams import NGrams

NORM = 2
MOST_WEIGHT = 2.0**29
"""Thresholds and cutoffs below it fit every grid; it takes as many users."""


def plan_ngrams(ngrams: "NGrams", budget: Budget) -> NGramsPlan:
    """Fill in an extraction; see `NGrams.plan`."""
    slack = walk_slack(budget.epsilon, ngrams.max_length)
    if budget.delta <= 2 * slack:
        raise BudgetError(
            f"n-grams need a delta of at least {2 * slack:.2g} at epsilon {budget.epsilon:g}, got {budget.delta:g}: "
            "without it no word that is unknown beforehand may be released. Choose it far below 1 / (number of users "
            "you expect), such as 1e-7; it must not be computed from the data."
        )
    rule = ngrams.shares
    exact = Budget(budget.epsilon, budget.delta - slack)
    first, square, spent = _first_round(ngrams, exact, rule.first)
    later = nextafter(square * (1 / rule.first - 1), 0.0) if ngrams.max_length > 1 else 0.0
    return NGramsPlan(ngrams, budget, first, later, _lengths(ngrams, rule, first, later), delta=spent + slack)


def _first_round(ngrams: "NGrams", budget: Budget, share: float) -> tuple[RoundPlan, float, float]:
    """Return the plan of length 1, its mu^2, and the delta that it and the rest spend together."""
    sharing = SHARINGS[ngrams.weighting]
    rough = Setting(ngrams.limits[0], NORM, bits=48)
    rest = sqrt(1 / share - 1)
    (coarse,) = calibrate(budget, sharing.novelty(rough), accounting="published", rest=rest)
    setting = Setting(ngrams.limits[0], NORM, sharing.bits(coarse.threshold + ngrams.alpha * coarse.scale + 1.0))
    novelty, sensitivity = sharing.novelty(setting), sharing.sensitivity(setting)
    (scale,) = calibrate(
        budget,
        novelty,
        accounting=ngrams.accounting,
        sensitivity=sensitivity,
        grid=2.0**-setting.bits,
        rest=rest * sensitivity,
    )
    spent = total_delta(
        [scale],
        budget.epsilon,
        novelty,
        noise="gaussian",
        sensitivity=sensitivity,
        mu_rest=rest * sensitivity / scale.scale,
    )
    if not spent <= budget.delta:
        raise InternalError("the plan's own numbers exceed the budget; please report the parameters of the call.")
    first = _round(sharing, setting, scale.scale, scale.threshold, ngrams.alpha)
    return first, (sensitivity / scale.scale) ** 2 * (1 - 2.0**-40), spent


def later_round(ngrams: "NGrams", length: int, sigma: float, threshold: float) -> RoundPlan:
    """Return weighting, noise and threshold of a length after the first."""
    sharing = SHARINGS[ngrams.weighting]
    bits = sharing.bits(threshold + ngrams.alpha * sigma + 1.0)
    return _round(sharing, Setting(ngrams.limits[length - 1], NORM, bits), sigma, threshold, ngrams.alpha)


def later_sensitivity(ngrams: "NGrams", length: int, sigma: float, threshold: float) -> float:
    """Bound how far one user moves the histogram of a round of up to 1 percent more noise and threshold."""
    round_plan = later_round(ngrams, length, 1.01 * sigma, 1.01 * threshold)
    return round_plan.shares.sharing.sensitivity(round_plan.shares.setting)


def _round(sharing: Sharing, setting: Setting, sigma: float, threshold: float, alpha: float) -> RoundPlan:
    """Fill in one round, threshold rounded up to the grid; the cutoff is never below what one user can give."""
    cutoff = max(threshold + alpha * sigma, 1.0)
    units = ceil(cutoff * setting.unit) if sharing.sequential else 0
    on_grid = ceil(threshold * setting.unit) / setting.unit
    bound = BoundShares(sharing, Setting(setting.limit, setting.norm, setting.bits, units))
    return RoundPlan(bound, "gaussian", sigma, on_grid)


def threshold_for(eta: float, sigma: float, released: int, candidates: int) -> float:
    """Return the threshold that empty candidates pass with probability eta * min(1, released / candidates).

    So the expected number of spurious grams is at most eta times the number released before (DPNE, Section 2).
    """
    return float(-sigma * ndtri(eta * min(1.0, released / candidates)))


def _lengths(ngrams: "NGrams", rule: Budgets, first: RoundPlan, later: float) -> tuple[LengthPlan, ...]:
    """Run the budgets without data: every length takes its usual share, and measures where it may."""
    lengths = [LengthPlan(1, first.scale, None, first.threshold, first.threshold)]
    purse = GaussianFilter(later)
    for length in range(2, ngrams.max_length + 1):
        share = rule.share(length, None)
        measured = purse.spend(purse.left * share * ngrams.measurement) if ngrams.guide else None
        sigma = purse.spend(purse.left * share if length < ngrams.max_length else purse.left)
        low, high = (threshold_for(ngrams.eta, sigma, 1, many) for many in (1, CROWDED))
        if high + ngrams.alpha * sigma > MOST_WEIGHT:
            raise BudgetError(
                f"length {length} would get so little of the budget that its noise has sigma {sigma:.3g}: no phrase "
                "could be released. Use fewer lengths, other budgets, or more epsilon."
            )
        lengths.append(LengthPlan(length, sigma, measured, low, high))
    return tuple(lengths)
