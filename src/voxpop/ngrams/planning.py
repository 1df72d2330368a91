"""From a budget to the numbers that will run."""

from math import ceil, nextafter, sqrt
from typing import TYPE_CHECKING

from scipy.special import ndtri

from voxpop.errors import BudgetError, InternalError
from voxpop.ngrams.budgets import Budgets
from voxpop.ngrams.plan import CROWDED, LengthPlan, NGramsPlan
from voxpop.privacy.budget import Budget
from voxpop.privacy.calibrate import calibrate
from voxpop.privacy.filter import GaussianFilter, noise_for
from voxpop.privacy.slack import walk_slack
from voxpop.privacy.threshold import NORMS
from voxpop.union.cells import SHARINGS
from voxpop.union.charge import check_charged, rounds_delta, with_cutoff
from voxpop.union.plan import RoundPlan
from voxpop.union.sharing import Setting, Sharing

if TYPE_CHECKING:
    from voxpop.ngrams.ngrams import NGrams

NORM = NORMS["gaussian"]
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
    first = _first_round(ngrams, exact, rule.first)
    square = (first.shares.sensitivity / first.scale) ** 2 * (1 - 2.0**-40)
    later = nextafter(square * (1 / rule.first - 1), 0.0) if ngrams.max_length > 1 else 0.0
    spent = rounds_delta([first], exact.epsilon, later)
    if not spent <= exact.delta:
        raise InternalError("the plan's own numbers exceed the budget; please report the parameters of the call.")
    return NGramsPlan(ngrams, budget, first, later, _lengths(ngrams, rule, first, later), delta=spent + slack)


def _first_round(ngrams: "NGrams", budget: Budget, share: float) -> RoundPlan:
    """Return the plan of length 1, which leaves the rest of mu^2 to later lengths."""
    sharing = SHARINGS[ngrams.weighting]
    rough = Setting(ngrams.limits[0], NORM, bits=48)
    rest = sqrt(1 / share - 1)
    (coarse,) = calibrate(budget, sharing.novelty(rough), accounting="published", rest=rest)
    setting = Setting(ngrams.limits[0], NORM, sharing.bits(coarse.threshold + ngrams.alpha * coarse.scale + 1.0))
    sensitivity = sharing.sensitivity(setting)
    (scale,) = calibrate(
        budget,
        sharing.novelty(setting),
        accounting=ngrams.accounting,
        sensitivity=sensitivity,
        grid=2.0**-setting.bits,
        rest=rest * sensitivity,
    )
    return _round(sharing, setting, scale.scale, scale.threshold, ngrams.alpha)


def later_setting(ngrams: "NGrams", length: int, square: float, released: int, candidates: int) -> Setting:
    """Return the grid of a length after the first: the finest that fits the noise that it asks for itself.

    A coarse grid is paid for by more noise, noise by a higher threshold and cutoff, and these may need a coarser grid
    still. So grids are tried from fine to coarse until one fits its own noise: it is charged for, and it runs.

    Args:
        ngrams: what is extracted.
        length: tokens in a gram.
        square: the mu^2 that may be spent.
        released: grams of the length before.
        candidates: most there can be; fewer have a lower threshold.

    Raises:
        BudgetError: where no grid fits, or nobody could reach the threshold.
    """
    sharing, limit = SHARINGS[ngrams.weighting], ngrams.limits[length - 1]
    setting, sigma = Setting(limit, NORM, sharing.bits(1.0)), square**-0.5
    while sigma <= MOST_WEIGHT:
        sigma = noise_for(square, sharing.sensitivity(setting))
        top = threshold_for(ngrams.eta, sigma, released, candidates) + ngrams.alpha * sigma
        if top > MOST_WEIGHT:
            break
        bits = sharing.bits(top + 1.0)
        if bits >= setting.bits:
            return setting
        setting = Setting(limit, NORM, bits)
    raise BudgetError(
        f"length {length} would get so little of the budget that its noise has sigma {sigma:.3g}: no phrase "
        "could be released. Use fewer lengths, other budgets, a lower limit or `alpha`, or more epsilon."
    )


def later_round(ngrams: "NGrams", setting: Setting, sigma: float, threshold: float) -> RoundPlan:
    """Return weighting, noise and threshold of a length after the first, on the grid that was charged for."""
    return _round(SHARINGS[ngrams.weighting], setting, sigma, threshold, ngrams.alpha)


def finest_round(ngrams: "NGrams", length: int, sigma: float, threshold: float) -> RoundPlan:
    """Return a round of given noise and threshold on the finest grid: to forecast with, not to charge for."""
    bits = SHARINGS[ngrams.weighting].bits(threshold + ngrams.alpha * sigma + 1.0)
    return later_round(ngrams, Setting(ngrams.limits[length - 1], NORM, bits), sigma, threshold)


def _round(sharing: Sharing, setting: Setting, sigma: float, threshold: float, alpha: float) -> RoundPlan:
    """Fill in one round, threshold rounded up to the grid."""
    on_grid = ceil(threshold * setting.unit) / setting.unit
    return RoundPlan(with_cutoff(sharing, setting, threshold + alpha * sigma), "gaussian", sigma, on_grid)


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
        square = purse.left * share if length < ngrams.max_length else purse.left
        setting = later_setting(ngrams, length, square, 1, CROWDED)
        sigma = purse.spend(square, SHARINGS[ngrams.weighting].sensitivity(setting))
        low, high = (threshold_for(ngrams.eta, sigma, 1, many) for many in (1, CROWDED))
        check_charged(later_round(ngrams, setting, sigma, high).shares, sigma, square)
        lengths.append(LengthPlan(length, sigma, measured, low, high))
    return tuple(lengths)
