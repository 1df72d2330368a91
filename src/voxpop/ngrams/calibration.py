"""Estimates put right by the votes: a measurement is drawn to the mean of those grams that voted alike. All is public.

Measurements are cheap and therefore coarse, often ten times coarser than the votes. Votes are fine but end at the
cutoff, and sequential weightings share weight unlike the forecast. So grams are parted by their level in the vote: the
mean measurement of a hundred grams of one level is ten times as exact as one, and where the measurements of a level
vary no more than their noise does, that mean is all there is to know. In between, each gram gets its best linear
estimate (James and Stein 1961).
"""

import numpy as np

from voxpop.arrays import Int64s
from voxpop.ngrams.schedule import ALIKE, LEAST_MEAN, LEAST_OF_MEAN


def calibrated(cells: Int64s, levels: Int64s, sigma: float) -> Int64s:
    """Return the estimates of released grams.

    Args:
        cells: int64, measured, by rank.
        levels: int64, cutpoints reached in the vote, by rank.
        sigma: standard deviation of the measurements, in cells.

    Returns:
        int64, positive.
    """
    order = np.argsort(levels, kind="stable")
    found = np.empty(cells.size, np.int64)
    for alike in _classes(levels[order]):
        found[order[alike]] = _drawn_together(cells[order[alike]], sigma)
    return found


def _classes(levels: Int64s) -> list[slice]:
    """Part rising levels, no level in two parts, into parts that are large enough."""
    ends = [*np.flatnonzero(np.diff(levels)) + 1, levels.size]
    begins = [0]
    for end in ends[:-1]:
        # What is left over at the end joins the last class, so none is smaller.
        if end - begins[-1] >= ALIKE and levels.size - end >= ALIKE:
            begins.append(int(end))
    return [slice(*each) for each in zip(begins, [*begins[1:], levels.size], strict=True)]


def _drawn_together(cells: Int64s, sigma: float) -> Int64s:
    if not cells.size:
        return cells
    mean = max(float(cells.mean()), LEAST_MEAN * sigma)
    # Variance of measurements = that of the grams + that of the noise; the first is what is left.
    between = max(0.0, float(cells.var()) - sigma**2)
    # The best linear estimate of each gram: all the way to the mean where only noise differs (James and Stein, 1961).
    estimates = mean + between / (between + sigma**2) * (cells - mean)
    # (grams,), whole cells of at least 1: estimates are divided by.
    return np.rint(np.maximum(estimates, max(LEAST_OF_MEAN * mean, 1.0))).astype(np.int64)  # type: ignore[no-any-return]
