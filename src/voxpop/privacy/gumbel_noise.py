"""Gumbel noise in whole cells: which items come first under it is the exponential mechanism, pick by pick.

With E exponential, -ln(E) / rate is Gumbel noise. The order of `count + noise`, highest first, is that of E / w,
lowest first, with w = e^(rate * count); so the first is item i with probability w_i / (sum of all w), and so on among
the rest.
docs/privacy/top.md says what cells and doubles change.
"""

from typing import Final

import numpy as np

from voxpop.arrays import Int64s, Uint64s

CELLS: Final = 2**28
"""Cells in a count of one. Counts stay below 2^33 and noise below 2^27, so sums fit 64 bits."""
LEAST_RATE: Final = 2.0**-20
"""Noise of a lower rate could leave the 64 bits."""
DOUBLES: Final = 2.0**-43
"""More than doubles move the logarithm of E, beyond draws of probability `LOST`."""
LOST: Final = 2.0**-77
"""Chance that a draw lies within 2^50 steps of either end, where 128 bits are too few for `DOUBLES`."""


def gumbel_cells(weights: Int64s, rate: float, unit: int, draws: Uint64s) -> Int64s:
    """Return counts plus Gumbel noise, rounded to whole cells, halves up.

    Args:
        weights: int64, in units, below 2^33 counts.
        rate: of the noise, per count, at least `LEAST_RATE`.
        unit: units in a count of 1; divides `CELLS`.
        draws: uint64 (weights, 2), uniform: `Secret.draws`.

    Returns:
        int64, in cells.

    Example:
        >>> noisy = gumbel_cells(np.array([16]), 1.0, 16, np.array([[2**63, 0]], dtype=np.uint64))
        >>> round(noisy.item() / CELLS, 6)  # 1 - ln(ln 2)
        1.366513
    """
    # U from 128 bits, or 1 - U where that is the smaller one: ~draws is 2^128 - 1 - draws.
    upper = draws[:, 0] >= np.uint64(1 << 63)
    high, low = np.where(upper[:, None], ~draws, draws).astype(np.float64).T
    tails = (high * 2.0**64 + low + 0.5) * 2.0**-128
    # E = -ln(1 - U) in either case, with the relative accuracy of the small side.
    exponential = np.where(upper, -np.log(tails), -np.log1p(-tails))
    noise = np.floor(-np.log(exponential) / rate * CELLS + 0.5)
    return np.asarray(weights * (CELLS // unit) + noise.astype(np.int64), np.int64)


def log_error(rate: float) -> float:
    """Bound how far cells and doubles move the logarithm of E, for all draws but those of probability `LOST`."""
    return rate / CELLS + DOUBLES
