"""The nights of a series: a bound on noise that ever reaches a threshold, and the reading of one night.

The score of an item after night t is f_1 y_1 + ... + f_t y_t, with public whole factors f and noisy weights y in whole
cells: an exact integer. docs/privacy/series.md has the proof.
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
"""More than the relative error of the doubles below."""
_POINTS: Final = np.arange(0.0, 12.0, 1 / 256)
FINER: Final = np.arange(0.0, 24.0, 1 / 512)
"""Where the upper sums change, in widths of the smooth step, from the level and around a step far above it."""
_FAR_WIDTHS: Final = 6.0
"""Widths."""


@proved("series.md#p0")
def ever_reached(spreads: Floats, thresholds: Floats) -> float:
    """Bound the probability that a sum of independent normal variables ever reaches its threshold.

    Proof: "Each term is the integral of a falling function against a normal distribution, bounded by an upper sum"

    The event is the union of "the first sum is above" and, for each t, "the sum before t is below its threshold and the
    sum of t is above". With s the standard deviation of a step in that of the sum and r = (1 - s^2)^(1/2), the latter
    has the probability that E >= b and r E + s N < a, which is an integral of a falling function of E.
    Upper sums bound it.

    Args:
        spreads: By step, the standard deviation of the variable that it adds.
        thresholds: By step, the threshold of the sum.

    Returns:
        The bound.

    Example:
        >>> one = ever_reached(np.array([1.0, 1e-9]), np.array([4.0, 4.0]))
        >>> bool(1 <= one / ndtr(-4.0) < 1.001)
        True
    """
    squares = np.square(spreads)
    total = np.sqrt(np.cumsum(squares))
    # Rounded down: in standard deviations of each sum.
    levels = thresholds / total * np.where(thresholds > 0, 1 / _ROUNDING, _ROUNDING)
    step = spreads[1:] / total[1:]
    rest = total[:-1] / total[1:]
    found = float(ndtr(-levels[0]))
    for before, level, s, r in zip(levels[:-1], levels[1:], step, rest, strict=True):
        # P(r E' + s N' < before | E = x), with E' the earlier sum: the correlation of both sums is r.
        points = level + _POINTS * min(s, 1.0)
        if (before - _FAR_WIDTHS * s) / r > level:
            # Thresholds fall from one sum to the next: the probability is about 1 up to its step, far above the level.
            points = np.append(level, max(level, (before - 2 * _FAR_WIDTHS * s) / r) + FINER * min(s, 1.0))
        below = ndtr((before * _ROUNDING - r * points) / s)
        tails = ndtr(-points)
        # Over each cell the value at its left end; the last cell has no right end.
        found += float(np.sum(below * (tails - np.append(tails[1:], 0.0))))
    return min(1.0, found * _ROUNDING)


@dataclass(frozen=True, slots=True)
class NightReading(Opening):
    """The noisy weights of one night, added to the scores.

    Attributes:
        number: Of the night.
        factor: Of the noisy weight in the score.
        sigma: Standard deviation of the noise, in weight.
        unit: Units of the grid in a weight of 1.
        cell: Units in a cell.
        secret: Source of the bits.
    """

    number: int
    factor: int
    sigma: float
    unit: int
    cell: int
    secret: Source

    def __call__(self, weights: Int64s, names: Uint64s, scores: Int64s) -> Int64s:
        """Return the scores after the night, exact.

        Args:
            weights: int64 (items), in units; 0 for items without weight.
            names: uint64 (items, 2), by which draws name an item.
            scores: int64 (items), before the night.
        """
        # A function of the secret, the night and the item: an item has this noise also before a user holds it.
        draws = self.secret.draws(noise_of(self.number), names[:, 0], names[:, 1])
        return np.asarray(scores + self.factor * noisy_cells(weights, self.sigma, self.unit, self.cell, draws))

    def restricted(self) -> "NightReading":
        """Return a reading that can be sent to workers and is restricted to the noise of its night."""
        return replace(self, secret=self.secret.restrict(noise_of(self.number)))


def noise_of(night: int) -> str:
    """Return the purpose of the noise of a night."""
    return f"noise/night {night}"
