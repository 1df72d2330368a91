"""The worst cases of set union.

- *near*: an item has the number of users at which one more user has the largest effect. Each user, including the
  canary, has weight one.
- *alone*: the canary has `limit` items that no other user has. The event is that at least one of them is released.
- *over*: the same case, but the canary has eight times as many items as its contribution bound.

Copies are independent, because the share that a user gives an item depends on the weights of the user's items, and
these items all belong to one copy.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import expm1, log1p
from typing import Any

import numpy as np

from audits.engines import EngineOf, in_memory
from voxpop.errors import InternalError
from voxpop.mechanisms.rounds.adaptive import AdaptiveRounds
from voxpop.mechanisms.rounds.menu import Menu
from voxpop.mechanisms.rounds.plan import RoundPlan
from voxpop.mechanisms.set_union.plan import UnionPlan
from voxpop.papers.dpsu import SetUnion
from voxpop.papers.optimal_selection import OptimalSelection
from voxpop.privacy.budget import Budget
from voxpop.privacy.weightings.builtin import WEIGHTINGS
from voxpop.testing.auditing import Case, TrialCounts, epsilon_shown
from voxpop.testing.collections import copied_items, released_numbers

BUDGET = Budget(1.0, 0.02)
LIMIT = 4
EXCESS = 8
COPIES = 50_000
OVER_SHARE = 0.5
"""The share of the trials to run. It is small because bounding users with too many items is slow, and a violation would
be large.
"""
MOST_HOLDERS = 60
TELLING = 10**6
"""The number of trials that the selection of the most informative case assumes."""
UNIONS: tuple[OptimalSelection | SetUnion, ...] = (
    OptimalSelection(),
    *(SetUnion(LIMIT, name, accounting="joint") for name in WEIGHTINGS),
    SetUnion(LIMIT, "policy-gaussian"),
    SetUnion(LIMIT, "weighted"),
)
"""Optimal selection, every weighting of the registry, and published accounting."""


def union_cases(budget: Budget = BUDGET) -> Iterator[Case]:
    """Yield the cases of each configuration.

    Args:
        budget: The claimed guarantee.
    """
    for union in UNIONS:
        plan = classic_of(union.plan(budget))
        limit = plan.last.shares.setting.limit
        yield near(plan)
        yield alone(plan, limit, "alone")
        yield alone(plan, EXCESS * limit, "over")


def classic_of(plan: UnionPlan) -> UnionPlan:
    """Return a plan, and check that it has a single round.

    Raises:
        InternalError: If the plan does not have a single round.
    """
    if not isinstance(plan.last, RoundPlan):
        raise InternalError("the plan of this set union has no single round")
    return plan


def near(plan: UnionPlan, engine: EngineOf = in_memory, most_copies: int = COPIES) -> Case:
    """Return the case of users who all have the same items.

    Each user has `limit` items if shares do not depend on the number of items, and one item otherwise.
    """
    rule, setting = plan.last.shares.weighting_rule, plan.last.shares.setting
    items = setting.limit if rule.share(1, setting) == rule.share(setting.limit, setting) else 1
    _, exact, holders, most = max(_all_near(plan, items))
    event = Event(plan, width=items, most=most, engine=engine, most_copies=most_copies)
    crowd = [tuple(range(items))] * holders
    return event.case(f"near: {holders} others", [*crowd, tuple(range(items))], crowd, exact)


def _all_near(plan: UnionPlan, items: int) -> Iterator[tuple[float, tuple[float, float], int, int]]:
    """Yield the epsilon that many trials show, the probabilities, and the numbers of other users and released items."""
    from scipy.stats import binom

    chances = [released_by(plan, others, items) for others in range(MOST_HOLDERS)]
    for others, (without, joined) in enumerate(pairwise(chances)):
        for most in range(1, items + 1):
            one, other = (float(binom.sf(most - 1, items, chance)) for chance in (joined, without))
            counts = TrialCounts(round(TELLING * one), round(TELLING * other), TELLING)
            yield epsilon_shown(counts, plan.budget.delta), (one, other), others, most


def alone(plan: UnionPlan, held: int, name: str, engine: EngineOf = in_memory, most_copies: int = COPIES) -> Case:
    """Return the case of items that only the canary has."""
    counted = min(held, plan.last.shares.setting.limit)
    chance = -expm1(counted * log1p(-released_by(plan, 1, counted)))
    event = Event(plan, width=held, most=1, engine=engine, most_copies=most_copies)
    case = event.case(f"{name}: {held} items of its own", [tuple(range(held))], [], (chance, 0.0))
    return replace(case, share=OVER_SHARE) if held > counted else case


def released_by(plan: UnionPlan, holders: int, items: int) -> float:
    """Return the probability of releasing an item that `holders` users have, by textbook formulas.

    All these users have the same `items` items. Each user gives an item the share that the weighting determines, until
    the weight of the item reaches the cutoff.
    """
    from scipy.special import ndtr

    from voxpop.privacy.decisions import exact_probability
    from voxpop.privacy.numerics import numerical_slack

    one, budget = plan.last, plan.budget
    if one.noise == "optimal":
        counted = max(0, holders - round(one.threshold))
        return float(exact_probability(budget.epsilon, budget.delta - numerical_slack(budget.epsilon), counted))
    if not holders:
        return 0.0
    weight = holders * one.shares.weighting_rule.share(items, one.shares.setting)
    missing = (one.threshold - min(weight, one.cutoff or weight)) / one.scale
    if one.noise == "gaussian":
        return float(ndtr(-missing))
    return float(np.exp(-missing) / 2 if missing > 0 else 1 - np.exp(missing) / 2)


@dataclass(frozen=True, slots=True)
class Event:
    """The event that at least `most` items of a copy are released.

    Attributes:
        plan: The plan to run.
        width: The number of items per copy.
        most: The minimum number of items that must be released for the event to occur.
        engine: The engine that reads and weighs collections.
        most_copies: The largest number of copies in one release.
    """

    plan: UnionPlan
    width: int
    most: int
    engine: EngineOf = in_memory
    most_copies: int = COPIES

    def case(
        self, name: str, joined: Sequence[Sequence[int]], without: Sequence[Sequence[int]], exact: tuple[float, ...]
    ) -> Case:
        """Return the case of two neighbouring collections, given the items of each user of a copy."""
        users = sum(map(len, joined))
        copies = max(1_000, self.most_copies * 8 // max(8, users))
        larger, smaller = (
            partial(self.run, self.engine(copied_items(held, self.width, copies)), copies) for held in (joined, without)
        )
        return Case(title(self.plan), name, self.plan.budget, copies, larger, smaller, (exact[0], exact[1]))

    def run(self, corpus: Any, copies: int) -> tuple[int, Any]:
        """Run one release, and return the number of copies with the event and a digest of these copies."""
        copy = released_numbers(self.plan.release(corpus))[:, 0] // self.width
        happened = np.bincount(copy, minlength=copies) >= self.most
        return int(happened.sum()), happened.tobytes()


def title(plan: UnionPlan) -> str:
    """Return the name of a configuration."""
    promise = f", at least {plan.promise.users} users" if plan.promise else ""
    if isinstance(plan.last, AdaptiveRounds):
        limit = "chosen" if isinstance(plan.passes[0], Menu) else plan.last.limit
        return f"set union, adaptive rounds, limit {limit}{promise}"
    classic = classic_of(plan)
    if classic.last.noise == "optimal":
        return f"set union, optimal selection{promise}"
    accounting = ", published" if plan.mechanism.accounting == "published" else ""
    return f"set union, {plan.mechanism.weighting}{accounting}{promise}"
