"""The likely candidates of the next length, which are a public function of the noisy weights of the released grams.

The forecast of a gram is the Markov estimate, which is the product of the estimates of the left gram and its partner,
divided by the estimate of their overlap. All estimates are whole numbers of cells, so rounding never decides which
pairs reach a level. The pair of `a` and `b` reaches a level if and only if

    estimate(b) >= ceil(level * estimate(overlap) / (estimate(a) * FINE_CELLS)).

The measurements are cheap, so their noise is large, often ten times the noise of the votes. Therefore
`calibrated_cells` groups the grams by their level in the vote and shrinks each measurement towards the mean of its
group (James and Stein, 1961).
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
"""The number of levels per whole forecast unit."""
MOST_LEVEL = 2**26
"""The upper limit of levels, so that the product of a level and an estimate fits in 63 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """Estimates of the weights of the released grams of one length, including grams without users.

    Attributes:
        cells: int64 by rank, the weights in cells, at least 1.
        cell: The weight of one cell, which is a power of two.
    """

    cells: Int64s
    cell: float

    @property
    def capped(self) -> Int64s:
        """The estimates, capped at a public upper limit so that products do not overflow."""
        # Shape (grams,), 1 to 2^36 cells, so level * estimate < 2^26 * 2^36 fits in 63 bits.
        return np.clip(self.cells, 1, MOST_ESTIMATE)

    @property
    def total(self) -> int:
        """The sum of all estimates, which is used as the estimate of the empty gram."""
        return min(max(1, int(self.cells.sum())), MOST_ESTIMATE)


def cell_below(sigma: float) -> float:
    """Return the largest power of two that is at most sigma / `FORECAST_CELLS_IN_SIGMA`."""
    # Cells and grid units are both powers of two, so the larger of the two is a multiple of the smaller.
    return float(2.0 ** floor(log2(sigma / tuned.FORECAST_CELLS_IN_SIGMA)))


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """The forecasts of all valid candidates, stored without a list of the candidates.

    Attributes:
        valid: The candidates that the pruning rule allows.
        pairs: The same pairs, with capped estimates of the partners.
        left: int64 (left grams), the capped estimates of the left grams.
        overlap: int64 (left grams), the capped estimates of the overlaps.
        unit: The weight of one level.
    """

    valid: Candidates
    pairs: Pairs
    left: Int64s
    overlap: Int64s
    unit: float

    @staticmethod
    def of(valid: Candidates, estimates: Estimates, overlap: Int64s, overlap_cell: float) -> "Forecast":
        """Combine estimates into a forecast.

        Args:
            valid: The candidates that the pruning rule allows.
            estimates: The estimates of the left grams, which are also the partners.
            overlap: int64 (left grams), the capped estimates of the overlaps, in cells of `overlap_cell`.
            overlap_cell: The weight of one of these cells.
        """
        # The unit is the ratio of est(a) est(b) / est(overlap) in units of weight to the same quotient in cells. All
        # factors are powers of two, so the division is exact.
        unit = estimates.cell**2 / overlap_cell / FINE_CELLS
        pairs = replace(valid.pairs, estimates=estimates.capped)
        return Forecast(valid, pairs, estimates.capped, overlap, unit)

    def candidates(self, level: int) -> Candidates:
        """Return the valid candidates with a forecast that reaches a level."""
        # Shape (left grams,), ceil(level est(overlap) / (est(a) FINE)), computed once, in integers
        # (docs/privacy/ngrams.md, "One predicate").
        need = -(-(level * self.overlap) // (self.left * FINE_CELLS))
        return Candidates(self.pairs, np.minimum(need, NO_ESTIMATE))

    def level_of(self, weight: float) -> int:
        """Return the smallest level with at least this weight."""
        # The level is ceil(weight / unit).
        return min(MOST_LEVEL, int(-(-weight // self.unit)))


def bands_of(candidates: Candidates, forecast: Forecast, least: float, joined: Joined | None = None) -> Bands:
    """Partition candidates by their forecasts.

    Args:
        candidates: All candidates.
        forecast: The forecast of these candidates.
        least: The lowest forecast of the second band, in units of weight. Each further band begins at twice the
                lowest forecast of the preceding band.
        joined: The candidates, including those that passed a screening vote, or None without a screening vote.
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
    """Return the most likely candidates up to a public number, or all very likely candidates if there are more of them.

    The threshold depends on the number of candidates, and the candidates depend on the threshold. If a level is high
    enough, every higher level is also high enough, so bisection finds the smallest such level.

    Args:
        forecast: The forecast of the valid candidates.
        released: The number of released grams of the preceding length.
        length: The number of tokens in those grams.
        least: The forecast, in units of weight, below which candidates were not worth a vote at the preceding length,
            or 0 if this forecast is unknown.
        threshold_of: The threshold as a function of the number of candidates.
    """
    enough = breadth_after(length) * released

    def low_enough(level: int) -> bool:
        count = forecast.candidates(level).count
        return count <= enough or level * forecast.unit >= tuned.LIKELY * threshold_of(count)

    level = forecast.level_of(least)
    if level == 0 and forecast.valid.count <= enough:
        return forecast.valid
    # Find the smallest level with few enough candidates, or the highest possible level.
    return forecast.candidates(level + bisect_left(range(level, MOST_LEVEL), True, key=low_enough))


def breadth_after(length: int) -> int:
    """Return the maximum number of candidates of the next length per released gram of this length."""
    return tuned.FIRST_BREADTH if length == 1 else tuned.BREADTH


def worthless(sizes: Int64s, selected: Int64s) -> int:
    """Return the number of bands, starting with the least likely, that released too few candidates to be worth a vote.

    Args:
        sizes: int64 (bands), the number of candidates.
        selected: int64 (bands), the number of these candidates that were released.
    """
    poor = 0
    for band, (size, chosen) in enumerate(zip(sizes, selected, strict=True)):
        # Bands are in order of increasing likelihood, so the search ends at the first band with a sufficient yield.
        if size >= tuned.MANY and chosen >= tuned.YIELD * size:
            break
        if size >= tuned.MANY:
            poor = band + 1
    return poor


def calibrated_cells(cells: Int64s, levels: Int64s, sigma: float) -> Int64s:
    """Return the estimates of released grams.

    Args:
        cells: int64 by rank, the measurements.
        levels: int64 by rank, the number of cutpoints that the gram reached in the vote.
        sigma: The standard deviation of the noise on the measurements, in cells.

    Returns:
        The positive estimates, as int64 by rank.
    """
    order = np.argsort(levels, kind="stable")
    found = np.empty(cells.size, np.int64)
    for alike in _classes(levels[order]):
        found[order[alike]] = _drawn_together(cells[order[alike]], sigma)
    return found


def _classes(levels: Int64s) -> list[slice]:
    """Divide increasing levels into classes that are large enough, so that each level is in only one class."""
    ends = [*np.flatnonzero(np.diff(levels)) + 1, levels.size]
    begins = [0]
    for end in ends[:-1]:
        # The remaining levels join the last class, so that no class is too small.
        if end - begins[-1] >= tuned.ALIKE and levels.size - end >= tuned.ALIKE:
            begins.append(int(end))
    return [slice(*each) for each in zip(begins, [*begins[1:], levels.size], strict=True)]


def _drawn_together(cells: Int64s, sigma: float) -> Int64s:
    if not cells.size:
        return cells
    mean = max(float(cells.mean()), tuned.LEAST_MEAN * sigma)
    # The variance of the measurements is the sum of the variance of the grams' weights and the variance of the noise.
    between = max(0.0, float(cells.var()) - sigma**2)
    # Compute the best linear estimate of each gram's weight, which equals the mean if the measurements differ only in
    # noise (James and Stein, 1961).
    estimates = mean + between / (between + sigma**2) * (cells - mean)
    # Shape (grams,), in whole cells. The estimates are used as divisors, so they are at least 1.
    return np.rint(np.maximum(estimates, max(tuned.LEAST_OF_MEAN * mean, 1.0))).astype(np.int64)  # type: ignore[no-any-return]
