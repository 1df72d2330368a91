"""Kernels that estimate the counts behind noisy counts, bin by bin, from roughly known expected values.

A count is its expected value times an unknown ratio, plus Laplace noise. The ratio's distribution is uniform within
each of some cells, whose weights are fitted to all counts together: nonparametric empirical Bayes.
"""

from typing import Any

import numpy as np

from voxpop.kernels._jit import jit
from voxpop.kernels.arrays import Floats, Int64s

NARROW, TINY = 1e-3, 1e-300
LEAST_WEIGHT = 1e-3  # of a cell, in counts, so that none is ruled out for good


@jit
def _weigh_cells(noisy: float, expected: float, scale: float, edges: Floats, like: Floats) -> None:
    """Write the likelihood of each cell, up to one factor for all."""
    # From the nearest of all cells: far from them, exponentials of the whole distance lose their digits.
    shift = max(edges[0] * expected - noisy, noisy - edges[edges.size - 1] * expected, 0.0)
    for cell in range(edges.size - 1):
        low, high = edges[cell] * expected, edges[cell + 1] * expected
        if high - low < NARROW * scale:  # the differences below would lose all digits
            like[cell] = np.exp(-(abs(noisy - 0.5 * (low + high)) - shift) / scale)
            continue
        # The integral of exp(-|noisy - n| / scale) over the cell, below and above the noisy count apart.
        mass = 0.0
        if low < noisy:
            near, far = noisy - min(high, noisy) - shift, noisy - low - shift
            mass += scale * (np.exp(-near / scale) - np.exp(-far / scale))
        if high > noisy:
            near, far = max(low, noisy) - noisy - shift, high - noisy - shift
            mass += scale * (np.exp(-near / scale) - np.exp(-far / scale))
        # The ratio is uniform within a cell: means over its length, but for the factor 1 / (2 scale) of all of them.
        like[cell] = max(mass, 0.0) / (high - low)


@jit
def _smooth_cells(weights: Floats) -> Floats:
    """Return the mean of each weight, taken twice, and its neighbours; an edge weight replaces a missing one."""
    last = weights.size - 1
    smooth = np.empty_like(weights)
    for cell in range(weights.size):
        # Weights 1, 2, 1 of 4.
        smooth[cell] = (weights[max(cell - 1, 0)] + 2.0 * weights[cell] + weights[min(cell + 1, last)]) / 4.0
    return smooth


@jit
def fit_ratios(
    noisy: Floats,
    expected: Floats,
    scale: Floats,
    edges: Floats,
    weights: Floats,
    prior_bins: float,
    rounds: int,
    smoothings: int,
) -> Floats:
    """Return smooth weights of cells that explain the counts well, by expectation maximisation.

    The best-fitting weights overfit: they concentrate in few cells. So each round smooths the weights that it
    has maximised (Silverman, Jones, Wilson and Nychka, "A smoothed EM approach to indirect estimation problems", 1990).

    Args:
        noisy: float64 by bin.
        expected: float64 by bin, above 0.
        scale: float64 by bin, of the noise.
        edges: float64 (cells + 1), of ratios.
        weights: float64 by cell, where to begin; they sum to 1.
        prior_bins: as many bins the first weights count like in each round.
        rounds: number of rounds.
        smoothings: number of smoothing steps in each round.

    Returns:
        float64 by cell.
    """
    cells = edges.size - 1
    table = np.empty((noisy.size, cells))
    for row in range(noisy.size):
        _weigh_cells(noisy[row], expected[row], scale[row], edges, table[row])
        # (bins, cells): a factor by bin, which the quotient below loses again, keeps rows from vanishing.
        largest = table[row].max()
        for cell in range(cells):
            table[row, cell] = table[row, cell] / largest if largest > 0.0 else 1.0
    fitted = weights.copy()
    for _ in range(rounds):
        more = LEAST_WEIGHT + prior_bins * weights
        for row in range(noisy.size):
            total = 0.0
            for cell in range(cells):
                total += fitted[cell] * table[row, cell]
            if total > 0.0:
                for cell in range(cells):
                    # Expectation: the probability of each cell, given the count. Maximisation: its share of the sum of
                    # these.
                    more[cell] += fitted[cell] * table[row, cell] / total
        fitted = more / more.sum()
        for _ in range(smoothings):
            # The sum is constant: smoothing moves weight only between neighbours.
            fitted = _smooth_cells(fitted)
    return fitted


@jit
def _within(noisy: float, low: float, high: float, scale: float, place: float) -> Any:
    """Return the point between low and high below which lies `place` of the mass of exp(-|noisy - n| / scale)."""
    split = min(max(noisy, low), high)
    left, right = 0.0, 0.0
    nearest = max(low - noisy, noisy - high, 0.0)
    # The mass on either side of the noisy count, over scale; distances from the nearest point, so that it keeps its
    # digits.
    if split > low:
        left = np.exp(-(noisy - split - nearest) / scale) - np.exp(-(noisy - low - nearest) / scale)
    if split < high:
        right = np.exp(-(split - noisy - nearest) / scale) - np.exp(-(high - noisy - nearest) / scale)
    wanted = place * (left + right)
    if left + right <= 0.0:
        return low + place * (high - low)
    if wanted < left:
        base = np.exp(-(noisy - low - nearest) / scale)
        point = noisy - nearest + scale * np.log(base + wanted)
    else:
        base = np.exp(-(split - noisy - nearest) / scale)
        point = noisy + nearest - scale * np.log(max(base - (wanted - left), TINY))
    return min(max(point, low), high)


@jit
def count_quantiles(
    noisy: Floats, expected: Floats, scale: Floats, edges: Floats, weights: Floats, stratum: Int64s, levels: Floats
) -> Floats:
    """Return a quantile of the posterior of each count: the median at level 0.5, a draw at a uniform level.

    Args:
        noisy: float64 by bin.
        expected: float64 by bin, above 0.
        scale: float64 by bin.
        edges: float64 (cells + 1).
        weights: float64 (strata, cells).
        stratum: int64 by bin, whose weights hold for it.
        levels: float64 by bin, in [0, 1).

    Returns:
        float64 by bin, at least 0.
    """
    like = np.empty(edges.size - 1)
    found = np.empty(noisy.size)
    for row in range(noisy.size):
        _weigh_cells(noisy[row], expected[row], scale[row], edges, like)
        like *= weights[stratum[row]]
        mass = like.sum()
        if mass <= 0.0:
            found[row] = max(noisy[row], 0.0)
            continue
        # The cell in which the running sum of masses passes the level, and the place within it.
        wanted, chosen = levels[row] * mass, 0
        while chosen < like.size - 1 and wanted >= like[chosen]:
            wanted -= like[chosen]
            chosen += 1
        low, high = edges[chosen] * expected[row], edges[chosen + 1] * expected[row]
        found[row] = _within(noisy[row], low, high, scale[row], min(wanted / max(like[chosen], TINY), 1.0))
    return found
