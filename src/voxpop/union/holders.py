"""How many users must hold an item before it is likely to be released: no data needed."""

from typing import TYPE_CHECKING

import numpy as np

from voxpop.privacy.budget import Budget

if TYPE_CHECKING:
    from voxpop.privacy.decide import Rule
    from voxpop.union.plan import RoundPlan

MOST_USERS = 10**12
COMMON = 10
"""An item is called common where so many times the users hold it as make its release as likely as not."""
SPREAD = 9.0
"""Standard deviations of a binomial beyond which its terms are left out: below 1e-17 of it."""


def users_needed(round_plan: "RoundPlan", budget: Budget, probability: float, items: int) -> int | None:
    """Return the least number of holders who reach the probability, or None; see `UnionPlan.holders`."""
    rule = round_plan.rule(budget)
    low, high = 0, 1
    while _release_probability(round_plan, rule, high, items) < probability:
        low, high = high, high * 2
        if high > MOST_USERS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        reached = _release_probability(round_plan, rule, middle, items) >= probability
        low, high = (low, middle) if reached else (middle, high)
    return high


def missing(round_plan: "RoundPlan", budget: Budget, items: int) -> float:
    """Return how likely an item of ten times the users needed is not released; see `UnionPlan.missing`."""
    users = users_needed(round_plan, budget, 0.5, items)
    return 1.0 if users is None else _probabilities(round_plan, round_plan.rule(budget), COMMON * users, items)[1]


def _release_probability(round_plan: "RoundPlan", rule: "Rule", users: int, items: int) -> float:
    return _probabilities(round_plan, rule, users, items)[0]


def _probabilities(round_plan: "RoundPlan", rule: "Rule", users: int, items: int) -> tuple[float, float]:
    """Average the chances to be released and not to be, over how many of the users choose the item."""
    setting = round_plan.shares.setting
    share = round_plan.shares.sharing.share(min(items, setting.limit), setting)
    choosing, chances = _binomial(users, min(1.0, setting.limit / items))
    weights = np.minimum(choosing * share * setting.unit, 2.0**62)
    if setting.cutoff:
        weights = np.minimum(weights, setting.cutoff)
    released, kept_back = rule.probability(np.floor(weights + 0.5).astype(np.int64))
    return float(released @ chances), float(kept_back @ chances)


def _binomial(trials: int, chance: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the likely outcomes of a binomial and their probabilities."""
    if chance >= 1.0:
        return np.array([float(trials)]), np.ones(1)
    from scipy.special import gammaln, xlog1py, xlogy

    mean, spread = trials * chance, SPREAD * (trials * chance * (1 - chance)) ** 0.5 + SPREAD
    outcomes = np.unique(np.linspace(max(0.0, mean - spread), min(trials, mean + spread), 4001).round())
    logs = gammaln(trials + 1.0) - gammaln(outcomes + 1.0) - gammaln(trials - outcomes + 1.0)
    chances = np.exp(logs + xlogy(outcomes, chance) + xlog1py(trials - outcomes, -chance))
    return outcomes, chances / chances.sum()
