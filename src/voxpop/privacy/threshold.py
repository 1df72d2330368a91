"""How high a threshold must be for items that one user alone holds.

If the extra user has t novel items of weight w, at least one of them is released with probability
1 - (P(noise < threshold - w))^t. The two functions below solve that for the threshold and for the probability, over
every (t, w) that a weighting allows.
"""

import math
from functools import lru_cache
from typing import Final, Literal

import numpy as np
from scipy.special import log_ndtr, ndtri

from voxpop.arrays import Floats
from voxpop.privacy.unique_items import UniqueItems

Noise = Literal["gaussian", "laplace"]
NORMS: Final = {"laplace": 1, "gaussian": 2}
"""The norm in which a user's weights must be bounded, by the noise that hides them."""
_SINGLE = 1024  # up to here each number of novel items is looked at by itself
_RATIO = 1.005  # beyond, cells of numbers: most items of the cell, each at the weight of the fewest


def log_below(noise: Noise, x: Floats) -> Floats:
    """The logarithm of the probability that standard noise is below `x`.

    Args:
        noise: Which noise.
        x: Any real numbers.

    Returns:
        The logarithms, accurate in both tails.
    """
    if noise == "gaussian":
        return np.asarray(log_ndtr(x))
    tail = np.exp(-np.abs(x)) / 2
    return np.where(x < 0, np.minimum(x, 0) - math.log(2), np.log1p(-tail))


def exceeded_with(noise: Noise, probability: Floats) -> Floats:
    """What standard noise exceeds with a given probability.

    Args:
        noise: Which noise.
        probability: Between 0 and 1.

    Returns:
        The quantiles, accurate for small probabilities.
    """
    if noise == "gaussian":
        return -np.asarray(ndtri(probability))
    # Laplace: P(X > x) = exp(-x) / 2 for x >= 0, and the mirror image below.
    nearer = np.minimum(probability, 1 - probability)
    return np.asarray(np.where(probability <= 0.5, -1.0, 1.0) * np.log(2 * nearer))


@lru_cache(maxsize=16)
def cells(limit: int) -> tuple[Floats, Floats]:
    """Cells that cover the numbers of novel items from 1 to `limit`.

    Args:
        limit: The most novel items.

    Returns:
        The fewest and the most items of each cell; equal up to 1024.
    """
    # Up to 1024 items one by one, then ends that grow by half a percent each.
    steps = max(0, math.ceil(math.log(limit / _SINGLE) / math.log(_RATIO)))
    ends = np.floor(_SINGLE * _RATIO ** np.arange(1, steps + 1))
    most = np.unique(np.minimum(np.concatenate([np.arange(1.0, min(limit, _SINGLE) + 1), ends]), limit))
    return np.concatenate([[1.0], most[:-1] + 1]), most


def heaviest(novelty: UniqueItems, sensitivity: float) -> tuple[Floats, Floats]:
    """The cases that decide the threshold: how many novel items, and the most that each can weigh.

    Args:
        novelty: What the weighting allows.
        sensitivity: The bound on a user's weights in `novelty.norm`.

    Returns:
        Numbers of items and weights.
    """
    if novelty.shape == "fixed":
        return np.array([float(novelty.limit)]), np.array([novelty.least])
    if novelty.shape == "any":
        return np.array([float(novelty.limit)]), np.array([float(sensitivity)])
    # n items of norm S in all weigh S n^(-1/p) each: of a cell the most items, with the weight of the fewest.
    fewest, most = cells(novelty.limit)
    return most, sensitivity * fewest ** (-1 / novelty.norm)


def lowest_threshold(novelty: UniqueItems, noise: Noise, scale: float, delta: float, sensitivity: float) -> float:
    """The threshold that some novel item reaches with probability at most `delta`.

    Args:
        novelty: What the weighting allows.
        noise: Which noise.
        scale: Its scale.
        delta: The probability.
        sensitivity: The bound on a user's weights in `novelty.norm`.

    Returns:
        The threshold, in weight.

    Example:
        >>> hundred = UniqueItems(limit=100, shape="symmetric", least=0.1, norm=2)
        >>> round(lowest_threshold(hundred, "gaussian", 1.3327913, math.exp(-10) / 2, 1.0), 5)
        6.82366
    """
    # P(none of n passes) = (1 - p)^n = 1 - delta, so p = 1 - (1 - delta)^(1/n); by case, float64 (cases).
    items, weights = heaviest(novelty, sensitivity)
    each = -np.expm1(math.log1p(-delta) / items)
    return float(np.max(weights + scale * exceeded_with(noise, each)))


def release_probability(
    novelty: UniqueItems, noise: Noise, scale: float, threshold: float, sensitivity: float
) -> float:
    """The probability that some novel item reaches the threshold, at most.

    Args:
        novelty: What the weighting allows.
        noise: Which noise.
        scale: Its scale.
        threshold: In weight.
        sensitivity: The bound on a user's weights in `novelty.norm`.

    Returns:
        The largest probability over all that the weighting allows.
    """
    items, weights = heaviest(novelty, sensitivity)
    # 1 - P(noise < (threshold - w) / scale)^n, by case.
    return float(np.max(-np.expm1(items * log_below(noise, (threshold - weights) / scale))))
