"""The worst cases of set union.

- *near*: so many users hold an item that one more matters most. Their weight is one each, and so is the canary's.
- *alone*: the canary holds `limit` items that nobody else does; is one of them released?
- *over*: the same, but it holds eight times as many as it may contribute.

Copies share nothing: a weighting moves an item by the weights of the items of a user who holds it, all of its own copy.
Rounds leave out what was released, which in a copy depends on the copy alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import expm1, log1p
from typing import Any

import numpy as np

from voxpop.errors import InternalError
from voxpop.privacy.budget import Budget
from voxpop.testing.audit.case import Case
from voxpop.testing.audit.copies import copied_items, released_numbers
from voxpop.testing.audit.engines import Engine, in_memory
from voxpop.testing.audit.lower_bounds import Counts, epsilon_shown
from voxpop.union.adaptive.plan import AdaptivePlan
from voxpop.union.plan import UnionPlan
from voxpop.union.set_union import SetUnion
from voxpop.weighting.capped import CappedRule

BUDGET = Budget(1.0, 0.02)
LIMIT = 4
EXCESS = 8
COPIES = 50_000
OVER_SHARE = 0.5
"""Users who hold too much are slow to bound, and what it would show is large."""
MOST_HOLDERS = 60
TELLING = 10**6
"""Trials after which the case that shows most is chosen."""
UNIONS: tuple[SetUnion, ...] = (
    SetUnion(limit=1, weighting="count"),
    SetUnion(limit=LIMIT, weighting="l2-descent"),
    SetUnion(limit=LIMIT, weighting="l2-descent", accounting="published"),
    SetUnion(limit=LIMIT, weighting="l2-descent", rounds=3),
    SetUnion(limit=LIMIT, weighting="weighted"),
    SetUnion(limit=LIMIT, weighting="weighted", rounds=2, accounting="published"),
    SetUnion(limit=LIMIT, weighting="weighted", noise="laplace"),
    SetUnion(limit=LIMIT, weighting="l1-descent", noise="laplace"),
    SetUnion(limit=LIMIT, weighting="l1-descent", noise="laplace", rounds=3),
    SetUnion(limit=LIMIT, weighting="count"),
    SetUnion(limit=LIMIT, weighting="count", noise="laplace"),
    SetUnion(limit=LIMIT, weighting="weighted", accounting="set-only"),
    SetUnion(limit=LIMIT, weighting="weighted", accounting="set-only", cap=1.0, rounds=2),
    SetUnion(limit=LIMIT, weighting="count", accounting="set-only"),
)


def union_cases(unions: Sequence[SetUnion] = UNIONS, budget: Budget = BUDGET) -> Iterator[Case]:
    """Yield the cases of each configuration.

    Args:
        unions: what to audit.
        budget: the claim.
    """
    for union in unions:
        plan = union.plan(budget)
        if not isinstance(plan, UnionPlan):
            raise InternalError("adaptive rounds have cases of their own.")
        yield near(plan)
        yield alone(plan, union.limit_used, "alone")
        yield alone(plan, EXCESS * union.limit_used, "over")


def near(plan: UnionPlan, engine: Engine = in_memory, most_copies: int = COPIES) -> Case:
    """Return the case of users who all hold the same few items: one, or `limit` where each item weighs the same."""
    items = plan.mechanism.limit_used if plan.mechanism.weighting == "count" else 1
    _, exact, holders, most = max(_all_near(plan, items))
    event = Event(plan, width=items, most=most, engine=engine, most_copies=most_copies)
    crowd = [tuple(range(items))] * holders
    return event.case(f"near: {holders} others", [*crowd, tuple(range(items))], crowd, exact)


def _all_near(plan: UnionPlan, items: int) -> Iterator[tuple[float, tuple[float, float], int, int]]:
    """Yield what many trials would show, the probabilities, how many others, and how many items make the event."""
    from scipy.stats import binom

    chances = [released_by(plan, others, items) for others in range(MOST_HOLDERS)]
    for others, (without, joined) in enumerate(pairwise(chances)):
        for most in range(1, items + 1):
            one, other = (float(binom.sf(most - 1, items, chance)) for chance in (joined, without))
            counts = Counts(round(TELLING * one), round(TELLING * other), TELLING)
            yield epsilon_shown(counts, plan.budget.delta), (one, other), others, most


def alone(plan: UnionPlan, held: int, name: str, engine: Engine = in_memory, most_copies: int = COPIES) -> Case:
    """Return the case of a canary who holds items that nobody else does."""
    counted = min(held, plan.mechanism.limit_used)
    chance = -expm1(counted * log1p(-released_by(plan, 1, counted)))
    event = Event(plan, width=held, most=1, engine=engine, most_copies=most_copies)
    case = event.case(f"{name}: {held} items of its own", [tuple(range(held))], [], (chance, 0.0))
    return replace(case, share=OVER_SHARE) if held > counted else case


def released_by(plan: UnionPlan, holders: int, items: int) -> float:
    """Return the probability that an item of so many users is released in any round, by textbook formulas.

    Each of the users holds `items` items that all of them hold. What one gives an item is an even share, until it is at
    the cutoff.
    """
    rounds = range(len(plan.rounds))
    return -expm1(sum(log1p(-min(_in_one_round(plan, number, holders, items), 1 - 2**-53)) for number in rounds))


def _in_one_round(plan: UnionPlan, number: int, holders: int, items: int) -> float:
    from scipy.special import ndtr

    from voxpop.privacy.optimal import exact_probability
    from voxpop.privacy.slack import numerical_slack

    one, budget = plan.rounds[number], plan.budget
    if one.noise == "optimal":
        counted = max(0, holders - round(one.threshold))
        return float(exact_probability(budget.epsilon, budget.delta - numerical_slack(budget.epsilon), counted))
    if not holders:
        return 0.0
    if isinstance(one.shares.weighting_rule, CappedRule):
        share = one.shares.weighting_rule.table(one.shares.setting)[items]
        return float(one.rule(budget).exact(holders * int(share)))
    norm = 1 if one.noise == "laplace" else 2
    sharers = plan.mechanism.limit_used if plan.mechanism.weighting == "count" else items
    weight = holders * sharers ** (-1.0 / norm)
    missing = (one.threshold - min(weight, one.cutoff or weight)) / one.scale
    if one.noise == "gaussian":
        return float(ndtr(-missing))
    return float(np.exp(-missing) / 2 if missing > 0 else 1 - np.exp(missing) / 2)


@dataclass(frozen=True, slots=True)
class Event:
    """At least so many of the items of a copy are released.

    Attributes:
        plan: what runs.
        width: items of a copy.
        most: how many of them must be released.
        engine: where collections are read and weighed.
        most_copies: in one release.
    """

    plan: UnionPlan | AdaptivePlan
    width: int
    most: int
    engine: Engine = in_memory
    most_copies: int = COPIES

    def case(
        self, name: str, joined: Sequence[Sequence[int]], without: Sequence[Sequence[int]], exact: tuple[float, ...]
    ) -> Case:
        """Return the case of two neighbouring collections, by what each user of a copy holds."""
        users = sum(map(len, joined))
        copies = max(1_000, self.most_copies * 8 // max(8, users))
        larger, smaller = (
            partial(self.run, self.engine(copied_items(held, self.width, copies)), copies) for held in (joined, without)
        )
        return Case(title(self.plan.mechanism), name, self.plan.budget, copies, larger, smaller, (exact[0], exact[1]))

    def run(self, corpus: Any, copies: int) -> tuple[int, Any]:
        """Run one release; return in how many copies the event happened, and in which."""
        copy = released_numbers(self.plan.release(corpus))[:, 0] // self.width
        happened = np.bincount(copy, minlength=copies) >= self.most
        return int(happened.sum()), happened.tobytes()


def title(union: SetUnion) -> str:
    """Name a configuration."""
    promise = f", at least {union.at_least} users" if union.at_least else ""
    if union.adaptive:
        return f"set union, adaptive rounds, limit {union.limit_used}{promise}"
    if union.one_item_each:
        return f"set union, optimal selection{promise}"
    rounds = f", {union.rounds} rounds" if union.rounds > 1 else ""
    noise = "" if union.accounting == "set-only" else f", {union.noise}"
    return f"set union, {union.weighting}{noise}{rounds}, {union.accounting}{promise}"
