"""How many users must hold an item before it is likely to be released: no data needed."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from voxpop.errors import InputError
from voxpop.privacy.budget import Budget
from voxpop.privacy.search import least_whole

if TYPE_CHECKING:
    from voxpop.privacy.decide import Rule
    from voxpop.rounds.plan import RoundPlan

MOST_USERS = 10**12
COMMON = 10
"""An item is called common where so many times the users hold it as make its release as likely as not."""
PROBABILITIES = (0.5, 0.9, 0.99)
SIZES = (1, 10, 100)
SPREAD = 9.0
"""Standard deviations of a binomial beyond which its terms are left out: below 1e-17 of it."""


def users_needed_rows(holders: Callable[[float, int], int | None]) -> list[dict[str, Any]]:
    """Return how many users an item needs, for usual numbers of items and probabilities, ready for JSON."""
    return [
        {"items": items, "probability": probability, "users": holders(probability, items)}
        for items in SIZES
        for probability in PROBABILITIES
    ]


def check_holders(probability: float, items: int) -> None:
    """Refuse arguments of `holders` that are out of range."""
    if not 0.0 < probability < 1.0:
        raise InputError(f"`probability` must lie strictly between 0 and 1, got {probability!r}.")
    if isinstance(items, bool) or not isinstance(items, int) or items < 1:
        raise InputError(f"`items` must be a whole number of at least 1, got {items!r}.")


def users_needed(round_plan: "RoundPlan", budget: Budget, probability: float, items: int) -> int | None:
    """Return the least number of holders who reach the probability, or None; see `UnionPlan.holders`."""
    rule = round_plan.rule(budget)

    def reached(users: int) -> bool:
        return _release_probability(round_plan, rule, users, items) >= probability

    return least_whole(reached, 0, 1, MOST_USERS)


def missing(round_plan: "RoundPlan", budget: Budget, items: int) -> float:
    """Return how likely an item of ten times the users needed is not released; see `UnionPlan.missing`."""
    users = users_needed(round_plan, budget, 0.5, items)
    return 1.0 if users is None else _probabilities(round_plan, round_plan.rule(budget), COMMON * users, items)[1]


def _release_probability(round_plan: "RoundPlan", rule: "Rule", users: int, items: int) -> float:
    return _probabilities(round_plan, rule, users, items)[0]


def _probabilities(round_plan: "RoundPlan", rule: "Rule", users: int, items: int) -> tuple[float, float]:
    """Average the chances to be released and not to be, over how many of the users choose the item."""
    setting = round_plan.shares.setting
    share = round_plan.shares.weighting_rule.share(min(items, setting.limit), setting)
    # A holder of more items than the limit draws this one with probability limit / items, each user by itself.
    choosing, chances = _binomial(users, min(1.0, setting.limit / items))
    # (outcomes,), weight in units of the grid, cut where it stops rising.
    weights = np.minimum(choosing * share * setting.unit, 2.0**62)
    if setting.cutoff:
        weights = np.minimum(weights, setting.cutoff)
    released, kept_back = rule.probability(np.floor(weights + 0.5).astype(np.int64))
    # Both sums are taken for themselves: one less the other would lose what is rare.
    return float(released @ chances), float(kept_back @ chances)


def _binomial(trials: int, chance: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the likely outcomes of a binomial and their probabilities."""
    if chance >= 1.0:
        return np.array([float(trials)]), np.ones(1)
    from scipy.special import gammaln, xlog1py, xlogy

    # n p and 9 sqrt(n p (1 - p)), and 9 more where the variance is near 0.
    mean, spread = trials * chance, SPREAD * (trials * chance * (1 - chance)) ** 0.5 + SPREAD
    outcomes = np.unique(np.linspace(max(0.0, mean - spread), min(trials, mean + spread), 4001).round())
    # ln of n! / (k! (n - k)!) p^k (1 - p)^(n - k).
    logs = gammaln(trials + 1.0) - gammaln(outcomes + 1.0) - gammaln(trials - outcomes + 1.0)
    chances = np.exp(logs + xlogy(outcomes, chance) + xlog1py(trials - outcomes, -chance))
    # Of many outcomes some 4,000 stand for all, so probabilities are made to sum to 1 again.
    return outcomes, chances / chances.sum()
