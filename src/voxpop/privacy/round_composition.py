"""Several releases with unknown items, one after the other.

With the extra user, some novel item is released in round i with probability at most d_i, whatever came before; else
round i is a Gaussian mechanism of sensitivity S on what both data sets hold. The pair "hit with probability d_i,
otherwise shifted by S / sigma_i" dominates each round, and dominating pairs compose under adaptive choice. So with
D = 1 - (1 - d_1)(1 - d_2)... and mu^2 = S^2 / sigma_1^2 + S^2 / sigma_2^2 + ..., delta is at most the larger of

    with the user against without:    D + (1 - D) delta_G(epsilon - ln(1 - D); mu)
    without the user against with:    delta_G(epsilon + ln(1 - D); mu)

Novel weights give no credit here, as they would in `joint.py`: what a user has novel in round 2 may depend on round 1,
and a supremum over constant shares is no bound. The formula does not ask novel items to weigh the same.

With Laplace noise the rest of round i is (S / b_i)-private without any delta, so the whole rest is pure with
epsilon' = S / b_1 + S / b_2 + ..., and delta_G gives way to that of a pure mechanism,

    h(epsilon) = max(0, (e^epsilon' - e^epsilon) / (1 + e^epsilon')).

For epsilon' <= epsilon the first line is D: with no hit, each outcome is at most e^epsilon' times as likely with the
user as without. The second is at most D e^epsilon / (1 + e^epsilon) < D. (A round whose novel items weigh s in sum has
only S - s left for the rest. Without the user an outcome is then at most e^((S - s) / b) / (1 - d) times as likely as
with it, which gives at most 1 - (1 - d) e^(s / b) <= d again: sharing the budget gains nothing.) Nor does more epsilon
for the rest: a user without novel items shows h(epsilon) of about (epsilon' - epsilon) / 2, which would have to be paid
from delta. That is why exact accounting leaves Laplace as published.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from voxpop.privacy.gaussian import delta as gaussian_delta


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
    # 1 - product of (1 - d_i), by logarithms: chances of 1e-20 would vanish beside 1.
    return -math.expm1(math.fsum(math.log1p(-chance) if chance < 1 else -math.inf for chance in chances))


def gaussian_rounds(epsilon: float, novel: float, mu: float) -> float:
    """Delta of several Gaussian rounds.

    Args:
        epsilon: The epsilon of the guarantee.
        novel: D above: the probability that a novel item is ever released.
        mu: The total mu of all rounds.

    Returns:
        The larger of the two directions.
    """
    if novel >= 1:
        return 1.0
    # ln(1 - D), below 0: without a hit the law with the user has the mass 1 - D.
    log_none = math.log1p(-novel)
    forward = novel + (1 - novel) * gaussian_delta(epsilon - log_none, mu)
    # The second line of the header: without the user against with.
    return max(forward, gaussian_delta(epsilon + log_none, mu))


def laplace_rounds(epsilon: float, novel: float, scales: Sequence[float], sensitivity: float) -> float:
    """Delta of several Laplace rounds.

    Args:
        epsilon: The epsilon of the guarantee.
        novel: D above: the probability that a novel item is ever released.
        scales: The scale of each round.
        sensitivity: The l1-sensitivity of the weights.

    Returns:
        The larger of the two directions.
    """
    if novel >= 1:
        return 1.0
    # epsilon' = sum of S / b_i, exactly, so that equality with epsilon is seen.
    spent = sum((Fraction(sensitivity) / Fraction(scale) for scale in scales), Fraction(0))
    if spent <= Fraction(epsilon):
        return novel
    log_none = math.log1p(-novel)
    forward = novel + (1 - novel) * pure_delta(epsilon - log_none, float(spent))
    return max(forward, pure_delta(epsilon + log_none, float(spent)))


def pure_delta(epsilon: float, pure: float) -> float:
    """The delta at `epsilon` of a mechanism that is private with a larger epsilon and no delta.

    Args:
        epsilon: Where to evaluate.
        pure: The mechanism's own epsilon.

    Returns:
        The delta of randomised response, the worst such mechanism.

    Example:
        >>> pure_delta(1.0, 1.0)
        0.0
    """
    # (e^p - e^eps) / (1 + e^p), divided through by e^p.
    return max(0.0, -math.expm1(min(epsilon - pure, 0.0)) / (1 + math.exp(-pure)))
