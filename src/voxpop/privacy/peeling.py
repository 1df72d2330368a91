"""The privacy cost of picking the largest counts one after another with exponential mechanisms.

An additional user increases any number of counts, each by 1. Therefore the privacy loss of one pick is in an interval
of length `rate` ("bounded range", Durfee and Rogers, 2019). This implies two bounds for k picks:

- k picks are (k rate, 0)-private;
- their Renyi divergence of order a is at most k a rate^2 / 8 (Hoeffding's lemma; Cesar and Rogers, 2021), hence
  delta = e^((a-1)(k a rate^2 / 8 - epsilon)) (1 - 1/a)^a / (a - 1) for every a > 1 (Canonne, Kamath and Steinke, 2020).

docs/privacy/top.md contains the proof and the allowance for finite arithmetic.
"""

from math import exp, log, log1p, sqrt
from typing import TYPE_CHECKING, Final

from voxpop.errors import BudgetError
from voxpop.kernels.proved import proved
from voxpop.privacy.budget import Budget, check_slack
from voxpop.privacy.guarantee import Expense, dominating_mu
from voxpop.privacy.numerics import lowest
from voxpop.privacy.sampling import LEAST_RATE, LOST, log_error

if TYPE_CHECKING:
    from voxpop.privacy.passes import Claim

_ROUNDING: Final = 1 + 1e-9
"""An upper bound on the relative error of bounds in doubles."""
_LARGEST_EPSILON: Final = 700.0
"""The largest epsilon. At this epsilon, no delta below 1 is possible, and for larger values e^epsilon exceeds the range
of doubles.
"""
MOST_RATE: Final = 1e6
"""A rate above the rates of all budgets."""
HALVINGS: Final = 100
LOG_ORDERS: Final = tuple(range(-30, 40))
"""The values of ln(a - 1) from which the search over orders a starts."""


@proved("top.md#k-picks")
def peeling_delta(epsilon: float, picks: int, rate: float) -> float:
    """Return the delta of `picks` picks at an epsilon, which is the smaller of the two bounds, rounded up.

    Proof: "Hence delta(epsilon) <= e^((a-1)(k a r^2 / 8 - epsilon)) (1 - 1/a)^a / (a - 1) for every a > 1"

    Args:
        epsilon: The epsilon of the guarantee, more than 0.
        picks: The number of picks.
        rate: The rate of each pick, per count.

    Returns:
        The delta.

    Example:
        >>> peeling_delta(1.0, picks=10, rate=0.09), peeling_delta(1.0, picks=100, rate=0.03) < 1e-6
        (0.0, True)
    """
    # By basic composition, k picks are (k rate, 0)-private, because each pick is (rate, 0)-private.
    if picks * rate * _ROUNDING <= epsilon:
        return 0.0
    # k rate^2 / 8 is a bound on the Renyi divergence of order a, divided by a (Hoeffding's lemma on an interval of
    # length rate).
    square = picks * rate * rate / 8 * _ROUNDING

    def log_at(log_order: float) -> float:
        more = exp(log_order)  # the order minus 1
        # The logarithm of delta is (a - 1)(a k rate^2 / 8 - epsilon) + a ln(1 - 1/a) - ln(a - 1) with a = 1 + more.
        return more * ((1 + more) * square - epsilon) + (1 + more) * (log_order - log1p(more)) - log_order

    # Every order gives a valid delta, so an early end of the search reduces accuracy but not privacy.
    best = float(min(LOG_ORDERS, key=log_at))
    best = lowest(log_at, best - 1.0, best + 1.0)
    return min(1.0, exp(min(log_at(best), 0.0)) * _ROUNDING)


@proved("top.md#what-integers-and-doubles-change")
def spent(budget: "Budget | Claim", picks: int, candidates: int, rate: float) -> float:
    """Return the delta that picks, computed in cells and doubles, spend at the epsilon of the budget.

    Proof: "exact (epsilon', delta')-privacy becomes (epsilon' + 2 g, e^g delta')"

    Args:
        budget: The budget with the epsilon of the guarantee.
        picks: The number of picks.
        candidates: The number of counts to choose from.
        rate: The rate of each pick.

    Returns:
        The delta, rounded up, or 1 if epsilon is below the cost of finite arithmetic.
    """
    # In both collections, the distributions in cells and doubles are within a factor of e^shift of the exact
    # distributions. Therefore epsilon is reduced by two shifts, and delta is multiplied by e^shift.
    shift = picks * (picks + 1) * log_error(rate)
    epsilon = budget.epsilon - 2 * shift
    if epsilon <= 0.0:
        return 1.0
    return peeling_delta(epsilon, picks, rate) * exp(shift) * _ROUNDING + _lost(budget.epsilon, candidates)


@proved("top.md#other-releases")
def picks_spend(epsilon: float, picks: int, candidates: int, rate: float) -> Expense:
    """Return the spend of picks for composition with Gaussian releases (docs/privacy/top.md, "Other releases").

    Proof: "The trade-off function of a Gaussian mechanism of this mu therefore lies below that of the pick, which has
    these vertices, and k picks have k times its square."

    Args:
        epsilon: The epsilon of the guarantee.
        picks: The number of picks.
        candidates: The number of counts to choose from.
        rate: The rate of each pick.

    Returns:
        A spend whose only revealing outcomes are draws that finite arithmetic cannot resolve.
    """
    # The Gaussian mechanism that dominates randomised response of half the rate also dominates a pick. The squares of
    # the mu of k picks add up. Cells and doubles change every probability by at most a factor of e^shift on either
    # side.
    shift = picks * (picks + 1) * log_error(rate)
    mu = sqrt(picks) * dominating_mu(rate / 2) + 2 * dominating_mu(shift)
    return Expense(min(1.0, _lost(epsilon, candidates) * _ROUNDING), mu * _ROUNDING)


def largest_rate(budget: Budget, picks: int, candidates: int) -> float:
    """Return the largest rate of `picks` picks within a budget.

    Args:
        budget: The privacy budget.
        picks: The number of picks.
        candidates: The number of counts to choose from.

    Returns:
        The rate per count. The largest rate gives the least noise.

    Raises:
        BudgetError: If the budget is too small.
    """
    check_slack(f"a ranking of {candidates:,} items needs", budget, _lost(budget.epsilon, candidates))
    low, high = 0.0, MOST_RATE
    for _ in range(HALVINGS):
        rate = (low + high) / 2
        low, high = (rate, high) if spent(budget, picks, candidates, rate) <= budget.delta else (low, rate)
    if low < LEAST_RATE:
        raise BudgetError(
            f"{picks:,} places cannot be ranked at epsilon {budget.epsilon:g}, because the noise would exceed 64 bits. "
            "Choose fewer places, or raise `epsilon`."
        )
    return low


@proved("top.md#what-integers-and-doubles-change")
def _lost(epsilon: float, candidates: int) -> float:
    """Return the cost in delta of draws that need more than 128 bits, with and without the user.

    Proof: "For the exceptions, delta is charged m 2^-77 (1 + e^epsilon)."
    """
    return candidates * LOST * (1.0 + exp(min(epsilon, _LARGEST_EPSILON)))


def gumbel_spread(rate: float) -> float:
    """Return the standard deviation of the noise on a count."""
    # pi / sqrt(6) is the standard deviation of a Gumbel variable of scale 1.
    return 1.2825498301618643 / rate


def behind(picks: int, candidates: int, rate: float, probability: float) -> float:
    """Return a bound on the difference between counts that are ranked out of order, for a given probability.

    With this probability, the count of every pick is less than this bound below the largest count that was still
    available.
    """
    # One pick has an error of at least t with probability at most n e^(-rate t) (McSherry and Talwar, 2007). The code
    # solves the union bound over k picks for t.
    return (log(candidates) + log(picks) - log1p(-probability)) / rate
