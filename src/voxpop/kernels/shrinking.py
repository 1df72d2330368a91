"""Kernels that estimate the true count of each bin from its noisy count and an approximate expected value.

A noisy count is the expected value times an unknown ratio, plus Laplace noise. The distribution of the ratio is uniform
within each of several cells. The weights of the cells are fitted to all counts together (nonparametric empirical
Bayes).
"""

from typing import Any

import numpy as np

from voxpop.kernels._jit import jit
from voxpop.kernels.arrays import Floats, Int64s

NARROW, TINY = 1e-3, 1e-300
LEAST_WEIGHT = 1e-3  # the minimum weight of a cell, in counts, so that no cell is excluded permanently


@jit
def _weigh_cells(noisy: float, expected: float, scale: float, edges: Floats, like: Floats) -> None:
    """Write the likelihood of each cell, up to a common factor."""
    # Measure distances from the nearest cell. Far from all cells, exponentials of the full distance would lose
    # precision.
    shift = max(edges[0] * expected - noisy, noisy - edges[edges.size - 1] * expected, 0.0)
    for cell in range(edges.size - 1):
        low, high = edges[cell] * expected, edges[cell + 1] * expected
        if high - low < NARROW * scale:  # otherwise the differences below would lose all precision
            like[cell] = np.exp(-(abs(noisy - 0.5 * (low + high)) - shift) / scale)
            continue
        # The integral of exp(-|noisy - n| / scale) over the cell, split at the noisy count.
        mass = 0.0
        if low < noisy:
            near, far = noisy - min(high, noisy) - shift, noisy - low - shift
            mass += scale * (np.exp(-near / scale) - np.exp(-far / scale))
        if high > noisy:
            near, far = max(low, noisy) - noisy - shift, high - noisy - shift
            mass += scale * (np.exp(-near / scale) - np.exp(-far / scale))
        # The ratio is uniform within a cell, so divide by the length of the cell. The common factor 1 / (2 scale) is
        # omitted.
        like[cell] = max(mass, 0.0) / (high - low)


@jit
def _smooth_cells(weights: Floats) -> Floats:
    """Return the mean of each weight (counted twice) and its two neighbours.

    At an edge, the weight itself replaces the missing neighbour.
    """
    last = weights.size - 1
    smooth = np.empty_like(weights)
    for cell in range(weights.size):
        # Weights 1/4, 2/4 and 1/4.
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
    """Return smooth cell weights that fit the counts well, by expectation maximisation.

    The weights of maximum likelihood overfit, because they are concentrated in few cells. Therefore each round smooths
    the weights after the maximisation (Silverman, Jones, Wilson and Nychka, "A smoothed EM approach to indirect
    estimation problems", 1990).

    Args:
        noisy: float64 by bin, the noisy counts.
        expected: float64 by bin, positive expected values.
        scale: float64 by bin, the noise scale.
        edges: float64 (cells + 1), the ratios at the edges of cells.
        weights: float64 by cell, the initial weights, with sum 1.
        prior_bins: The influence of the initial weights in each round, as a number of bins.
        rounds: The number of rounds.
        smoothings: The number of smoothing steps in each round.

    Returns:
        float64 by cell.
    """
    cells = edges.size - 1
    table = np.empty((noisy.size, cells))
    for row in range(noisy.size):
        _weigh_cells(noisy[row], expected[row], scale[row], edges, table[row])
        # (bins, cells). A factor per bin prevents underflow of whole rows, and it cancels in the quotient below.
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
                    # The expectation step computes the probability of each cell, given the count. The maximisation step
                    # takes each cell's share of the sum of these probabilities.
                    more[cell] += fitted[cell] * table[row, cell] / total
        fitted = more / more.sum()
        for _ in range(smoothings):
            # The sum is constant, because smoothing moves weight only between neighbours.
            fitted = _smooth_cells(fitted)
    return fitted


@jit
def _within(noisy: float, low: float, high: float, scale: float, place: float) -> Any:
    """Return the `place`-quantile of the density on [low, high] that is proportional to exp(-|noisy - n| / scale)."""
    split = min(max(noisy, low), high)
    left, right = 0.0, 0.0
    nearest = max(low - noisy, noisy - high, 0.0)
    # Compute the mass on both sides of the noisy count, divided by the scale. Distances are relative to the nearest
    # point, which avoids a loss of precision.
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
    """Return a quantile of each count's posterior. Level 0.5 gives the median, and a uniform random level gives a draw.

    Args:
        noisy: float64 by bin, the noisy counts.
        expected: float64 by bin, positive expected values.
        scale: float64 by bin, the noise scale.
        edges: float64 (cells + 1), the ratios at the edges of cells.
        weights: float64 (strata, cells), the weights of cells in each stratum.
        stratum: int64 by bin, the stratum of the bin.
        levels: float64 by bin, the level of the quantile, in [0, 1).

    Returns:
        float64 by bin, the quantiles, at least 0.
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
        # Find the cell in which the running sum of masses reaches the level, and then the point within the cell.
        wanted, chosen = levels[row] * mass, 0
        while chosen < like.size - 1 and wanted >= like[chosen]:
            wanted -= like[chosen]
            chosen += 1
        low, high = edges[chosen] * expected[row], edges[chosen + 1] * expected[row]
        found[row] = _within(noisy[row], low, high, scale[row], min(wanted / max(like[chosen], TINY), 1.0))
    return found
