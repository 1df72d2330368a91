"""The threshold for items that only one user holds.

If the extra user has t novel items of weight w, at least one of them is released with probability
1 - (P(noise < threshold - w))^t. The two functions below solve that for the threshold and for the probability, over
every (t, w) that a weighting allows.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, get_args

import numpy as np
from scipy.special import log_ndtr, ndtri

from voxpop.errors import BudgetError
from voxpop.kernels.arrays import Floats

Shape = Literal["fixed", "even", "symmetric", "any"]
_SHAPES: tuple[str, ...] = get_args(Shape)


@dataclass(frozen=True, slots=True)
class UniqueItems:
    """The weight that items of only one user can have.

    An item of only one user must stay below the threshold, or its release reveals that user. The room below the
    threshold depends on the division of a user's unit of weight by the weighting. Every shape requires that a user
    gives each of its (at most `limit`) items a positive weight as long as no other user holds it; otherwise items of
    other users could be novel too. `symmetric` also requires equal weights of such items, after any earlier results.

    Args:
        limit: The most items of one user.
        shape: `fixed`: every item weighs `least`. `even`: a user with n items gives each at most n^(-1/norm).
            `symmetric`: novel items weigh the same, at least `least`, at most t^(-1/norm) when there are t of them.
            `any`: each of up to `limit` novel items weighs at most the sensitivity.
        least: The least positive weight a user gives an item.
        norm: 1 if users' weights are bounded in sum (Laplace noise), 2 if in sum of squares (Gaussian noise).

    Raises:
        BudgetError: A value is out of range.

    Example:
        >>> UniqueItems(limit=100, shape="symmetric", least=0.0999, norm=2).limit
        100
    """

    limit: int
    shape: Shape
    least: float
    norm: int

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise BudgetError(
                f"`limit` must be at least 1, got {self.limit}. It is the most items one user may contribute; "
                "100 is a common start."
            )
        if self.shape not in _SHAPES:
            raise BudgetError(f"`shape` must be one of {', '.join(_SHAPES)}, got {self.shape!r}.")
        if not 0 < self.least < float("inf"):
            raise BudgetError(f"`least` must be a finite weight above 0, got {self.least}.")
        if self.norm not in (1, 2):
            raise BudgetError(f"`norm` must be 1 (Laplace) or 2 (Gaussian), got {self.norm}.")


Noise = Literal["gaussian", "laplace"]
NORMS: Final = {"laplace": 1, "gaussian": 2}
"""The norm in which a user's weights must be bounded, by the noise that hides them."""
_SINGLE = 1024  # up to here each number of novel items is evaluated separately
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
    """Return the value that standard noise exceeds with a given probability.

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
    """Return the cases that decide the threshold: numbers of novel items, and the largest weight of each.

    Args:
        novelty: The weights that the weighting allows.
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
        novelty: The weights that the weighting allows.
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
        novelty: The weights that the weighting allows.
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
