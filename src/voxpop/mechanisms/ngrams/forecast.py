"""Which candidates of the next length are likely: a public function of noisy weights of the released grams.

The forecast of a gram is the Markov estimate: the estimate of the left gram times that of its partner, over that of
their overlap. All estimates are whole numbers of cells, so no rounding decides which pairs reach a level: the pair of
`a` and `b` reaches it exactly where `estimate(b) >= ceil(level * estimate(overlap) / (estimate(a) * FINE))`.

The measurements are cheap and therefore coarse, often ten times coarser than the votes. So `calibrated` groups the
grams by their level in the vote and draws each measurement to the mean of its group (James and Stein 1961).
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import floor, log2

import numpy as np

from voxpop.kernels.arrays import Int64s
from voxpop.mechanisms.ngrams import constants as tuned
from voxpop.mechanisms.ngrams.candidates import MOST_ESTIMATE, NO_ESTIMATE, Bands, Candidates, Joined, Pairs

FINE_CELLS = 2**8
"""Steps of a level in one whole forecast unit."""
MOST_LEVEL = 2**26
"""Levels stay below it, so that level times estimate fits into 63 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """Noisy weights of the released grams of one length, including grams without users.

    Attributes:
        cells: int64, by rank, in cells; at least 1.
        cell: weight of a cell, a power of two.
    """

    cells: Int64s
    cell: float

    @property
    def capped(self) -> Int64s:
        """Estimates that can be multiplied: up to a public cap."""
        # (grams,), 1 to 2^36 cells: level * estimate < 2^26 * 2^36 fits 63 bits.
        return np.clip(self.cells, 1, MOST_ESTIMATE)

    @property
    def total(self) -> int:
        """The sum of all, as the estimate of the empty gram."""
        return min(max(1, int(self.cells.sum())), MOST_ESTIMATE)


def cell_below(sigma: float) -> float:
    """Return the largest power of two of at most sigma / `FORECAST_CELLS_IN_SIGMA`."""
    # A power of two, so that cells and units of the grid divide each other.
    return float(2.0 ** floor(log2(sigma / tuned.FORECAST_CELLS_IN_SIGMA)))


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """Forecasts of all valid candidates, without listing them.

    Attributes:
        valid: the candidates that the pruning rule allows.
        pairs: the same pairs, partners with their capped estimates.
        left: int64 (left grams), capped estimates.
        overlap: int64 (left grams), capped estimates of the shared part.
        unit: weight of one level.
    """

    valid: Candidates
    pairs: Pairs
    left: Int64s
    overlap: Int64s
    unit: float

    @staticmethod
    def of(valid: Candidates, estimates: Estimates, overlap: Int64s, overlap_cell: float) -> "Forecast":
        """Put estimates together.

        Args:
            valid: the candidates that the pruning rule allows.
            estimates: of the left grams, which are the partners, too.
            overlap: int64 (left grams), capped, in cells of `overlap_cell`.
            overlap_cell: weight of such a cell.
        """
        # est(a) est(b) / est(overlap), in weight, over cells of each; a power of two, so without rounding.
        unit = estimates.cell**2 / overlap_cell / FINE_CELLS
        pairs = replace(valid.pairs, estimates=estimates.capped)
        return Forecast(valid, pairs, estimates.capped, overlap, unit)

    def candidates(self, level: int) -> Candidates:
        """Return the valid candidates whose forecast reaches a level."""
        # (left grams,): ceil(level est(overlap) / (est(a) FINE)), once, in whole numbers (docs/privacy/ngrams.md, "One
        # predicate").
        need = -(-(level * self.overlap) // (self.left * FINE_CELLS))
        return Candidates(self.pairs, np.minimum(need, NO_ESTIMATE))

    def level_of(self, weight: float) -> int:
        """Return the least level that stands for at least this weight."""
        # ceil(weight / unit).
        return min(MOST_LEVEL, int(-(-weight // self.unit)))


def bands_of(candidates: Candidates, forecast: Forecast, least: float, joined: Joined | None = None) -> Bands:
    """Partition candidates by their forecasts.

    Args:
        candidates: all of them.
        forecast: of these candidates.
        least: forecast of weight where the second band begins; each band ends at twice its beginning.
        joined: the candidates with those that passed a screening vote.
    """
    sets, level = [candidates], forecast.level_of(least)
    while len(sets) < tuned.MOST_BANDS and 0 < level < MOST_LEVEL:
        likelier = forecast.candidates(level)
        if likelier.count < tuned.FEWEST_IN_BAND:
            break
        if likelier.count < sets[-1].count:
            sets.append(likelier)
        level *= 2
    return Bands(tuple(sets), joined, len(tuned.SCREENING_STEPS) + 1)


def pruned(
    forecast: Forecast, released: int, length: int, least: float, threshold_of: Callable[[int], float]
) -> Candidates:
    """Return the candidates worth a vote: the most likely ones up to a public number, or all that are very likely.

    The threshold depends on the number of candidates, and the candidates on the threshold. Both conditions, once true,
    stay true as the level rises, so bisection finds the level.

    Args:
        forecast: of the valid candidates.
        released: number of released grams of the length before.
        length: tokens in those grams.
        least: forecast, in weight, below which candidates were not worth a vote at the length before; 0 if unknown.
        threshold_of: the threshold as a function of the number of candidates.
    """
    enough = breadth_after(length) * released

    def low_enough(level: int) -> bool:
        count = forecast.candidates(level).count
        return count <= enough or level * forecast.unit >= tuned.LIKELY * threshold_of(count)

    level = forecast.level_of(least)
    if level == 0 and forecast.valid.count <= enough:
        return forecast.valid
    # The least level that is low enough, or the last level there is.
    return forecast.candidates(level + bisect_left(range(level, MOST_LEVEL), True, key=low_enough))


def breadth_after(length: int) -> int:
    """Return the number of candidates that a released gram of this length is worth."""
    return tuned.FIRST_BREADTH if length == 1 else tuned.BREADTH


def worthless(sizes: Int64s, selected: Int64s) -> int:
    """Return the number of bands, from the least likely one, that released too little for their votes.

    Args:
        sizes: int64 (bands), candidates.
        selected: int64 (bands), number of these candidates that were released.
    """
    poor = 0
    for band, (size, chosen) in enumerate(zip(sizes, selected, strict=True)):
        # Bands rise in likelihood: the first good one ends the search.
        if size >= tuned.MANY and chosen >= tuned.YIELD * size:
            break
        if size >= tuned.MANY:
            poor = band + 1
    return poor


def calibrated_cells(cells: Int64s, levels: Int64s, sigma: float) -> Int64s:
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
        # The remainder at the end joins the last class, so no class is smaller.
        if end - begins[-1] >= tuned.ALIKE and levels.size - end >= tuned.ALIKE:
            begins.append(int(end))
    return [slice(*each) for each in zip(begins, [*begins[1:], levels.size], strict=True)]


def _drawn_together(cells: Int64s, sigma: float) -> Int64s:
    if not cells.size:
        return cells
    mean = max(float(cells.mean()), tuned.LEAST_MEAN * sigma)
    # Variance of measurements = that of the grams + that of the noise; the first is the difference.
    between = max(0.0, float(cells.var()) - sigma**2)
    # The best linear estimate of each gram: all the way to the mean where only noise differs (James and Stein, 1961).
    estimates = mean + between / (between + sigma**2) * (cells - mean)
    # (grams,), whole cells of at least 1: estimates are divided by.
    return np.rint(np.maximum(estimates, max(tuned.LEAST_OF_MEAN * mean, 1.0))).astype(np.int64)  # type: ignore[no-any-return]
