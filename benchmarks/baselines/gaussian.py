"""Rounds of the weighted Gaussian mechanism, in the basic mechanism, DP-SIPS, and PipelineDP's weighted Gaussian.

*Basic*: Gopi et al., "Differentially Private Set Union" (ICML 2020), Theorem B.2, with even l2 shares, half of delta
for the noise and half for the threshold. *DP-SIPS*: Swanberg, Desfontaines, Haney, "DP-SIPS: A simpler, more scalable
mechanism for differentially private partition selection" (2023), which consists of several rounds of the basic
mechanism. Each round skips the items that earlier rounds released. Each round gets a share r of the 1 / sigma^2 and of
the delta of the next round. There are three rounds and r = 0.3, as in public implementations (we did not have the
paper's text). The noise of all rounds is accounted as one Gaussian, with half of delta. *PipelineDP 0.3.1*,
`WEIGHTED_GAUSSIAN_THRESHOLDING`, according to its code and to runs of it, weighs items like the basic mechanism, by 1 /
sqrt(n), and calibrates sigma for the resulting sensitivity of 1. Then it passes sigma to a selector that treats sigma
as the noise of one item among `limit` whole counts and multiplies it by sqrt(limit). Therefore the noise is sqrt(limit)
times the necessary noise. For example, with limit 100 an item needs a weight of 70 instead of 7. The mechanism is
private, but of little use for limits above 1. `as_run=False` omits the factor. The result is the basic mechanism with
the threshold (1 - delta/2)^(1/limit) at weight 1.

All thresholds are computed by `voxpop.privacy.calibrate` or by the given formula. Noise is drawn in doubles.
"""

from math import sqrt
from typing import Final

import numpy as np
from scipy.special import ndtri

from benchmarks.baselines.held import Mask, PrivatePairs
from benchmarks.baselines.noise import gaussian
from voxpop.kernels.arrays import Floats
from voxpop.privacy.budget import Budget
from voxpop.privacy.calibrate import Scale
from voxpop.privacy.gaussian import UniqueItems, lowest_threshold, sigma
from voxpop.privacy.secret import Secret

SIPS_RATIO: Final = 0.3
SIPS_ROUNDS: Final = 3


def published_scales(
    budget: Budget, limit: int, fractions: tuple[float, ...] = (1.0,), sensitivity: float = 1.0
) -> tuple[Scale, ...]:
    """Return sigma and threshold of each round, with delta/2 for noise and delta/2 for thresholds (DPSU, Theorem B.2).

    Args:
        budget: The epsilon and delta of all rounds together.
        limit: The maximum number of items per user.
        fractions: The share of each round in 1 / sigma^2 and in delta.
        sensitivity: The largest l2 distance by which one user moves the weights of a round.
    """
    novelty = UniqueItems(limit, "even", limit**-0.5, 2)
    whole, scales = sigma(budget.epsilon, budget.delta / 2, sensitivity), []
    for fraction in fractions:
        # Use mu_i^2 = fraction mu^2, so that the squares add up to mu^2, and sigma_i = S / mu_i.
        scale, delta = whole / sqrt(fraction), fraction * budget.delta / 2
        scales.append(Scale(scale, lowest_threshold(novelty, "gaussian", scale, delta, sensitivity), delta))
    return tuple(scales)


def even_weights(held: PrivatePairs) -> Floats:
    """Return the weights of items, as float64 (size), if a user with n items gives each item 1 / sqrt(n)."""
    shares = np.repeat(np.maximum(held.sizes, 1) ** -0.5, held.sizes)
    return np.bincount(held.items, shares, held.size).astype(np.float64)


def passed(weights: Floats, scale: Scale, secret: Secret, purpose: str) -> Mask:
    """Return the items with weight that reach the threshold after noise, as bool (size)."""
    noisy = weights + scale.scale * gaussian(secret, purpose, weights.size)
    released: Mask = (weights > 0) & (noisy >= scale.threshold)
    return released


def private_dp_sips(
    held: PrivatePairs, budget: Budget, limit: int, secret: Secret, rounds: int = SIPS_ROUNDS, ratio: float = SIPS_RATIO
) -> Mask:
    """Return the items that DP-SIPS releases, as bool (size). With one round, it is the basic mechanism.

    Args:
        held: The pairs of user and item.
        budget: The budget (epsilon and delta).
        limit: The maximum number of items per user, drawn again in each round.
        secret: The source of samples and noise.
        rounds: The number of rounds.
        ratio: The budget of a round relative to the next round.
    """
    raw = [ratio ** (rounds - 1 - number) for number in range(rounds)]
    scales = published_scales(budget, limit, tuple(share / sum(raw) for share in raw))
    released = np.zeros(held.size, np.bool_)
    for number, scale in enumerate(scales):
        left = held.where(~released[held.items]).drawn(limit, secret, f"round {number}")
        released |= passed(even_weights(left), scale, secret, f"noise/round {number}")
    return released


def pipeline_dp_scale(budget: Budget, limit: int, *, as_run: bool = True) -> Scale:
    """Return sigma and threshold of PipelineDP's weighted Gaussian.

    Args:
        budget: The budget (epsilon and delta).
        limit: The value of `max_partitions_contributed`.
        as_run: Whether to include the factor sqrt(limit) of version 0.3.1.
    """
    spread = sigma(budget.epsilon, budget.delta / 2) * (sqrt(limit) if as_run else 1.0)
    each = -np.expm1(np.log1p(-budget.delta / 2) / limit)
    return Scale(spread, float(1.0 - spread * ndtri(each)), budget.delta)


def private_pipeline_dp(held: PrivatePairs, budget: Budget, limit: int, secret: Secret, *, as_run: bool = True) -> Mask:
    """Return the items that PipelineDP's weighted Gaussian releases, as bool (size)."""
    left = held.drawn(limit, secret, "pipeline dp")
    return passed(even_weights(left), pipeline_dp_scale(budget, limit, as_run=as_run), secret, "noise")
