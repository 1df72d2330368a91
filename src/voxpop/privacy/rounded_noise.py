"""Noisy weights on a coarse grid, exact where doubles could err.

The rounded value of weight plus Gaussian noise is a function of the exact Gaussian mechanism's output, so it costs no
more. It is drawn by inverting the distribution at 128 uniform bits. Doubles settle nearly all values; where the noisy
weight lies too near the border of two cells, or far in a tail, it is computed again in eighty digits.
"""

from typing import Any

import numpy as np
from scipy.special import ndtri

from voxpop.arrays import Floats, Int64s, Uint64s
from voxpop.privacy import precise

BORDER = 2.0**-36
"""Distance to a border, relative to the size of the value in cells, within which doubles are not trusted. Their error
is below 2^-42 of that size outside the tails: `tests/privacy/test_rounded_noise.py`."""
TAIL = 2.0**36
"""First words nearer than this to either end have too few bits left to invert; one draw in 2^27."""


def noisy_cells(weights: Int64s, sigma: float, unit: int, cell: int, draws: Uint64s) -> Int64s:
    """Return weights plus Gaussian noise, rounded to whole cells, halves up.

    Args:
        weights: int64, in units.
        sigma: standard deviation of the noise, in weight.
        unit: units in a weight of 1.
        cell: units in a cell.
        draws: uint64 (weights, 2), uniform: `Secret.draws`.

    Returns:
        int64, in cells.

    Example:
        >>> noisy_cells(np.array([96]), 1.0, 16, 4, np.array([[2**63, 0]], dtype=np.uint64)).tolist()
        [24]
    """
    values, size, ends = _in_doubles(weights, sigma, unit, cell, draws)
    # floor(x + 1/2) rounds to the nearest cell, halves up; (weights,), in cells.
    cells: Int64s = np.floor(values).astype(np.int64)
    # Both tests look at the draw and the weight, and neither changes the law: eighty digits settle the same value.
    doubtful = (np.abs(values - np.round(values)) <= BORDER * size) | (ends < TAIL)
    for index in np.flatnonzero(doubtful):
        with precise.ALONE:
            value = _exact(int(weights[index]), sigma, unit, cell, draws[index])
            cells[index] = int(precise.context.floor(value))
    return cells


def _in_doubles(weights: Int64s, sigma: float, unit: int, cell: int, draws: Uint64s) -> tuple[Floats, Floats, Floats]:
    """Return half a cell more than the noisy weights, their size, both in cells, and words from the nearer end."""
    # Of 128 bits the upper 64: the lower ones move a deviation by less than BORDER allows, but in the tails.
    words = draws[:, 0].astype(np.float64)
    upper = draws[:, 0] >= np.uint64(1 << 63)
    # Counted from the nearer end, where a double keeps its digits; Phi^-1 is odd.
    ends = np.where(upper, (~draws[:, 0]).astype(np.float64), words)
    deviations = np.where(upper, -1.0, 1.0) * ndtri((ends + 0.5) / 2.0**64)
    # (weight + sigma N) / cell + 1/2, both in units of the grid.
    values = weights / cell + deviations * (sigma * unit / cell) + 0.5
    size = np.abs(weights / cell) + np.abs(deviations) * (sigma * unit / cell) + 1.0
    return values, size, ends


def _exact(weight: int, sigma: float, unit: int, cell: int, words: Uint64s) -> Any:
    """Return half a cell more than the noisy weight, in cells and eighty digits."""
    # (2 u + 1) / 2^129: the middle of the cell that the 128 bits name, never 0 or 1.
    uniform = precise.number(2 * ((int(words[0]) << 64) | int(words[1])) + 1) / precise.number(1 << 129)
    deviation: Any = precise.normal_quantile(uniform)
    value = (precise.number(weight) + deviation * precise.number(sigma) * unit) / cell
    return value + precise.number(0.5)
