"""Reconstructions of MAD and MAD2R, in which users get back the weight above a limit and spread it over their items.

Source: Chen, Cohen-Addad, Epasto, Zadimoghaddam, "Scalable Private Partition Selection via Adaptive Weighting" (ICML
2025). We did not have the paper's text or code. The stages and parameters are as described elsewhere (d_max 50, beta 2,
C_lb 1, C_ub 3, b_min 0.5, b_max 2, a tenth of epsilon for the first round). We reconstructed the remaining steps.
Therefore nothing here is a statement about the paper, and comparisons need care.

*MAD.* Users with at most d_max items take part. Each user starts with 1 / n for each of its n items. The weight of an
item above tau = rho + beta sigma returns to the users who gave it, in proportion. Each user adds 1 / d_max of the
returned weight to each of its items. At the end, every user adds 1 / sqrt(n) - 1 / n. Users with more items give 1 /
sqrt(n). With even shares, an added user moves the weights by at most sqrt(1 + s (1 - s) / d_max) in l2, if s is the
share of its weight that is returned. This bound is slightly above 1 (1.0025 for d_max 50).
`tests/comparisons/test_mad.py` finds this distance for this code, and `even_sensitivity` derives it.

*MAD2R.* The first round is MAD. The second round skips the released items, and the items that are unlikely to be
released (noisy weight + C_ub sigma below the next threshold). An item whose release is already safe (noisy weight -
C_lb sigma above the threshold) gets less, at least b_min of an even share. All other items share the saved weight, up
to b_max of an even share each. Uneven shares move the weights further (see `BIASED_SENSITIVITY`).
"""

from dataclasses import dataclass
from math import sqrt
from typing import Final

import numpy as np

from benchmarks.baselines.gaussian import published_scales
from benchmarks.baselines.held import Mask, PrivatePairs
from benchmarks.baselines.noise import gaussian
from voxpop.kernels.arrays import Floats
from voxpop.privacy.budget import Budget
from voxpop.privacy.calibrate import Scale
from voxpop.privacy.secret import Secret

FIRST: Final = 0.1
"""The share of the budget that the first round of MAD2R gets."""


@dataclass(frozen=True, slots=True)
class AdaptiveNumbers:
    """The parameters of MAD and MAD2R, as published.

    Attributes:
        most: The maximum number of items of a user who takes part in the return of weight (d_max).
        beta: The distance of tau from the threshold, in sigma.
        lower: The parameter C_lb.
        upper: The parameter C_ub.
        least_bias: The parameter b_min.
        most_bias: The parameter b_max.
    """

    most: int = 50
    beta: float = 2.0
    lower: float = 1.0
    upper: float = 3.0
    least_bias: float = 0.5
    most_bias: float = 2.0


PUBLISHED: Final = AdaptiveNumbers()
BIASED_SENSITIVITY: Final = 1.0182
"""The largest distance in l2 that was found between the weights of a biased round with and without one user.

The search is a grid over the number of the user's items that need less than an even share, and over this smaller share.
In the worst case found, the items that need 0.6 of a share are full. Therefore all other items, which already get the
largest share, receive the returned weight.
"""


def even_sensitivity(most: int) -> float:
    """Return the largest l2 distance by which one user moves the weights of MAD with even shares.

    The maximum is reached if half of the user's unit returns to users of the same items. Let the added user have n <= d
    items, and let a share s of its unit be returned. Its items that are not full keep 1 - s of the unit. Each of the n
    items of the user and of d - n other items gets at most s / d of the returned weight. The squares add up to at most
    1 + s (2 sqrt(n) / d - 2 / sqrt(n) + 1 / n - s / d), which is largest at n = d and s = 1 / 2.

    Example:
        >>> round(even_sensitivity(50), 5)
        1.0025
    """
    return sqrt(1.0 + 0.25 / most)


def adaptive_weights(held: PrivatePairs, shares: Floats, tau: float, most: int) -> Floats:
    """Return the weights of MAD, as float64 (size).

    Args:
        held: The pairs of user and item.
        shares: float64 (pairs), the share of each item if no weight is returned, at most 1 in l2 per user.
        tau: The weight above which weight is returned.
        most: The maximum number of items of a user who takes part (d_max).
    """
    sizes = np.repeat(held.sizes, held.sizes)
    root = np.sqrt(sizes)
    given = np.where(sizes <= most, shares / root, 0.0)
    start = np.bincount(held.items, given, held.size)
    back = 1.0 - tau / np.maximum(start, tau)
    got = np.bincount(held.users, back[held.items] * given, held.sizes.size)
    again = np.where(sizes <= most, np.repeat(got, held.sizes) / most, 0.0)
    weights: Floats = np.minimum(start, tau) + np.bincount(held.items, shares - given + again, held.size)
    return weights


def even_shares(held: PrivatePairs) -> Floats:
    """Return 1 / sqrt(n) for each item of a user with n items, as float64 (pairs)."""
    return np.repeat(np.maximum(held.sizes, 1) ** -0.5, held.sizes)


def biased_shares(held: PrivatePairs, bias: Floats, most_bias: float) -> Floats:
    """Return shares that give less to items with a bias below 1, and the saved weight to the user's other items.

    Args:
        held: The pairs of user and item.
        bias: float64 (size), the part of an even share that an item needs, at most 1.
        most_bias: The largest multiple of an even share that another item gets.
    """
    mine = bias[held.items]
    low, users, count = mine < 1.0, held.users, held.sizes.size
    spent = np.bincount(users, np.where(low, mine, 0.0) ** 2, count)
    others = np.bincount(users, ~low, count)
    raised = np.sqrt(np.maximum(held.sizes - spent, 0.0) / np.maximum(others, 1))
    factor = np.where(low, mine, np.minimum(raised, most_bias)[users])
    return factor * even_shares(held)


def private_mad(held: PrivatePairs, budget: Budget, limit: int, secret: Secret, *, sensitivity: float = 1.0) -> Mask:
    """Return the items that MAD releases, as bool (size).

    Args:
        held: The pairs of user and item.
        budget: The budget (epsilon and delta).
        limit: The maximum number of items per user.
        secret: The source of samples and noise.
        sensitivity: The sensitivity for which the noise is scaled, 1 as published.
    """
    (scale,) = published_scales(budget, limit, sensitivity=sensitivity)
    left = held.drawn(limit, secret, "mad")
    return _round(left, even_shares(left), scale, secret, "noise")[0]


def private_mad2r(
    held: PrivatePairs,
    budget: Budget,
    limit: int,
    secret: Secret,
    *,
    split_epsilon: bool = True,
    sensitivity: float = 1.0,
) -> Mask:
    """Return the items that MAD2R releases, as bool (size).

    Args:
        held: The pairs of user and item.
        budget: The budget (epsilon and delta).
        limit: The maximum number of items per user, in each round.
        secret: The source of samples and noise.
        sensitivity: The sensitivity for which the noise of the second round is scaled, 1 as published.
        split_epsilon: Whether the rounds split epsilon and delta, as published. Otherwise, both rounds share one
            Gaussian budget, as in the rounds of Voxpop.
    """
    first, second = two_scales(budget, limit, sensitivity, split_epsilon=split_epsilon)
    left = held.drawn(limit, secret, "mad2r/0")
    released, noisy = _round(left, even_shares(left), first, secret, "noise/0")
    hopeless = noisy + PUBLISHED.upper * first.scale < second.threshold
    left = held.where(~(released | hopeless)[held.items]).drawn(limit, secret, "mad2r/1")
    sure = np.maximum(noisy - PUBLISHED.lower * first.scale, second.threshold)
    bias = np.maximum(second.threshold / sure, PUBLISHED.least_bias)
    more, _ = _round(left, biased_shares(left, bias, PUBLISHED.most_bias), second, secret, "noise/1")
    return released | more


def two_scales(budget: Budget, limit: int, sensitivity: float, *, split_epsilon: bool) -> tuple[Scale, Scale]:
    """Return sigma and threshold of both rounds of MAD2R (see `private_mad2r`)."""
    if not split_epsilon:
        first, second = published_scales(budget, limit, (FIRST, 1 - FIRST), sensitivity)
        return first, second
    parts = [Budget(budget.epsilon * part, budget.delta * part) for part in (FIRST, 1 - FIRST)]
    return (
        published_scales(parts[0], limit, sensitivity=min(sensitivity, even_sensitivity(PUBLISHED.most)))[0],
        published_scales(parts[1], limit, sensitivity=sensitivity)[0],
    )


def _round(held: PrivatePairs, shares: Floats, scale: Scale, secret: Secret, purpose: str) -> tuple[Mask, Floats]:
    """Return the items that one round of MAD releases, and the noisy weights (-inf for items without weight)."""
    tau = scale.threshold + PUBLISHED.beta * scale.scale
    weights = adaptive_weights(held, shares, tau, PUBLISHED.most)
    noisy = np.where(weights > 0, weights + scale.scale * gaussian(secret, purpose, held.size), -np.inf)
    return noisy >= scale.threshold, noisy
