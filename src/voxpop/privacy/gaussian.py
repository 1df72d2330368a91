"""The analytic Gaussian mechanism, accurate for every delta from 1e-300 to 0.1.

The exact delta of a Gaussian mechanism with a sensitivity of `mu` times sigma is

    delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)        (Balle and Wang, 2018)

for every real epsilon. The two terms nearly cancel, and the exponential can overflow. Therefore, with a = mu/2 -
epsilon/mu and b = a - mu, the logarithm of delta is computed as the logarithm of e^(-a^2/2)/2 times the increase of
g(x) = erfcx(-x/sqrt 2) from b to a.

The threshold limits the release of items that only one user has. If the additional user has t novel items of weight w,
at least one of them is released with probability 1 - (P(noise < threshold - w))^t. Two functions below compute the
lowest sufficient threshold and the largest such probability over every (t, w) that a weighting allows.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx, log_ndtr, ndtri

from voxpop.errors import BudgetError, InternalError
from voxpop.kernels.arrays import Floats
from voxpop.kernels.proved import proved
from voxpop.privacy import precise
from voxpop.privacy.numerics import crossing

_ROOT_HALF = math.sqrt(0.5)
_SLOPE_AT_ZERO = math.sqrt(2 / math.pi)
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(6)
_SMALL_MU = 0.25  # for smaller mu, the difference g(a) - g(b) loses precision, so the slope is integrated instead
_LARGE_A = 5.0  # for larger a, delta is near 1 - e^(log ratio), and e^(a^2/2) is large
_FAR = -200.0  # for smaller x, the slope itself loses precision, and its asymptotic series is accurate to 2e-12


@proved("set-union.md#gaussian-noise-the-joint-bound")
def log_delta(epsilon: ArrayLike, mu: ArrayLike) -> Floats:
    """Return the natural logarithm of the delta of each of several Gaussian mechanisms.

    Proof: "where delta_G(epsilon; m) = Phi(m/2 - epsilon/m) - e^epsilon Phi(-m/2 - epsilon/m), for any real epsilon"

    Args:
        epsilon: The epsilons, any real numbers.
        mu: The ratios of sensitivity to sigma, at least 0.

    Returns:
        The logarithms, or -inf if delta is 0. The relative error of delta is below 1e-11.

    Example:
        >>> log_delta([0.0, 1.0], 1.0).round(6).tolist()
        [-0.959916, -2.064066]
    """
    spread_epsilon, spread_mu = np.broadcast_arrays(
        np.asarray(epsilon, dtype=np.float64), np.asarray(mu, dtype=np.float64)
    )
    result = np.empty(spread_epsilon.shape)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore", under="ignore"):
        # float64 arrays of the same shape, with a and b = a - mu of the formula in the docstring of this module.
        a = spread_mu / 2 - spread_epsilon / spread_mu
        still = ~(spread_mu > 0)
        large = ~still & (a > _LARGE_A)
        small = ~still & ~large & (spread_mu < _SMALL_MU)
        for chosen, formula in (
            (still, _without_shift),
            (large, _near_one),
            (small, _by_slope),
            (~still & ~large & ~small, _by_difference),
        ):
            if chosen.any():
                result[chosen] = formula(spread_epsilon[chosen], spread_mu[chosen])
    return result


def _without_shift(epsilon: Floats, mu: Floats) -> Floats:
    # For mu = 0, both distributions are the same, so delta = max(0, 1 - e^epsilon).
    return np.log(np.maximum(-np.expm1(epsilon), 0.0))


def _near_one(epsilon: Floats, mu: Floats) -> Floats:
    a = mu / 2 - epsilon / mu
    # ln Phi(a) + ln(1 - e^(epsilon + ln Phi(b) - ln Phi(a))).
    log_a = log_ndtr(a)
    return np.asarray(log_a + np.log(-np.expm1(np.minimum(epsilon + log_ndtr(a - mu) - log_a, 0.0))))


def _by_difference(epsilon: Floats, mu: Floats) -> Floats:
    a = mu / 2 - epsilon / mu
    # Phi(x) = e^(-x^2/2) g(x) / 2, and e^epsilon e^(-b^2/2) = e^(-a^2/2), so the remaining factor is g(a) - g(b).
    growth = erfcx(-a * _ROOT_HALF) - erfcx((mu - a) * _ROOT_HALF)
    return np.asarray(np.log(growth / 2) - a * a / 2)


def _by_slope(epsilon: Floats, mu: Floats) -> Floats:
    centre = -epsilon / mu
    # Shape (values, 6). This is the integral of g' from b to a by Gauss-Legendre quadrature, with (a + b) / 2 =
    # -epsilon / mu.
    points = centre[:, None] + mu[:, None] / 2 * _NODES
    growth = mu / 2 * (_slope(points) @ _NODE_WEIGHTS)
    a = centre + mu / 2
    return np.asarray(np.where(np.isfinite(a), np.log(growth / 2) - a * a / 2, -np.inf))


def _slope(x: Floats) -> Floats:
    # g'(x) = x g(x) + sqrt(2 / pi). Far below 0, where the terms cancel, use its series in 1 / x^2.
    near = np.asarray(x * erfcx(-x * _ROOT_HALF) + _SLOPE_AT_ZERO)
    if not (x < _FAR).any():
        return near
    inverse = 1 / np.square(np.minimum(x, _FAR))
    far = _SLOPE_AT_ZERO * inverse * (1 - inverse * (3 - 15 * inverse))
    return np.where(x < _FAR, far, near)


@proved("set-union.md#gaussian-noise-the-joint-bound")
def delta(epsilon: float, mu: float) -> float:
    """Return the delta of a Gaussian mechanism.

    Proof: "where delta_G(epsilon; m) = Phi(m/2 - epsilon/m) - e^epsilon Phi(-m/2 - epsilon/m), for any real epsilon"

    Args:
        epsilon: The epsilon, any real number.
        mu: The ratio of sensitivity to sigma, at least 0.

    Returns:
        The delta, with a relative error below 1e-11 unless it is below 1e-307.

    Example:
        >>> round(delta(3.0, 1 / 1.33279) / (math.exp(-10) / 2), 3)
        1.0
    """
    return float(np.exp(log_delta(epsilon, mu)))


def sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Return the smallest sigma that makes a Gaussian mechanism (epsilon, delta)-private.

    A numerical error in the result can only increase privacy, because delta is evaluated again with eighty digits for
    the returned double.

    Args:
        epsilon: The epsilon of the guarantee, more than 0.
        delta: The delta of the guarantee, more than 0 and less than 1.
        sensitivity: The l2-sensitivity of the values that receive the noise.

    Returns:
        The standard deviation of the noise.

    Raises:
        BudgetError: Gaussian noise cannot meet the parameters.

    Example:
        >>> round(sigma(3.0, math.exp(-10) / 2), 5)
        1.33279
    """
    _check_range(epsilon, delta, sensitivity)
    target = math.log(delta)

    def excess(log_sigma: float) -> float:
        return float(log_delta(epsilon, math.exp(-log_sigma))) - target

    # Delta decreases as sigma increases. Find a bracket in ln sigma, for sensitivity 1.
    low = high = 0.0
    while excess(high) > 0:
        high += 2.0
    while excess(low) <= 0:
        low -= 2.0
    guess = math.exp(crossing(excess, low, high)) * sensitivity
    return _confirmed(guess, epsilon, delta, sensitivity)


def _confirmed(guess: float, epsilon: float, delta: float, sensitivity: float) -> float:
    """Return the first of `guess` times 1 + 2^-52, 1 + 2^-51 and so on that passes a check with eighty digits."""
    step = 2.0**-52
    for _ in range(30):
        candidate = guess * (1 + step)
        mu: Any = precise.number(sensitivity) / precise.number(candidate)
        if precise.gaussian_delta(epsilon, mu) <= delta:
            return candidate
        step *= 2
    raise InternalError("the search for sigma did not end within its precision")


def _check_range(epsilon: float, delta: float, sensitivity: float) -> None:
    if not 1e-6 <= epsilon <= 700:
        raise BudgetError(f"`epsilon` must be between 1e-6 and 700 for Gaussian noise, got {epsilon}.")
    if not 1e-300 <= delta < 1:
        raise BudgetError(
            f"Gaussian noise needs `delta` of at least 1e-300 and below 1, got {delta}. It cannot be private with "
            "delta 0; choose a small delta such as 1e-7."
        )
    if not 0 < sensitivity < 1e150:
        raise BudgetError(f"the sensitivity must be a positive number below 1e150, got {sensitivity}.")


_NoiseShape = Literal["fixed", "even", "symmetric"]
_SHAPES: tuple[str, ...] = get_args(_NoiseShape)


@dataclass(frozen=True, slots=True)
class UniqueItems:
    """The possible weights of items that only one user has.

    An item that only one user has must be unlikely to reach the threshold, because its release would reveal that user.
    The required margin depends on how the weighting divides a user's unit of weight. Every shape requires that a user
    gives a positive weight to each of their items (at most `limit`) that no other user has. Otherwise an item that
    other users have as well could receive weight only from this user, and its release would also reveal this user.
    `symmetric` also requires that such items have equal weights, given any earlier results.

    Args:
        limit: The maximum number of items per user.
        shape: `fixed` if every item has the weight `least`; `even` if a user with n items gives each item at most
            n^(-1/norm); `symmetric` if t novel items have equal weights from `least` to t^(-1/norm).
        least: The smallest positive weight that a user gives an item.
        norm: 1 if the sum of a user's weights is bounded (Laplace noise), or 2 if the sum of squares is bounded
            (Gaussian noise).

    Raises:
        BudgetError: A value is out of range.

    Example:
        >>> UniqueItems(limit=100, shape="symmetric", least=0.0999, norm=2).limit
        100
    """

    limit: int
    shape: _NoiseShape
    least: float
    norm: int

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise BudgetError(
                f"`limit` must be at least 1, got {self.limit}. It is the maximum number of items per user; "
                "100 is a common start."
            )
        if self.shape not in _SHAPES:
            raise BudgetError(f"`shape` must be one of {', '.join(_SHAPES)}, got {self.shape!r}.")
        if not 0 < self.least < float("inf"):
            raise BudgetError(
                f"the smallest weight of an item must be finite and above 0, got {self.least}. Lower the limit, so "
                "that the weight is not rounded to 0."
            )
        if self.norm not in (1, 2):
            raise BudgetError(f"`norm` must be 1 (Laplace) or 2 (Gaussian), got {self.norm}.")


Noise = Literal["gaussian", "laplace"]
NORMS: Final = {"laplace": 1, "gaussian": 2}
"""The norm in which the weights of a user must be bounded, by the kind of noise."""
_SINGLE = 1024  # up to this number of novel items, each number is evaluated separately
_RATIO = 1.005  # larger numbers form cells, which use their largest number of items and the weight for their smallest


def log_below(noise: Noise, x: Floats) -> Floats:
    """Return the logarithm of the probability that standard noise is below `x`.

    Args:
        noise: The kind of noise.
        x: The values, any real numbers.

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
        noise: The kind of noise.
        probability: The probabilities, between 0 and 1.

    Returns:
        The quantiles, accurate for small probabilities.
    """
    if noise == "gaussian":
        return -np.asarray(ndtri(probability))
    # For Laplace noise, P(X > x) = exp(-x) / 2 for x >= 0. The case x < 0 follows by symmetry.
    nearer = np.minimum(probability, 1 - probability)
    return np.asarray(np.where(probability <= 0.5, -1.0, 1.0) * np.log(2 * nearer))


@lru_cache(maxsize=16)
def cells(limit: int) -> tuple[Floats, Floats]:
    """Return cells that cover all numbers of novel items from 1 to `limit`.

    Args:
        limit: The maximum number of novel items.

    Returns:
        The minimum and the maximum number of items in each cell. The two numbers are equal up to 1024.
    """
    # Up to 1024, each cell contains one number. After that, the end of each cell is half a percent larger than the end
    # of the previous cell.
    steps = max(0, math.ceil(math.log(limit / _SINGLE) / math.log(_RATIO)))
    ends = np.floor(_SINGLE * _RATIO ** np.arange(1, steps + 1))
    most = np.unique(np.minimum(np.concatenate([np.arange(1.0, min(limit, _SINGLE) + 1), ends]), limit))
    return np.concatenate([[1.0], most[:-1] + 1]), most


@proved("set-union.md#what-integers-and-doubles-change")
def heaviest(novelty: UniqueItems, sensitivity: float) -> tuple[Floats, Floats]:
    """Return the cases that determine the threshold.

    Proof: "Therefore t novel items weigh at most S t^(-1/p) each"

    A case is a number of novel items and the largest weight of each item.

    Args:
        novelty: The weights that the weighting allows.
        sensitivity: The bound on a user's weights in `novelty.norm`.

    Returns:
        The number of items and the weight of each case.
    """
    if novelty.shape == "fixed":
        return np.array([float(novelty.limit)]), np.array([novelty.least])
    # Each of n items with a total norm of S has weight S n^(-1/p). A cell is represented by its maximum number of
    # items, with the weight for its minimum number.
    fewest, most = cells(novelty.limit)
    return most, sensitivity * fewest ** (-1 / novelty.norm)


def lowest_threshold(novelty: UniqueItems, noise: Noise, scale: float, delta: float, sensitivity: float) -> float:
    """Return the lowest threshold that at least one novel item reaches with probability at most `delta`.

    Args:
        novelty: The weights that the weighting allows.
        noise: The kind of noise.
        scale: The noise scale.
        delta: The maximum probability that at least one novel item reaches the threshold.
        sensitivity: The bound on a user's weights in `novelty.norm`.

    Returns:
        The threshold, in units of weight.

    Example:
        >>> hundred = UniqueItems(limit=100, shape="symmetric", least=0.1, norm=2)
        >>> round(lowest_threshold(hundred, "gaussian", 1.3327913, math.exp(-10) / 2, 1.0), 5)
        6.82366
    """
    # The probability that none of n items passes is (1 - p)^n = 1 - delta, so p = 1 - (1 - delta)^(1/n). float64 of
    # shape (cases,).
    items, weights = heaviest(novelty, sensitivity)
    each = -np.expm1(math.log1p(-delta) / items)
    return float(np.max(weights + scale * exceeded_with(noise, each)))


@proved("set-union.md#gaussian-noise-the-joint-bound")
def release_probability(
    novelty: UniqueItems, noise: Noise, scale: float, threshold: float, sensitivity: float
) -> float:
    """Return an upper bound on the probability that at least one novel item reaches the threshold.

    Proof: "Let d = 1 - Phi((threshold - w)/sigma)^|T|, the probability that an item of T is released"

    Args:
        novelty: The weights that the weighting allows.
        noise: The kind of noise.
        scale: The noise scale.
        threshold: The threshold, in units of weight.
        sensitivity: The bound on a user's weights in `novelty.norm`.

    Returns:
        The largest probability over all cases that the weighting allows.
    """
    items, weights = heaviest(novelty, sensitivity)
    # This is 1 - P(noise < (threshold - w) / scale)^n for each case.
    return float(np.max(-np.expm1(items * log_below(noise, (threshold - weights) / scale))))
