"""Selection with the largest release probabilities that one order of Rényi differential privacy permits.

Source: Harrison, Manurangsi, "Optimal partition selection with Rényi differential privacy" (arXiv 2603.09167, 2026).
Only the abstract was available. It describes a selection function for weights bounded in l2, optimal at one order,
which replaces the Gaussian mechanism in PolicyGaussian and MAD2R. The function here is our derivation
(docs/privacy/set-only.md), with w and x <= 1 on a grid:

    pi(w) = min(1 - exp(-lambda w^2) for w <= 1, min over x of F_x(pi(w - x)) with w - x >= 1 / sqrt(limit))
    F_x(p) = the largest q with D_a(q || p) <= tau x^2 and D_a(p || q) <= tau x^2, of Bernoulli distributions
The proof covers even shares on the grid. For the weights of PolicyGaussian and MAD2R, which can be below 1 /
sqrt(limit), no proof is available here, so the results of these two favour the competitor. MAD2R needs the noisy
weights of its first round, which remains Gaussian.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import exp, expm1, log, log1p, sqrt
from typing import Final

import numpy as np
from numba import njit
from scipy.special import expit, ndtr

from benchmarks.baselines.adaptive import FIRST, PUBLISHED, adaptive_weights, biased_shares, even_shares
from benchmarks.baselines.held import Mask, PrivatePairs
from benchmarks.baselines.noise import gaussian, uniform
from voxpop.kernels.arrays import Floats
from voxpop.kernels.weigh import l2_descent
from voxpop.privacy.budget import Budget
from voxpop.privacy.calibrate import Scale
from voxpop.privacy.gaussian import UniqueItems, lowest_threshold
from voxpop.privacy.secret import Secret

ORDERS: Final = (3.0, 4.0, 5.0, 6.5, 8.0, 10.0, 13.0)
COARSE, FINE = 0.05, 0.005
"""Grid steps of weights, for the choice of the order and for the release."""
UNIT: Final = 1 << 40
HALVINGS: Final = 50
LAST: Final = log(1e9)
"""The logit of the last probability."""
WIDEST: Final = 40.0
"""An upper bound of the increase of the logit in one step."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The release probabilities by weight.

    Attributes:
        chances: float64, the probabilities at weights 0, `step`, 2 `step`, and so on. The last is at least 1 - 1e-9.
        step: The grid step.
    """

    chances: Floats
    step: float

    def weight_of(self, chance: float) -> float:
        """Return the lowest weight on the grid with at least this probability."""
        return float(np.searchsorted(self.chances, chance)) * self.step

    def passed(self, weights: Floats, secret: Secret, purpose: str) -> Mask:
        """Return the released items, with weights between grid points rounded down, as bool (size)."""
        place = np.minimum((weights / self.step + 1e-9).astype(np.int64), self.chances.size - 1)
        released: Mask = uniform(secret, purpose, weights.size) < self.chances[place]
        return released


def selection(order: float, tau: float, rate: float, least: float, step: float) -> Selection:
    """Return the largest release probabilities at one order.

    Args:
        order: The order a, above 1.
        tau: The divergence of one user at that order.
        rate: The rate lambda. Novel items of one user are released with probability at most 1 - exp(-lambda).
        least: The lowest positive weight of an item, rounded down to the grid.
        step: The grid step of weights.
    """
    logits = _logits(order, tau, rate, max(1, int(least / step + 1e-9)), int(1 / step + 1e-9), step)
    return Selection(expit(logits), step)


@njit
def _logits(order: float, tau: float, rate: float, first: int, moves: int, step: float) -> Floats:
    """Return the logits of the release probabilities.

    Args:
        order: The order a.
        tau: The divergence of one user.
        rate: The rate lambda.
        first: The lowest positive weight, in steps.
        moves: The weight 1, in steps.
        step: The grid step.
    """
    logits = np.full(1 << 16, -np.inf)
    place = first - 1
    while logits[place] < LAST:
        place += 1
        found = logits[place - 1] + WIDEST if place > moves else np.log(np.expm1(rate * (place * step) ** 2))
        for moved in range(1, min(moves, place - first) + 1):
            low, high, most = logits[place - moved], found, tau * (moved * step) ** 2
            if _divergence(high, low, order) <= most:
                continue
            for _ in range(HALVINGS):
                middle = (low + high) / 2
                if _divergence(middle, logits[place - moved], order) <= most:
                    low = middle
                else:
                    high = middle
            found = low
        logits[place] = max(found, logits[place - 1])
    return logits[: place + 1].copy()


@njit
def _divergence(first: float, second: float, order: float) -> float:
    """Return the larger of the Rényi divergences of two Bernoulli distributions in both directions, by their logits."""
    yes, no = _log_chance(first) - _log_chance(second), _log_chance(-first) - _log_chance(-second)
    forward = np.logaddexp(_log_chance(second) + order * yes, _log_chance(-second) + order * no)
    reverse = np.logaddexp(_log_chance(first) - order * yes, _log_chance(-first) - order * no)
    return max(forward, reverse) / (order - 1)


@njit
def _log_chance(logit: float) -> float:
    return -np.log1p(np.exp(-logit)) if logit > 0 else logit - np.log1p(np.exp(logit))


def divergence_at(order: float, epsilon: float, delta: float) -> float:
    """Return the divergence that gives (epsilon, delta) at an order (Canonne, Kamath, Steinke)."""
    return epsilon + (log(delta * (order - 1)) - order * log1p(-1 / order)) / (order - 1)


def novelty_rate(order: float, tau: float, delta: float, limit: int) -> float:
    """Return the largest lambda of one round, in which novel items reduce the divergence of all other items."""
    most = (limit - 1) / limit
    low, high = 0.0, min(-log1p(-delta), tau)
    for _ in range(HALVINGS):
        rate = (low + high) / 2
        mixed = rate * most + delta * (1 - 1e-9) * exp(-most * ((order - 1) * tau + order * rate))
        low, high = (rate, high) if mixed <= delta else (low, rate)
    return low


@lru_cache(maxsize=32)
def one_round(budget: Budget, limit: int) -> Selection:
    """Return the selection of one round, at the order with the lowest weight of probability 1/2."""

    def at(order: float, step: float) -> Selection | None:
        tau = divergence_at(order, budget.epsilon, budget.delta * (1 - 1e-9))
        if tau <= 0:
            return None
        return selection(order, tau, novelty_rate(order, tau, budget.delta, limit), limit**-0.5, step)

    found = {order: each for order in ORDERS if (each := at(order, COARSE))}
    best = at(min(found, key=lambda order: found[order].weight_of(0.5)), FINE)
    assert best is not None
    return best


def private_weighted_renyi(held: PrivatePairs, budget: Budget, limit: int, secret: Secret) -> Mask:
    """Return the items that even l2 shares release with this selection, as bool (size)."""
    left = held.drawn(limit, secret, "weighted renyi")
    chosen = one_round(budget, limit)
    shares = np.floor(even_shares(left) / chosen.step + 1e-9) * chosen.step
    return chosen.passed(np.bincount(left.items, shares, held.size), secret, "chances")


def private_policy_renyi(held: PrivatePairs, budget: Budget, limit: int, secret: Secret, alpha: float = 5.0) -> Mask:
    """Return the items that PolicyGaussian releases with this selection, as bool (size).

    Args:
        held: The pairs of user and item.
        budget: The budget (epsilon and delta).
        limit: The maximum number of items per user.
        secret: The source of samples and of random decisions.
        alpha: The cutoff of a Gaussian, in noise scales. Weights stop where that Gaussian has the same probability.
    """
    left = held.drawn(limit, secret, "policy renyi")
    chosen = one_round(budget, limit)
    cutoff = chosen.weight_of(min(float(ndtr(alpha)), chosen.chances[-1]))
    histogram = np.zeros(held.size, np.int64)
    l2_descent(histogram, left.items, left.starts, round(cutoff * UNIT), UNIT, np.array([1 << 20]))
    return chosen.passed(histogram / UNIT, secret, "chances")


def private_mad2r_renyi(held: PrivatePairs, budget: Budget, limit: int, secret: Secret) -> Mask:
    """Return the items that MAD2R releases with this selection in its second round, as bool (size).

    Both rounds are composed at one order, the first with a tenth of the divergence and of the novelty rate. Half of
    delta covers novel items and half covers the divergence (docs/privacy/set-only.md).
    """
    scale, second = two_rounds(budget, limit)
    tau = scale.threshold + PUBLISHED.beta * scale.scale
    left = held.drawn(limit, secret, "mad2r renyi/0")
    weights = adaptive_weights(left, even_shares(left), tau, PUBLISHED.most)
    noisy = np.where(weights > 0, weights + scale.scale * gaussian(secret, "noise/0", held.size), -np.inf)
    released = noisy >= scale.threshold
    middle, top = second.weight_of(0.5), second.weight_of(float(ndtr(PUBLISHED.beta)))
    hopeless = noisy + PUBLISHED.upper * scale.scale < middle
    left = held.where(~(released | hopeless)[held.items]).drawn(limit, secret, "mad2r renyi/1")
    sure = np.maximum(noisy - PUBLISHED.lower * scale.scale, middle)
    bias = np.maximum(middle / sure, PUBLISHED.least_bias)
    weights = adaptive_weights(left, biased_shares(left, bias, PUBLISHED.most_bias), top, PUBLISHED.most)
    return released | second.passed(weights, secret, "chances")


@lru_cache(maxsize=32)
def two_rounds(budget: Budget, limit: int) -> tuple[Scale, Selection]:
    """Return noise and threshold of a Gaussian first round, and the selection of the second round (see MAD2R)."""
    rate = -log1p(-budget.delta / 2)
    least = limit**-0.5
    found: dict[float, tuple[float, Selection]] = {}
    for order in ORDERS:
        # Several rounds cost D + (1 - D)^a R and (1 - D)^(1 - a) R with D = 1 - e^-rate, and both are below delta.
        tau = divergence_at(order, budget.epsilon, budget.delta / 2 * exp(-order * rate))
        if tau > 0:
            found[order] = tau, selection(order, (1 - FIRST) * tau, (1 - FIRST) * rate, least, COARSE)
    best = min(found, key=lambda order: found[order][1].weight_of(0.5))
    tau, _ = found[best]
    sigma, part = sqrt(best / (2 * FIRST * tau)), -expm1(-FIRST * rate)
    threshold = lowest_threshold(UniqueItems(limit, "even", least, 2), "gaussian", sigma, part, 1.0)
    return Scale(sigma, threshold, part), selection(best, (1 - FIRST) * tau, (1 - FIRST) * rate, least, FINE)
