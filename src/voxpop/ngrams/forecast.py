"""How much weight the grams of the next length are likely to get: public, from noisy weights of released grams.

The forecast of a gram is the Markov estimate: the estimate of the left gram times that of its partner, over that of
their overlap. All are whole numbers of cells, so which pairs reach a level is decided without rounding: the pair of `a`
and `b` does exactly where `estimate(b) >= ceil(level * estimate(overlap) / (estimate(a) * FINE))`.
"""

from dataclasses import dataclass, replace
from math import floor, log2

import numpy as np

from voxpop.arrays import Int64s
from voxpop.ngrams.candidates import MOST_ESTIMATE, NOTHING, Candidates, Pairs
from voxpop.ngrams.schedule import CELLS_IN_SIGMA

FINE = 2**8
"""Steps of a level in one whole forecast unit."""
MOST_LEVEL = 2**26
"""Levels stay below it, so that level times estimate fits into 63 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """Noisy weights of the released grams of one length, whether somebody holds them or not.

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
    """Return the largest power of two of at most sigma / `CELLS_IN_SIGMA`."""
    # A power of two, so that cells and units of the grid divide each other.
    return float(2.0 ** floor(log2(sigma / CELLS_IN_SIGMA)))


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """Forecasts of all valid candidates, without listing them.

    Attributes:
        valid: the candidates that the pruning rule allows.
        pairs: the same pairs, partners with their capped estimates.
        left: int64 (left grams), capped estimates.
        overlap: int64 (left grams), capped estimates of what both share.
        unit: weight of one level.
    """

    valid: Candidates
    pairs: Pairs
    left: Int64s
    overlap: Int64s
    unit: float

    @staticmethod
    def of(valid: Candidates, left: Estimates, partners: Estimates, overlap: Int64s, overlap_cell: float) -> "Forecast":
        """Put estimates together.

        Args:
            valid: the candidates that the pruning rule allows.
            left: of the left grams.
            partners: of the partners.
            overlap: int64 (left grams), capped, in cells of `overlap_cell`.
            overlap_cell: weight of such a cell.
        """
        # est(a) est(b) / est(overlap), in weight, over cells of each; a power of two, so without rounding.
        unit = left.cell * partners.cell / overlap_cell / FINE
        return Forecast(valid, replace(valid.pairs, estimates=partners.capped), left.capped, overlap, unit)

    def candidates(self, level: int) -> Candidates:
        """Return the valid candidates whose forecast reaches a level."""
        # (left grams,): ceil(level est(overlap) / (est(a) FINE)), once, in whole numbers (docs/privacy/ngrams.md, "One
        # predicate").
        need = -(-(level * self.overlap) // (self.left * FINE))
        return Candidates(self.pairs, np.minimum(need, NOTHING))

    def level_of(self, weight: float) -> int:
        """Return the least level that stands for at least this weight."""
        # ceil(weight / unit).
        return min(MOST_LEVEL, int(-(-weight // self.unit)))
