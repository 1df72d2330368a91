"""A bound on the probability that noise ever reaches a threshold in a series, and the noise and decisions of a night.

The score of an item after night t is f_1 y_1 + ... + f_t y_t. The factors f are public integers, and the noisy weights
y are whole numbers of cells, so scores are exact integers. docs/privacy/series.md contains the proof.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import ge
from typing import Final, final

import numpy as np
from scipy.special import ndtr

from voxpop.kernels.arrays import Floats, Int64s, Uint64s
from voxpop.kernels.proved import proved
from voxpop.privacy.opening import Opening
from voxpop.privacy.parameters import NightLevels
from voxpop.privacy.passes import NightsProof
from voxpop.privacy.sampling import noisy_cells
from voxpop.privacy.secret import Source

_ROUNDING: Final = 1 + 1e-9
"""An upper bound on the relative error of the doubles below."""
_POINTS: Final = np.arange(0.0, 12.0, 1 / 256)
FINER: Final = np.arange(0.0, 24.0, 1 / 512)
"""The points of the upper sums, in widths of the smooth step. They start at the level, or surround a step far above it.
"""
UNLISTED: Final = -1
"""The level of an item that is not on the public list."""
_FAR_WIDTHS: Final = 6.0
"""A step counts as far above the level from this distance on, in widths of the step."""


@proved("series.md#p0")
def ever_reached(spreads: Floats, thresholds: Floats) -> float:
    """Return a bound on the probability that a sum of independent normal variables ever reaches its threshold.

    Proof: "Each term is the integral of a decreasing function against a normal distribution, bounded by an upper sum"

    The event is the union of "the first sum is above its threshold" and, for each t, "the sum before t is below its
    threshold and the sum after t is above its threshold". Let s be the standard deviation of step t divided by the
    standard deviation of the sum after t, and let r = (1 - s^2)^(1/2). Let a and b be the thresholds before and after
    t, in standard deviations of their sums. For t, the event has the probability that E >= b and r E + s N < a for
    standard normal E and N. This is an integral of a decreasing function of E, and upper sums bound this integral.

    Args:
        spreads: The standard deviation of the variable of each step.
        thresholds: The threshold of the sum at each step.

    Returns:
        The bound.

    Example:
        >>> one = ever_reached(np.array([1.0, 1e-9]), np.array([4.0, 4.0]))
        >>> bool(1 <= one / ndtr(-4.0) < 1.001)
        True
    """
    squares = np.square(spreads)
    total = np.sqrt(np.cumsum(squares))
    # The levels are in units of the standard deviation of each sum, rounded down.
    levels = thresholds / total * np.where(thresholds > 0, 1 / _ROUNDING, _ROUNDING)
    step = spreads[1:] / total[1:]
    rest = total[:-1] / total[1:]
    found = float(ndtr(-levels[0]))
    for before, level, s, r in zip(levels[:-1], levels[1:], step, rest, strict=True):
        # Compute P(r E + s N < before | E = x) at each point x. The earlier sum is r E + s N, because the correlation
        # of the two sums is r.
        points = level + _POINTS * min(s, 1.0)
        if (before - _FAR_WIDTHS * s) / r > level:
            # If thresholds decrease from one sum to the next, this probability is about 1 up to a smooth step that is
            # far above the level.
            points = np.append(level, max(level, (before - 2 * _FAR_WIDTHS * s) / r) + FINER * min(s, 1.0))
        below = ndtr((before * _ROUNDING - r * points) / s)
        tails = ndtr(-points)
        # Use the value at the left end of each cell. The last cell has no right end.
        found += float(np.sum(below * (tails - np.append(tails[1:], 0.0))))
    return min(1.0, found * _ROUNDING)


@lru_cache(maxsize=16)
@proved("series.md#public-lists")
def proved_levels(proof: NightsProof) -> bool:
    """Return whether the levels of a public list are in order and their tails are at least the exact tails.

    Proof: "p_l is at least the probability that noise alone reaches level l on any of the T nights"
    """
    known = proof.known
    if known is None:
        return True
    sizes = len(known.lowest) == len(known.steps) == len(proof.costs) and len(known.tails) >= 1
    ranges = known.listed.size >= 1 and 0.0 < known.share < 1.0
    if not (sizes and ranges and min(known.steps) >= 1 and all(map(ge, known.tails, known.tails[1:]))):
        return False
    return all(tail >= night_tail(proof, known, level) for level, tail in enumerate(known.tails))


@proved("series.md#public-lists")
def night_tail(proof: NightsProof, known: NightLevels, level: int) -> float:
    """Return an upper bound on the probability that noise alone reaches a level (counted from 0) on any night.

    Proof: "p_l is at least the probability that noise alone reaches level l on any of the T nights"
    """
    scores = np.array(known.lowest) + level * np.array(known.steps)
    return ever_reached(spreads_of(proof.factors, proof.sigmas, proof.cell, proof.bits), exact_scores(proof, scores))


@proved("series.md#p0")
def spreads_of(factors: Sequence[int], sigmas: Sequence[float], cell: int, bits: int) -> Floats:
    """Return the standard deviation that the noise of each night adds to the score.

    Proof: "where E_t is the score in standard deviations"
    """
    found: Floats = np.multiply(factors, sigmas) / (cell * 2.0**-bits)
    return found


@proved("series.md#what-integers-and-doubles-change")
def exact_scores(proof: NightsProof, scores: Sequence[int] | Int64s) -> Floats:
    """Return lower bounds on the exact scores of items whose rounded scores reach these numbers, by night.

    Proof: "Thresholds are moved by this amount before p0 and p_l are bounded."

    A score of rounded noisy weights differs from the exact score by at most half a factor per night.
    """
    found: Floats = np.array(scores) - np.cumsum(proof.factors) / 2
    return found


@dataclass(frozen=True, slots=True)
class NightReading(Opening):
    """The noise of one night, which is added to the scores together with the weights.

    Attributes:
        number: The number of the night.
        factor: The factor by which the noisy weight enters the score.
        sigma: The standard deviation of the noise, in units of weight.
        unit: The number of units of the grid in a weight of 1.
        cell: The number of units of the grid in a cell.
        secret: The source of the bits.
    """

    number: int
    factor: int
    sigma: float
    unit: int
    cell: int
    secret: Source

    @proved("series.md#the-mechanism")
    def __call__(self, weights: Int64s, names: Uint64s, scores: Int64s) -> Int64s:
        """Return the scores after the night, as whole numbers.

        Proof: "Its score is f_1 y_1 + ... + f_t y_t."

        Args:
            weights: int64 (items,), the weights, in units; 0 for items without weight.
            names: uint64 (items, 2), the numbers that identify the items in draws.
            scores: int64 (items,), the scores before the night.
        """
        # The noise is a function of the secret, the night and the item, so it is determined even before the item has
        # users.
        draws = self.secret.draws(noise_of(self.number), names[:, 0], names[:, 1])
        return np.asarray(scores + self.factor * noisy_cells(weights, self.sigma, self.unit, self.cell, draws))

    def restricted(self) -> "NightReading":
        """Return a copy that can be sent to workers and is restricted to the noise of its night."""
        return replace(self, secret=self.secret.restrict(noise_of(self.number)))


@final
@dataclass(frozen=True, slots=True)
class NightDecision:
    """The decisions of one night, which follow from scores.

    Attributes:
        number: The number of the night.
        threshold: The score at which an item that is not on the public list is released.
        lowest: The score of the lowest level of listed items.
        step: The distance between two levels.
        levels: The number of levels, or 0 if there is no list.
    """

    number: int
    threshold: int
    lowest: int = 0
    step: int = 1
    levels: int = 0

    @proved("series.md#public-lists")
    def __call__(self, scores: Int64s, decided: Int64s, levels: Int64s) -> tuple[Int64s, Int64s]:
        """Return the night of the decision and the level of each item. The gate decides about listed items separately.

        Proof: "The level of an item after night t is the largest level that its score has reached on any night"

        Args:
            scores: int64 (items,), the scores after the night.
            decided: The night after which the item gets no more weight, or 0.
            levels: The number of levels that the item has reached so far, or `UNLISTED`.
        """
        out = (levels == UNLISTED) & (decided == 0) & (scores >= self.threshold)
        if self.levels:
            reached = np.clip((scores - self.lowest) // self.step + 1, 0, self.levels)
            levels = np.where(levels == UNLISTED, UNLISTED, np.maximum(levels, reached))
        return np.where(out, self.number, decided), levels


def from_level(levels: Int64s, level: int, night: int, before: Int64s) -> Int64s:
    """Return the night on which each item first reached a level, or 0. `before` is the previous result."""
    return np.where((before == 0) & (levels >= level), night, before)


def noise_of(night: int) -> str:
    """Return the purpose of the noise of a night."""
    return f"noise/night {night}"
