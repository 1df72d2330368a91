"""The rounds of lengths after the first: their grid, noise and threshold."""

from math import ceil
from typing import TYPE_CHECKING

from scipy.special import ndtri

from voxpop.errors import BudgetError
from voxpop.privacy.filter import noise_for
from voxpop.privacy.threshold import NORMS
from voxpop.rounds.charge import with_cutoff
from voxpop.rounds.plan import RoundPlan
from voxpop.weighting.rule import RuleSetting, WeightingRule
from voxpop.weighting.soundness import WEIGHTING_RULES

if TYPE_CHECKING:
    from voxpop.ngrams.ngrams import NGrams

NORM = NORMS["gaussian"]
MOST_WEIGHT = 2.0**29
"""Thresholds and cutoffs below it fit every grid; it takes as many users."""


def later_setting(
    ngrams: "NGrams", length: int, square: float, released: int, candidates: int, reach: int = 1
) -> RuleSetting:
    """Return the grid of a length after the first: the finest that fits the noise that it asks for itself.

    A coarse grid is paid for by more noise, noise by a higher threshold and cutoff, and these may need a coarser grid
    still. So grids are tried from fine to coarse until one fits its own noise: it is charged for, and it runs.

    Args:
        ngrams: what is extracted.
        length: tokens in a gram.
        square: the mu^2 that may be spent.
        released: grams of the length before.
        candidates: most there can be; fewer have a lower threshold.
        reach: the most by which one user may move the weights.

    Raises:
        BudgetError: where no grid fits, or nobody could reach the threshold.
    """
    weighting_rule, limit = WEIGHTING_RULES[ngrams.weighting], ngrams.limits[length - 1]
    # From the finest grid there is, for a cutoff of 1, to coarser ones.
    setting, sigma = RuleSetting(limit, NORM, weighting_rule.bits(1.0), reach=reach), square**-0.5
    while sigma <= MOST_WEIGHT:
        # S grows as the grid becomes coarser, sigma with S, the cutoff with sigma.
        sigma = noise_for(square, weighting_rule.sensitivity(setting))
        top = threshold_for(ngrams.eta, sigma, released, candidates) + ngrams.alpha * sigma
        if top > MOST_WEIGHT:
            break
        bits = weighting_rule.bits(top + 1.0)
        # The grid fits the noise that it asks for itself, so what is charged is what runs.
        if bits >= setting.bits:
            return setting
        setting = RuleSetting(limit, NORM, bits, reach=reach)
    raise BudgetError(
        f"length {length} would get so little of the budget that its noise has sigma {sigma:.3g}: no phrase "
        "could be released. Use fewer lengths, other budgets, a lower limit or `alpha`, or more epsilon."
    )


def later_round(ngrams: "NGrams", setting: RuleSetting, sigma: float, threshold: float) -> RoundPlan:
    """Return weighting, noise and threshold of a length after the first, on the grid that was charged for."""
    return grid_round(WEIGHTING_RULES[ngrams.weighting], setting, sigma, threshold, ngrams.alpha)


def finest_round(ngrams: "NGrams", length: int, sigma: float, threshold: float) -> RoundPlan:
    """Return a round of given noise and threshold on the finest grid: to forecast with, not to charge for."""
    bits = WEIGHTING_RULES[ngrams.weighting].bits(threshold + ngrams.alpha * sigma + 1.0)
    return later_round(ngrams, RuleSetting(ngrams.limits[length - 1], NORM, bits), sigma, threshold)


def grid_round(
    weighting_rule: WeightingRule, setting: RuleSetting, sigma: float, threshold: float, alpha: float
) -> RoundPlan:
    """Fill in one round, threshold rounded up to the grid."""
    # Up: a higher threshold has fewer spurious grams, and privacy does not depend on it.
    on_grid = ceil(threshold * setting.unit) / setting.unit
    return RoundPlan(with_cutoff(weighting_rule, setting, threshold + alpha * sigma), "gaussian", sigma, on_grid)


def threshold_for(eta: float, sigma: float, released: int, candidates: int) -> float:
    """Return the threshold that empty candidates pass with probability eta * min(1, released / candidates).

    So the expected number of spurious grams is at most eta times the number released before (DPNE, Section 2).
    """
    # sigma Phi^-1(1 - p) for p = eta min(1, |S_k| / N), by the tail so that small p keep their digits.
    return float(-sigma * ndtri(eta * min(1.0, released / candidates)))
