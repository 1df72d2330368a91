"""The exact joint bound for one thresholded Gaussian release.

Let one user be added. Of its items, t are novel: no other user holds them. Let each weigh w, and s = t w^2. All weights
together move by at most the sensitivity S, and the novel ones account for s of its square, so the shared ones move by
at most sqrt(S^2 - s). With d = 1 - Phi((threshold - w) / sigma)^t, the probability that a novel item is released,
and m^2 = (S^2 - s) / sigma^2, plus the mu^2 of all other releases about known items,

    with the user against without:    d + (1 - d) delta_G(epsilon - ln(1 - d); m)
    without the user against with:    delta_G(epsilon + ln(1 - d); m)

bound delta. Proof: noises are independent. Without the user no novel item can be released, so outcomes with one cost
d; on the others compare (1 - d) times a Gaussian with e^epsilon times its shift by m, in either direction. Both
expressions grow with d and with m, hence a cell of cases is covered by its largest d and its largest m.

The bound needs novel items to weigh the same (unequal weights can cost more), a floor on their weight (the supremum
starts at s = t least^2), and the release to be the only one with unknown items (docs/privacy/rounds.md is for several).
Known items may be released before or after by Gaussian mechanisms, chosen adaptively, whose mu^2 add up to `mu_rest`^2.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr

from voxpop.kernels.arrays import Bools, Floats
from voxpop.kernels.proved import proved
from voxpop.privacy.gaussian import Noise, UniqueItems, cells, log_delta, release_probability
from voxpop.privacy.numerics import numerical_slack

ROUNDING = 1 + 1e-10  # more than the relative error of the doubles below; delta_G is within 1e-11
_EXACT_PAIRS = 512  # up to this limit the pairs (user's items, novel items) of even weights are enumerated
_SHARES = 400  # cells of s for each number of novel items
_SHARES_OF_FEW = 4000  # for up to 8 novel items, where w moves fastest with s


@dataclass(frozen=True, slots=True, eq=False)
class Cases:
    """Novel items that one user may have, each case covering a cell.

    Args:
        items: The largest number of them.
        weight: The largest weight of each.
        shared: The largest square that remains for shared items.
    """

    items: Floats
    weight: Floats
    shared: Floats

    def where(self, chosen: Bools) -> "Cases":
        """Some of the cases.

        Args:
            chosen: Which ones.

        Returns:
            Only those.
        """
        return Cases(self.items[chosen], self.weight[chosen], self.shared[chosen])


@proved("set-union.md#gaussian-noise-the-joint-bound")
def deltas(cases: Cases, epsilon: float, sigma: float, threshold: float, mu_rest: float = 0.0) -> Floats:
    """The bound above for each case.

    Proof: "Noises are independent, so with the user the distribution is P_T x P_2 and without it Q = {nothing of T} x
    Q_2"

    Args:
        cases: The novel items.
        epsilon: The epsilon of the guarantee.
        sigma: The standard deviation of the noise.
        threshold: In weight.
        mu_rest: Total mu of other Gaussian releases about known items only.

    Returns:
        One delta per case.
    """
    # (cases,): ln(1 - d), then d and m, and the two lines at the top.
    log_none = cases.items * log_ndtr((threshold - cases.weight) / sigma)
    hit = -np.expm1(log_none)
    mu = np.sqrt(cases.shared / sigma**2 + mu_rest**2)
    forward = hit + (1 - hit) * np.exp(log_delta(epsilon - log_none, mu))
    return np.asarray(np.maximum(forward, np.exp(log_delta(epsilon + log_none, mu))))


@proved("set-union.md#gaussian-noise-the-joint-bound")
def joint_delta(
    novelty: UniqueItems, epsilon: float, sigma: float, threshold: float, sensitivity: float, mu_rest: float = 0.0
) -> float:
    """A certified upper bound of delta over all that the weighting allows.

    Proof: "The plan takes the largest over all"

    Args:
        novelty: The weights that the weighting allows; not of shape `any`.
        epsilon: The epsilon of the guarantee.
        sigma: The standard deviation of the noise.
        threshold: In weight.
        sensitivity: The l2-sensitivity of all weights together.
        mu_rest: Total mu of other Gaussian releases about known items only.

    Returns:
        Delta, rounded up.
    """
    worst = float(np.max(deltas(certified_cases(novelty, sensitivity), epsilon, sigma, threshold, mu_rest)))
    none_novel = float(np.exp(log_delta(epsilon, math.hypot(sensitivity / sigma, mu_rest))))
    return max(worst, none_novel) * ROUNDING


@lru_cache(maxsize=4)
def certified_cases(novelty: UniqueItems, sensitivity: float) -> Cases:
    """Cases that cover everything the weighting allows.

    Args:
        novelty: The weights that the weighting allows; not of shape `any`.
        sensitivity: The l2-sensitivity of all weights together.

    Returns:
        The cases.
    """
    if novelty.shape == "fixed":
        return _fixed_cases(novelty)
    if novelty.shape == "even" and novelty.limit <= _EXACT_PAIRS:
        # Every pair of 1 <= t <= n <= limit, n items of which t are novel.
        held, novel = (index.astype(np.float64) + 1 for index in np.tril_indices(novelty.limit))
        return _even_pairs(held, novel, sensitivity)
    # Even weights of more pairs than that: no item weighs less than S limit^(-1/2).
    least = sensitivity * novelty.limit**-0.5 if novelty.shape == "even" else novelty.least
    return _symmetric_cases(novelty.limit, least, sensitivity)


@lru_cache(maxsize=4)
def sampled_cases(novelty: UniqueItems, sensitivity: float) -> Cases:
    """A few hundred of the cases that `certified_cases` covers: to search with, not to promise with."""
    if novelty.shape == "fixed":
        return _fixed_cases(novelty)
    few = np.unique(np.geomspace(1, novelty.limit, 24).astype(np.int64)).astype(np.float64)
    if novelty.shape == "even":
        held, novel = np.meshgrid(few, few)
        return _even_pairs(held[novel <= held], novel[novel <= held], sensitivity)
    items = few[:, None]
    least = np.minimum(sensitivity**2, items * novelty.least**2)
    squares = least + (sensitivity**2 - least) * np.linspace(0, 1, 15) ** 2
    squares[:, -1] = sensitivity**2  # rounding may put it beyond, where no weight is left for shared items
    spread = np.broadcast_to(items, squares.shape)
    weight = np.sqrt(squares / spread)
    return Cases(spread.ravel(), weight.ravel(), (sensitivity**2 - squares).ravel())


def _fixed_cases(novelty: UniqueItems) -> Cases:
    fewest, most = cells(novelty.limit)
    return Cases(most, np.full(len(most), novelty.least), (novelty.limit - fewest) * novelty.least**2)


@proved("set-union.md#items-that-only-the-extra-user-holds")
def _even_pairs(held: Floats, novel: Floats, sensitivity: float) -> Cases:
    """A user with n items gives each at most S n^(-1/2), so the n - t shared ones have at most S^2 (n - t) / n.

    Proof: "The other coordinates differ by at most sqrt(S^2 - s) in l2."
    """
    return Cases(novel, sensitivity / np.sqrt(held), sensitivity**2 * (held - novel) / held)


def _symmetric_cases(limit: int, least: float, sensitivity: float) -> Cases:
    fewest, most = cells(limit)
    few = fewest <= 8
    parts = [
        _share_cells(fewest[chosen], most[chosen], least, sensitivity, shares)
        for chosen, shares in ((few, _SHARES_OF_FEW), (~few, _SHARES))
    ]
    return Cases(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _share_cells(
    fewest: Floats, most: Floats, least: float, sensitivity: float, shares: int
) -> tuple[Floats, Floats, Floats]:
    """For each number of novel items, cells of s = t w^2 from its least value to S^2, finer at the low end."""
    square = sensitivity**2
    start = np.minimum(square, fewest * least**2)[:, None]
    edges = start + (square - start) * np.linspace(0, 1, shares + 1) ** 2
    edges[:, -1] = square
    # w = sqrt(s / t): the cell's largest s and fewest items.
    weight = np.sqrt(edges[:, 1:] / fewest[:, None])
    # The subtraction may lose the rest of a nearly used up square; 4 units in the last place cover it.
    shared = square - edges[:, :-1] + 2.0**-50 * square
    items = np.broadcast_to(most[:, None], weight.shape)
    return items.ravel(), weight.ravel(), shared.ravel()


# Several releases with unknown items, one after the other.
#
# With the extra user, some novel item is released in round i with probability at most d_i, after any earlier results;
# else round i is a Gaussian mechanism of sensitivity S on items of both data sets. The pair "hit with probability d_i,
# otherwise shifted by S / sigma_i" dominates each round, and dominating pairs compose under adaptive choice. So with D
# = 1 - (1 - d_1)(1 - d_2)... and mu^2 = S^2 / sigma_1^2 + S^2 / sigma_2^2 + ..., delta is at most the larger of
#
#     with the user against without:    D + (1 - D) delta_G(epsilon - ln(1 - D); mu)
#     without the user against with:    delta_G(epsilon + ln(1 - D); mu)
#
# Novel weights give no credit here, as they do above: the novel items of a user in round 2 may depend on round 1,
# and a supremum over constant shares is no bound. The formula does not require equal weights of novel items. It is
# evaluated in `composition.py`.
#
# With Laplace noise of scale b the rest of a round is private without any delta, with epsilon' = S / b. For epsilon' <=
# epsilon the first line is D: with no hit, each outcome is at most e^epsilon' times as likely with the user as without.
# The second is at most D e^epsilon / (1 + e^epsilon) < D. (A round whose novel items weigh s in sum has only S - s left
# for the rest. Without the user an outcome is then at most e^((S - s) / b) / (1 - d) times as likely as with it, which
# gives at most 1 - (1 - d) e^(s / b) <= d again: sharing the budget gains nothing.) Nor does more epsilon for the rest:
# a user without novel items shows about (epsilon' - epsilon) / 2, which would have to be paid from delta. That is why
# exact accounting leaves Laplace as published.


def either(chances: Sequence[float]) -> float:
    """The probability that at least one of several independent things happens.

    Args:
        chances: The probability of each.

    Returns:
        One less the product of their complements.

    Example:
        >>> either([0.5, 0.5])
        0.75
    """
    # 1 - product of (1 - d_i), by logarithms: chances of 1e-20 would vanish next to 1.
    return -math.expm1(math.fsum(math.log1p(-chance) if chance < 1 else -math.inf for chance in chances))


@proved("set-union.md#laplace-noise")
def laplace_round(epsilon: float, novel: float, scale: float, sensitivity: float) -> float:
    """Delta of a Laplace round.

    Proof: "Sharing the l1 budget between T and the rest gains nothing, in either direction"

    Args:
        epsilon: The epsilon of the guarantee.
        novel: The probability that a novel item is released.
        scale: Of the noise.
        sensitivity: The l1-sensitivity of the weights.

    Returns:
        `novel`, or 1 if the noise costs more than epsilon by itself.
    """
    # epsilon' = S / b <= epsilon, exactly, so that equality with epsilon is seen.
    return novel if Fraction(sensitivity) / Fraction(scale) <= Fraction(epsilon) else 1.0


def threshold_delta(
    novelty: UniqueItems,
    noise: Noise,
    epsilon: float,
    scale: float,
    threshold: float,
    sensitivity: float,
    mu_rest: float = 0.0,
) -> float:
    """A certified upper bound of delta for one thresholded round, numerical slack included.

    Args:
        novelty: The weights that the weighting allows.
        noise: `gaussian` or `laplace`.
        epsilon: The epsilon of the guarantee.
        scale: Of the noise.
        threshold: In weight.
        sensitivity: The bound on the change of all weights by one user, in the novelty's norm.
        mu_rest: Total mu of Gaussian releases about known items; with Gaussian noise only.

    Returns:
        Delta, rounded up, at most 1.
    """
    if noise == "gaussian":
        exact = joint_delta(novelty, epsilon, scale, threshold, sensitivity, mu_rest)
        return min(1.0, exact + numerical_slack(epsilon))
    # d: some novel item is released.
    novel = release_probability(novelty, noise, scale, threshold, sensitivity)
    return min(1.0, laplace_round(epsilon, novel, scale, sensitivity) * ROUNDING + numerical_slack(epsilon))
