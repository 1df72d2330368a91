"""The exact joint bound for one thresholded Gaussian release.

Assume that one user is added. Let t of their items be novel, which means that no other user has them. Let w be the
weight of each novel item, and let s = t w^2. All weights together change by at most the sensitivity S. The novel items
account for the part s of S^2, so the weights of shared items change by at most sqrt(S^2 - s). Let d = 1 -
Phi((threshold - w) / sigma)^t be the probability that a novel item is released, and let m^2 be (S^2 - s) / sigma^2 plus
the mu^2 of all other releases about known items. Then delta is bounded by

    with the user against without:    d + (1 - d) delta_G(epsilon - ln(1 - d); m)
    without the user against with:    delta_G(epsilon + ln(1 - d); m)

Proof: The noise of different items is independent. Without the user, no novel item can be released, so outcomes with a
novel item cost d. For the remaining outcomes, compare (1 - d) times a Gaussian with e^epsilon times its shift by m, in
either direction. Both expressions increase in d and in m, so the largest d and the largest m in a cell (a set of cases)
cover all cases of the cell.

The bound has three requirements. Novel items must have equal weights, because unequal weights can cost more. Their
weight must have a lower bound, because the supremum starts at s = t least^2. No other release may contain unknown items
(docs/privacy/rounds.md covers several such releases). Known items may be released earlier or later by adaptively chosen
Gaussian mechanisms if the sum of their mu^2 is at most `mu_rest`^2.
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

ROUNDING = 1 + 1e-10  # exceeds the relative error of the doubles below; the relative error of delta_G is at most 1e-11
_EXACT_PAIRS = 512  # up to this limit, the pairs (items of the user, novel items) are enumerated for even weights
_SHARES = 400  # the number of cells of s for each number of novel items
_SHARES_OF_FEW = 4000  # the number of cells of s for up to 8 novel items, because w then changes fastest with s


@dataclass(frozen=True, slots=True, eq=False)
class Cases:
    """The cases of novel items that one user can have. Each case covers a cell.

    Args:
        items: The largest number of novel items in each cell.
        weight: The largest weight of a novel item in each cell.
        shared: The largest part of S^2 that remains for the shared items in each cell.
    """

    items: Floats
    weight: Floats
    shared: Floats

    def where(self, chosen: Bools) -> "Cases":
        """Return the chosen cases.

        Args:
            chosen: Whether each case is chosen.

        Returns:
            The chosen cases.
        """
        return Cases(self.items[chosen], self.weight[chosen], self.shared[chosen])


@proved("set-union.md#gaussian-noise-the-joint-bound")
def deltas(cases: Cases, epsilon: float, sigma: float, threshold: float, mu_rest: float = 0.0) -> Floats:
    """Return, for each case, the bound in the docstring of this module.

    Proof: "The noise terms are independent, so with the user the distribution is P_T x P_2, and without the user it is
    Q = {nothing of T} x Q_2"

    Args:
        cases: The cases of novel items.
        epsilon: The epsilon of the guarantee.
        sigma: The standard deviation of the noise.
        threshold: The threshold, in units of weight.
        mu_rest: The total mu of other Gaussian releases, which must be about known items.

    Returns:
        The delta of each case.
    """
    # Compute ln(1 - d), then d and m, and the two bounds, each of shape (cases,).
    log_none = cases.items * log_ndtr((threshold - cases.weight) / sigma)
    hit = -np.expm1(log_none)
    mu = np.sqrt(cases.shared / sigma**2 + mu_rest**2)
    forward = hit + (1 - hit) * np.exp(log_delta(epsilon - log_none, mu))
    return np.asarray(np.maximum(forward, np.exp(log_delta(epsilon + log_none, mu))))


@proved("set-union.md#gaussian-noise-the-joint-bound")
def joint_delta(
    novelty: UniqueItems, epsilon: float, sigma: float, threshold: float, sensitivity: float, mu_rest: float = 0.0
) -> float:
    """Return a certified upper bound on delta over all cases that the weighting allows.

    Proof: "The plan takes the largest delta over all"

    Args:
        novelty: The weights that the weighting allows.
        epsilon: The epsilon of the guarantee.
        sigma: The standard deviation of the noise.
        threshold: The threshold, in units of weight.
        sensitivity: The l2-sensitivity of all weights together.
        mu_rest: The total mu of other Gaussian releases, which must be about known items.

    Returns:
        The bound on delta, rounded up.
    """
    worst = float(np.max(deltas(certified_cases(novelty, sensitivity), epsilon, sigma, threshold, mu_rest)))
    none_novel = float(np.exp(log_delta(epsilon, math.hypot(sensitivity / sigma, mu_rest))))
    return max(worst, none_novel) * ROUNDING


@lru_cache(maxsize=4)
@proved("set-union.md#gaussian-noise-the-joint-bound")
def certified_cases(novelty: UniqueItems, sensitivity: float) -> Cases:
    """Return cases that cover all weights that the weighting allows.

    Proof: "The plan takes the largest delta over all (|T|, w) that the weighting allows. This maximum is certified."

    Args:
        novelty: The weights that the weighting allows.
        sensitivity: The l2-sensitivity of all weights together.

    Returns:
        The cases.
    """
    if novelty.shape == "fixed":
        return _fixed_cases(novelty)
    if novelty.shape == "even" and novelty.limit <= _EXACT_PAIRS:
        # Enumerate every pair with 1 <= t <= n <= limit, for t novel items among n items.
        held, novel = (index.astype(np.float64) + 1 for index in np.tril_indices(novelty.limit))
        return _even_pairs(held, novel, sensitivity)
    # If there are too many pairs of even weights, use the fact that no item weighs less than S limit^(-1/2).
    least = sensitivity * novelty.limit**-0.5 if novelty.shape == "even" else novelty.least
    return _symmetric_cases(novelty.limit, least, sensitivity)


@lru_cache(maxsize=4)
def sampled_cases(novelty: UniqueItems, sensitivity: float) -> Cases:
    """Return a few hundred of the cases that `certified_cases` covers.

    These cases are sufficient for a search, but not for a guarantee.
    """
    if novelty.shape == "fixed":
        return _fixed_cases(novelty)
    few = np.unique(np.geomspace(1, novelty.limit, 24).astype(np.int64)).astype(np.float64)
    if novelty.shape == "even":
        held, novel = np.meshgrid(few, few)
        return _even_pairs(held[novel <= held], novel[novel <= held], sensitivity)
    items = few[:, None]
    least = np.minimum(sensitivity**2, items * novelty.least**2)
    squares = least + (sensitivity**2 - least) * np.linspace(0, 1, 15) ** 2
    squares[:, -1] = sensitivity**2  # without this line, rounding could exceed the largest square
    spread = np.broadcast_to(items, squares.shape)
    weight = np.sqrt(squares / spread)
    return Cases(spread.ravel(), weight.ravel(), (sensitivity**2 - squares).ravel())


@proved("set-union.md#what-integers-and-doubles-change")
def _fixed_cases(novelty: UniqueItems) -> Cases:
    """Return the cases of a fixed weight, for each number of novel items.

    Proof: "limit - t shared items have the square w^2 each"
    """
    fewest, most = cells(novelty.limit)
    return Cases(most, np.full(len(most), novelty.least), (novelty.limit - fewest) * novelty.least**2)


@proved("set-union.md#gaussian-noise-the-joint-bound")
def _even_pairs(held: Floats, novel: Floats, sensitivity: float) -> Cases:
    """Return the cases of even weights.

    A user with n items gives each item at most S n^(-1/2), so the squares of the n - t shared items add up to at most
    S^2 (n - t) / n.

    Proof: "The other coordinates differ by at most sqrt(S^2 - s) in l2."
    """
    return Cases(novel, sensitivity / np.sqrt(held), sensitivity**2 * (held - novel) / held)


@proved("set-union.md#gaussian-noise-the-joint-bound")
def _symmetric_cases(limit: int, least: float, sensitivity: float) -> Cases:
    """Return cells that cover all equal weights of novel items, for each number of these items.

    Proof: "For policies, the range of w is divided into cells, and each cell uses its largest d and largest m, because
    delta increases with both."
    """
    fewest, most = cells(limit)
    few = fewest <= 8
    parts = [
        _share_cells(fewest[chosen], most[chosen], least, sensitivity, shares)
        for chosen, shares in ((few, _SHARES_OF_FEW), (~few, _SHARES))
    ]
    return Cases(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


@proved("set-union.md#gaussian-noise-the-joint-bound")
def _share_cells(
    fewest: Floats, most: Floats, least: float, sensitivity: float, shares: int
) -> tuple[Floats, Floats, Floats]:
    """Return cells of s = t w^2 for each number of novel items, from the smallest s to S^2.

    Proof: "For policies, the range of w is divided into cells, and each cell uses its largest d and largest m, because
    delta increases with both."

    The cells are finer for small s.
    """
    square = sensitivity**2
    start = np.minimum(square, fewest * least**2)[:, None]
    edges = start + (square - start) * np.linspace(0, 1, shares + 1) ** 2
    edges[:, -1] = square
    # This is w = sqrt(s / t) for the largest s and the smallest t of the cell.
    weight = np.sqrt(edges[:, 1:] / fewest[:, None])
    # If the square is almost used up, the subtraction can lose the rest. 4 units in the last place cover this error.
    shared = square - edges[:, :-1] + 2.0**-50 * square
    items = np.broadcast_to(most[:, None], weight.shape)
    return items.ravel(), weight.ravel(), shared.ravel()


# Several consecutive releases with unknown items.
#
# With the additional user, round i releases a novel item with probability at most d_i, given any earlier results.
# Otherwise round i is a Gaussian mechanism of sensitivity S on items that both data sets contain. The pair "hit with
# probability d_i, otherwise shifted by S / sigma_i" dominates each round, and dominating pairs compose under adaptive
# choice. Therefore, with D = 1 - (1 - d_1)(1 - d_2)... and mu^2 = S^2 / sigma_1^2 + S^2 / sigma_2^2 + ..., delta is at
# most the larger of
#
#     with the user against without:    D + (1 - D) delta_G(epsilon - ln(1 - D); mu)
#     without the user against with:    delta_G(epsilon + ln(1 - D); mu)
#
# Unlike in the bound for one release, the weights of novel items do not reduce mu here. The novel items of a user in
# round 2 can depend on round 1, so a supremum over constant shares is not a bound. The formula does not require that
# novel items have equal weights. `composition.py` composes releases with a symmetric pair instead.
#
# With Laplace noise of scale b, the rest of a round is (epsilon', 0)-private with epsilon' = S / b. If epsilon' <=
# epsilon, the first line is D, because without a hit, each outcome is at most e^epsilon' times as likely with the user
# as without. The second line is at most D e^epsilon / (1 + e^epsilon) < D. (If the novel items of a round have total
# weight s, only S - s remains for the rest. Then an outcome without the user is at most e^((S - s) / b) / (1 - d) times
# as likely as with the user. The result is again at most 1 - (1 - d) e^(s / b) <= d, so sharing the budget does not
# help.) A larger epsilon for the rest does not help either, because a user without novel items then costs about
# (epsilon' - epsilon) / 2 of delta. Therefore exact accounting for Laplace noise equals the published accounting.


def either(chances: Sequence[float]) -> float:
    """Return the probability that at least one of several independent events occurs.

    Args:
        chances: The probability of each event.

    Returns:
        One minus the product of the complements.

    Example:
        >>> either([0.5, 0.5])
        0.75
    """
    # Compute 1 - product of (1 - d_i) with logarithms, because probabilities of 1e-20 would be lost in 1 - d_i.
    return -math.expm1(math.fsum(math.log1p(-chance) if chance < 1 else -math.inf for chance in chances))


@proved("set-union.md#laplace-noise")
def laplace_round(epsilon: float, novel: float, scale: float, sensitivity: float) -> float:
    """Return the delta of a Laplace round.

    Proof: "So a joint bound for T and the rest gains nothing, in either direction"

    Args:
        epsilon: The epsilon of the guarantee.
        novel: The probability that a novel item is released.
        scale: The scale of the noise.
        sensitivity: The l1-sensitivity of the weights.

    Returns:
        The value of `novel`, or 1 if the noise costs more than epsilon.
    """
    # Compare epsilon' = S / b with epsilon in exact fractions, so that equality is detected.
    return novel if Fraction(sensitivity) / Fraction(scale) <= Fraction(epsilon) else 1.0


@proved("randomness.md#exact-decisions")
def threshold_delta(
    novelty: UniqueItems,
    noise: Noise,
    epsilon: float,
    scale: float,
    threshold: float,
    sensitivity: float,
    mu_rest: float = 0.0,
) -> float:
    """Return a certified upper bound on delta for one thresholded round, including numerical slack.

    Proof: "Therefore (1 + e^epsilon) 2^31 2^-128 is charged to delta."

    Args:
        novelty: The weights that the weighting allows.
        noise: `gaussian` or `laplace`.
        epsilon: The epsilon of the guarantee.
        scale: The scale of the noise.
        threshold: The threshold, in units of weight.
        sensitivity: The bound on how much one user changes all weights together, in the norm of `novelty`.
        mu_rest: The total mu of other Gaussian releases, which must be about known items (only for Gaussian noise).

    Returns:
        The bound on delta, rounded up, at most 1.
    """
    if noise == "gaussian":
        exact = joint_delta(novelty, epsilon, scale, threshold, sensitivity, mu_rest)
        return min(1.0, exact + numerical_slack(epsilon))
    # This is d, the probability that any novel item is released.
    novel = release_probability(novelty, noise, scale, threshold, sensitivity)
    return min(1.0, laplace_round(epsilon, novel, scale, sensitivity) * ROUNDING + numerical_slack(epsilon))
