"""What a release that says only *which* items costs: delta from a Renyi divergence and a rate of novel items.

A user's items split into those that others hold, with a divergence of at most tau of one order, and those that nobody
else has, one of which comes out with probability at most 1 - e^-rate. docs/privacy/set-only.md holds the proof.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import exp, expm1, inf, isfinite, log, log1p
from typing import Any, Final

import numpy as np

from voxpop.arrays import Floats, Int64s
from voxpop.errors import BudgetError
from voxpop.privacy.budget import Budget
from voxpop.privacy.precise import context, number
from voxpop.privacy.release_table import ReleaseTable, Steps, log_odds, solve
from voxpop.privacy.search import lowest
from voxpop.privacy.slack import numerical_slack

NOVEL_SHARE: Final = 0.4
"""Of several rounds' delta, the part for novel items. One round needs no split: a user spends on one or the other."""
_SAFE: Final = 1.0 - 2.0**-30
_ORDERS: Final = (0.7, 4.0)
_COARSE_STEPS: Final = 12
_COARSE_LEAST: Final = 12
_COARSE_MOST: Final = 1 << 14


@dataclass(frozen=True, slots=True)
class Allowance:
    """What one user may cost over all rounds.

    Attributes:
        order: order of the Renyi divergence.
        tau: divergence from items that others hold.
        rate: -ln(1 - probability that a novel item is released).
    """

    order: float
    tau: float
    rate: float

    def part(self, fraction: float) -> "Allowance":
        """Return a fraction of it, for one round, rounded down."""
        return Allowance(self.order, self.tau * fraction * _SAFE, self.rate * fraction * _SAFE)


@dataclass(frozen=True, slots=True)
class SetOnlyRound:
    """One round: its allowance and its certified table."""

    allowance: Allowance
    table: ReleaseTable

    def to_dict(self) -> dict[str, float]:
        """Return its public numbers."""
        return {
            "order": self.allowance.order,
            "tau": self.allowance.tau,
            "novel_delta": -expm1(-self.allowance.rate),
            "least_weight_units": self.table.least,
        }


def plan_set_only(budget: Budget, shares: Int64s, fractions: tuple[float, ...] = (1.0,)) -> tuple[SetOnlyRound, ...]:
    """Choose the order and fill in every round's table: a public search, no data.

    Args:
        budget: what may be spent.
        shares: int64 (limit + 1), units that each item gets by the number of items held; not rising.
        fractions: each round's part of tau and of the rate.

    Returns:
        One table per round. `spent_delta` of their allowances is at most the budget's delta.

    Raises:
        BudgetError: if the budget is too small for this accounting.
    """
    return _plan(budget, tuple(int(share) for share in shares), fractions)


@lru_cache(maxsize=16)
def _plan(budget: Budget, shares: tuple[int, ...], fractions: tuple[float, ...]) -> tuple[SetOnlyRound, ...]:
    steps = Steps.of(np.array(shares, np.int64))
    limit, several = len(shares) - 1, len(fractions) > 1
    delta = (budget.delta - numerical_slack(budget.epsilon)) * _SAFE
    allowance = best_allowance(budget.epsilon, delta, steps, limit, fractions)
    rounds = []
    for fraction in fractions:
        part = allowance.part(fraction) if several else allowance
        rounds.append(SetOnlyRound(part, solve(part.order, part.tau, part.rate, steps)))
    return tuple(rounds)


def total_allowance(rounds: tuple[SetOnlyRound, ...]) -> Allowance:
    """Add up what the rounds may cost, rounded up."""
    parts = [each.allowance for each in rounds]
    up = 1.0 + 2.0**-48 if len(parts) > 1 else 1.0
    return Allowance(parts[0].order, sum(part.tau for part in parts) * up, sum(part.rate for part in parts) * up)


def best_allowance(
    epsilon: float, delta: float, steps: Steps, limit: int, fractions: tuple[float, ...] = (1.0,)
) -> Allowance:
    """Return the allowance whose last round needs the least weight for an even chance, on a coarse grid."""
    if delta <= 0.0:
        raise BudgetError("delta is below what 128-bit decisions can promise; use at least 1e-25.")
    coarse, several = _coarse(steps), len(fractions) > 1

    def weight(log_order: float) -> float:
        allowance = allowance_at(1.0 + exp(log_order), epsilon, delta, limit, several=several)
        if allowance is None:
            return inf
        last = allowance.part(fractions[-1])
        try:
            odds = log_odds(
                last.order, last.tau, last.rate, coarse, spacing=0.2, shrink=0.0, until=1.0, most=_COARSE_MOST
            )
        except BudgetError:
            return inf
        return _half(odds)  # not only whole weights: a smooth curve to search on

    # tau is about epsilon - ln(1 / delta) / (order - 1): nothing is left of it much below this order.
    centre = log(log(1.0 / delta) / epsilon)
    orders = np.linspace(centre + log(_ORDERS[0]), centre + log(_ORDERS[1]), 9)
    weights = [weight(each) for each in orders.tolist()]
    best = int(np.argmin(weights))
    if not isfinite(weights[best]):
        raise BudgetError(
            f"epsilon {epsilon:g} and delta {delta:g} are too small for set-only accounting; "
            'use accounting="joint" or a larger budget.'
        )
    found = lowest(weight, float(orders[max(best - 1, 0)]), float(orders[min(best + 1, 8)]), steps=5)
    allowance = allowance_at(1.0 + exp(found), epsilon, delta, limit, several=several)
    if allowance is None:
        raise BudgetError(f'epsilon {epsilon:g} is too small for set-only accounting; use accounting="joint".')
    return allowance


def _half(odds: Floats) -> float:
    """Return where rising log-odds cross zero."""
    turn = int(np.searchsorted(odds, 0.0))
    if not 0 < turn < len(odds):
        return float(turn)
    # By a straight line between the last weight below even odds and the first above.
    return float(turn - odds[turn] / (odds[turn] - odds[turn - 1]))


def _coarse(steps: Steps) -> Steps:
    """Return a dozen of the steps on a grid as coarse as they allow: near enough to compare orders."""
    chosen = np.unique(np.linspace(0, len(steps.units) - 1, _COARSE_STEPS).astype(np.int64))
    unit = max(1, steps.least // _COARSE_LEAST)
    units = np.maximum(steps.units[chosen] // unit, 1)
    distinct, first = np.unique(units, return_index=True)
    return Steps(distinct, steps.held[chosen][first])


def allowance_at(order: float, epsilon: float, delta: float, limit: int, *, several: bool = False) -> Allowance | None:
    """Return the largest allowance that an order leaves, or None where it leaves none.

    Args:
        order: above 1.
        epsilon: of the guarantee.
        delta: of the guarantee.
        limit: most items of one user.
        several: whether there are several rounds, whose novel and other items may add up.

    Returns:
        An allowance of which `spent_delta` is at most delta.
    """
    # A divergence of at most tau of order a gives
    # delta = e^((a - 1)(tau - epsilon)) (1 - 1/a)^a / (a - 1) (Canonne, Kamath and Steinke, 2020); this is its tau.
    known = delta * (1.0 - NOVEL_SHARE) if several else delta
    tau = (epsilon + (log(known) + log(order - 1.0) - order * log1p(-1.0 / order)) / (order - 1.0)) * _SAFE
    if not tau > 0.0:
        return None
    rate = -log1p(-delta * NOVEL_SHARE) if several else -log1p(-delta)
    # A user whose novel items are a share s of all spends s of the rate and 1 - s of tau. Costs are convex in s, so s =
    # 0, s = 1 and the largest s with an item that others hold decide.
    widest = (limit - 1) / limit
    if not several and widest > 0.0:
        rate = min(rate, (delta - known * exp(-(order - 1.0) * tau * widest)) / widest)
    allowance = Allowance(order, tau, rate * _SAFE)
    if not allowance.rate > 0.0 or not spent_delta(allowance, epsilon, limit, several=several) <= delta:
        return None
    return allowance


def spent_delta(allowance: Allowance, epsilon: float, limit: int, *, several: bool) -> float:
    """Return what an allowance costs at most: the larger of both directions, rounded up from eighty digits.

    Args:
        allowance: over all rounds.
        epsilon: of the guarantee.
        limit: most items of one user.
        several: whether there are several rounds.

    Returns:
        A delta that the exact one does not exceed.

    Example:
        >>> spent_delta(Allowance(order=2.0, tau=1.0, rate=0.0), epsilon=5.0, limit=1, several=False)  # e^-4 / 4
        0.0045789097221835455
    """
    order, tau, rate = number(allowance.order), number(allowance.tau), number(allowance.rate)
    exact = number(epsilon)
    # In eighty digits. `known`: the formula of `allowance_at`. `novel`: 1 - e^-rate, that a novel item comes out.
    novel = -context.expm1(-rate)
    known: Any = context.exp((order - 1) * (tau - exact)) * context.power(1 - 1 / order, order) / (order - 1)
    if several:
        worst = max(novel + (1 - novel) ** order * known, known * context.exp((order - 1) * rate))
    else:
        # One round: s = 0, s = 1, and both directions at s = (limit - 1) / limit (docs/privacy/set-only.md).
        share = number(limit - 1) / limit
        worst = max(
            known,
            novel,
            share * rate + known * context.exp(-share * ((order - 1) * tau + order * rate)),
            known * context.exp(share * (order - 1) * (rate - tau)),
        )
    return float(worst) * (1.0 + 2.0**-52)
