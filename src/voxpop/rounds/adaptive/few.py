"""Levels of evidence under which items of few users stay away: see `voxpop.rounds.at_least`."""

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import ndtr

from voxpop.arrays import Floats
from voxpop.privacy.evidence import EvidenceRounds
from voxpop.rounds.adaptive.schedule import USUAL_THRESHOLD
from voxpop.rounds.at_least import UP, AtLeast

if TYPE_CHECKING:
    from voxpop.rounds.adaptive.numbers import AdaptiveRound
    from voxpop.rounds.plan import RoundPlan

NEAREST: Final = 1.0
"""A floor lies at least so many standard deviations below the threshold of its round."""


def heights(at_least: AtLeast, later: "tuple[AdaptiveRound, ...]", evidence: EvidenceRounds) -> Floats:
    """Return by round the most evidence that the weight of too few users makes, in standard deviations."""
    # c_r (n - 1) w_max / sigma_r: the mean of the evidence of one round, at most; (rounds,).
    shown = [part * at_least.weight(each.shares) / each.sigma for part, each in zip(evidence.parts, later, strict=True)]
    return np.asarray(np.cumsum(shown) / evidence.spreads * UP)


def raised(at_least: AtLeast, later: "tuple[AdaptiveRound, ...]", evidence: EvidenceRounds) -> EvidenceRounds:
    """Return rounds in which too few users reach a threshold with an even part of beta each, the opening counted.

    Floors rise with thresholds, so that an item which needs more users is given up as early as before: by the part of
    the rise that an item at the threshold has seen of its evidence by then.
    """
    deviations = at_least.deviations("gaussian", 1 + len(later)) + evidence.margin
    # Mean plus deviations, as for a single round; never below what novel items ask for.
    thresholds = np.maximum(evidence.thresholds, heights(at_least, later, evidence) + deviations)
    rise = max(0.0, float(thresholds[-1]) - max(USUAL_THRESHOLD, evidence.thresholds[-1]))
    seen = np.cumsum(np.multiply(evidence.parts, evidence.mus)) / evidence.spreads
    floors = np.minimum(evidence.floors + rise * (seen / seen[-1])[:-1], thresholds[:-1] - NEAREST)
    return replace(evidence, thresholds=_numbers(thresholds), floors=_numbers(floors))


def ever_released_with_few(
    at_least: AtLeast, opening: "RoundPlan", later: "tuple[AdaptiveRound, ...]", evidence: EvidenceRounds
) -> float:
    """Bound how likely an item of too few users is released in any round, by the numbers that run."""
    first = at_least.reached(opening.shares, "gaussian", opening.scale, opening.threshold)
    # How far the mean stays below each threshold, in standard deviations; margin is what doubles may add.
    missing = np.array(evidence.thresholds) - evidence.margin - heights(at_least, later, evidence)
    return first + float(np.sum(ndtr(-missing))) * UP


def _numbers(values: Floats) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
