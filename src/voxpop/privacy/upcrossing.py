"""The nights of a series: a bound on the probability that noise ever reaches a threshold, and the reading of one night.

The score of an item after night t is f_1 y_1 + ... + f_t y_t. The factors f are public integers, and the noisy weights
y are whole numbers of cells, so scores are exact integers. docs/privacy/series.md contains the proof.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy.special import ndtr

from voxpop.kernels.arrays import Floats, Int64s, Uint64s
from voxpop.kernels.proved import proved
from voxpop.privacy.opening import Opening
from voxpop.privacy.sampling import noisy_cells
from voxpop.privacy.secret import Source

_ROUNDING: Final = 1 + 1e-9
"""An upper bound on the relative error of the doubles below."""
_POINTS: Final = np.arange(0.0, 12.0, 1 / 256)
FINER: Final = np.arange(0.0, 24.0, 1 / 512)
"""The points of the upper sums, in widths of the smooth step. They start at the level, or surround a step far above it.
"""
_FAR_WIDTHS: Final = 6.0
"""A step counts as far above the level from this distance on, in widths of the step."""


@proved("series.md#p0")
def ever_reached(spreads: Floats, thresholds: Floats) -> float:
    """Return a bound on the probability that a sum of independent normal variables ever reaches its threshold.

    Proof: "Each term is the integral of a decreasing function against a normal distribution, bounded by an upper sum"

    The event is the union of "the first sum is above its threshold" and, for each t, "the sum before t is below its
    threshold and the sum after t is above its threshold". Let s be the ratio of the standard deviations of a step and
    of the sum, and let r = (1 - s^2)^(1/2). The latter event has the probability that E >= b and r E + s N < a. This is
    an integral of a decreasing function of E, and upper sums bound this integral.

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
    # These are in standard deviations of each sum, rounded down.
    levels = thresholds / total * np.where(thresholds > 0, 1 / _ROUNDING, _ROUNDING)
    step = spreads[1:] / total[1:]
    rest = total[:-1] / total[1:]
    found = float(ndtr(-levels[0]))
    for before, level, s, r in zip(levels[:-1], levels[1:], step, rest, strict=True):
        # Compute P(r E' + s N' < before | E = x) for the earlier sum E', because the correlation of the two sums is r.
        points = level + _POINTS * min(s, 1.0)
        if (before - _FAR_WIDTHS * s) / r > level:
            # If thresholds decrease from one sum to the next, this probability is about 1 up to its step, which is then
            # far above the level.
            points = np.append(level, max(level, (before - 2 * _FAR_WIDTHS * s) / r) + FINER * min(s, 1.0))
        below = ndtr((before * _ROUNDING - r * points) / s)
        tails = ndtr(-points)
        # Use the value at the left end of each cell. The last cell has no right end.
        found += float(np.sum(below * (tails - np.append(tails[1:], 0.0))))
    return min(1.0, found * _ROUNDING)


@dataclass(frozen=True, slots=True)
class NightReading(Opening):
    """The noise of one night, which is added with the weights to the scores.

    Attributes:
        number: The number of the night.
        factor: The factor of the noisy weight in the score.
        sigma: The standard deviation of the noise, in weight.
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

    def __call__(self, weights: Int64s, names: Uint64s, scores: Int64s) -> Int64s:
        """Return the exact scores after the night.

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


def noise_of(night: int) -> str:
    """Return the purpose of the noise of a night."""
    return f"noise/night {night}"
