"""The total privacy cost of several releases from one collection.

Each release is dominated by a pair of laws, and dominating pairs compose, also where a later release is chosen in view
of an earlier one (Zhu, Dong and Wang, 2022). There are two kinds:

* the pair of a `Spend`: hit with probability d, otherwise shifted by mu; where the spend is `apart`, shifted by mu, and
  d is added to the delta of everything;
* for anything that is (epsilon_j, delta_j)-private: impossible outcomes of mass delta_j on either side, otherwise
  randomised response, whose loss is epsilon_j or -epsilon_j (Kairouz, Oh and Viswanath, 2015).

With D_0 = 1 - (1 - d_1)(1 - d_2)..., D_1 = 1 - (1 - delta_1)(1 - delta_2)..., D the same of both, mu^2 the sum of
squares and L the sum of the losses of randomised responses, delta is at most the larger of

    with the user against without:    D + (1 - D) E[delta_G(epsilon - ln(1 - D_0) - L; mu)]
    without the user against with:    D_1 + (1 - D_1) E[delta_G(epsilon + ln(1 - D_0) - L; mu)]

Every release may also be taken as the second kind. The numbers of the releases must not depend on each other's
outcomes; where they may, an account with caps is needed (`voxpop.ledger`).
"""

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context

import numpy as np

from voxpop.errors import InputError
from voxpop.kernels.arrays import Floats
from voxpop.privacy.gaussian import log_delta
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.joint import ROUNDING, either
from voxpop.privacy.numerics import MOST_PASSES, crossing, walk_slack

MOST_LOSSES = 4096
LOSS_SLACK = 1e-12


def compose(guarantees: Sequence[Guarantee]) -> Guarantee:
    """Return the total guarantee of releases about the same users: the sum of deltas, and the least epsilon for it.

    Args:
        guarantees: One or more.

    Returns:
        A guarantee of all of them, epsilon at most the sum of theirs and rounded up to six digits.

    Raises:
        InputError: None is given, or they do not speak of the same neighbours.

    Example:
        >>> once = Guarantee(1, 1e-7)
        >>> print(compose([once, once]))
        (2, 2e-07)-DP, one user added or removed
    """
    neighbours = {each.neighbours for each in guarantees}
    if len(neighbours) != 1:
        raise InputError(
            f"give guarantees that speak of the same neighbours; got {', '.join(sorted(neighbours)) or 'none'}."
        )
    most = sum_up([each.epsilon for each in guarantees])
    delta = min(1.0, sum_up([each.delta for each in guarantees]))
    private = all(each.private for each in guarantees)
    return Guarantee(_least_epsilon(guarantees, delta, most), delta, neighbours.pop(), private)


def composed_delta(epsilon: float, guarantees: Sequence[Guarantee], *, plain: bool = True) -> float:
    """The delta of all releases at some epsilon.

    Args:
        epsilon: Any real number of at least 0.
        guarantees: The guarantees of the releases.
        plain: Whether to use also the bound that needs only epsilon and delta.

    Returns:
        The better of two bounds: each release by its `Spend` where it has one, and all only by epsilon and delta.
    """
    with_spend = [each for each in guarantees if each.spend is not None]
    by_spend = _delta(epsilon, [each for each in guarantees if each.spend is None], with_spend)
    return min(by_spend, _delta(epsilon, guarantees, [])) if plain and with_spend else by_spend


def sum_up(values: Sequence[float]) -> float:
    """Return a sum that is never below the true sum.

    Args:
        values: What to add.

    Returns:
        The sum, rounded up.
    """
    from fractions import Fraction

    exact = sum((Fraction(value) for value in values), Fraction(0))
    total = float(exact)
    return math.nextafter(total, math.inf) if Fraction(total) < exact else total


def _least_epsilon(guarantees: Sequence[Guarantee], delta: float, most: float) -> float:
    if len(guarantees) == 1 or delta <= 0:
        return most

    def excess(epsilon: float) -> float:
        value = composed_delta(epsilon, guarantees)
        return math.log(value / delta) if value > 0 else -math.inf

    if excess(most) > 0:
        return most
    # Statements print six digits.
    least = Context(prec=6, rounding=ROUND_CEILING).create_decimal_from_float(crossing(excess, 0.0, most, 1e-12))
    return min(most, float(least))


def _delta(epsilon: float, plain: Sequence[Guarantee], spending: Sequence[Guarantee]) -> float:
    spends = [each.spend for each in spending if each.spend]
    # D_0 and mu of the spends; D_1 of the deltas; D of both. Chances that are no part of a pair are added.
    novel = either([each.novel for each in spends if not each.apart])
    added = sum_up([each.novel for each in spends if each.apart])
    mu = math.hypot(*(each.mu for each in spends))
    impossible = either([each.delta for each in plain])
    hit = either([novel, impossible])
    if hit >= 1:
        return 1.0
    # float64 (losses): the values of L, and the probability of each with the user in the data.
    losses, chances = _losses([each.epsilon for each in plain])
    log_none = math.log1p(-novel)
    # The two lines at the top, with -ln(1 - D_0) = -log_none.
    forward = hit + (1 - hit) * float(chances @ np.exp(log_delta(epsilon - log_none - losses, mu)))
    backward = impossible + (1 - impossible) * float(chances @ np.exp(log_delta(epsilon + log_none - losses, mu)))
    slack = walk_slack(epsilon, MOST_PASSES) * len(spending)
    return min(1.0, (added + max(forward, backward)) * ROUNDING + slack)


def _losses(epsilons: Sequence[float]) -> tuple[Floats, Floats]:
    """The sum of losses of randomised responses and its probabilities with the user, losses never rounded down."""
    losses: Floats = np.zeros(1)
    chances: Floats = np.ones(1)
    for number, epsilon in enumerate(sorted(epsilons), start=1):
        # Randomised response gives the true answer with probability e^epsilon / (1 + e^epsilon).
        likelier = 1 / (1 + math.exp(-epsilon))
        both = np.concatenate([losses - epsilon, losses + epsilon])
        weights = np.concatenate([chances * (1 - likelier), chances * likelier])
        distinct, place = np.unique(both.round(12), return_inverse=True)
        if distinct.size > MOST_LOSSES:
            step = sum(sorted(epsilons)[:number]) / (MOST_LOSSES // 4)
            # Too many: losses are rounded up to a grid, which only raises delta.
            steps, place = np.unique(np.ceil(both / step), return_inverse=True)
            distinct = steps * step
        losses, chances = distinct + LOSS_SLACK, np.bincount(place, weights).astype(np.float64)
    return losses, chances
