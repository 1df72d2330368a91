"""The worst cases of adaptive rounds, the default mechanism of set union.

- *near*: one item has the number of users at which one more user has the largest effect.
- *alone*: only the canary has the item.
Copies are independent, because the weight, noise, score and drop decision of an item depend only on that item, and all
its users belong to one copy. Each user has one item, so no user draws a sample.
"""

from collections.abc import Iterator
from itertools import pairwise

from audits.engines import EngineOf, in_memory
from audits.union_cases import BUDGET, COPIES, LIMIT, MOST_HOLDERS, TELLING, Event
from voxpop.errors import InternalError
from voxpop.mechanisms.rounds.adaptive import AdaptiveRounds
from voxpop.mechanisms.rounds.menu import LIMITS, Menu
from voxpop.mechanisms.rounds.users_needed import item_probability
from voxpop.mechanisms.set_union.mechanism import Items
from voxpop.mechanisms.set_union.plan import UnionPlan
from voxpop.privacy.budget import Budget
from voxpop.testing.auditing import Case, TrialCounts, epsilon_shown


def adaptive_cases(limits: tuple[int | None, ...] = (None, 1, LIMIT), budget: Budget = BUDGET) -> Iterator[Case]:
    """Yield the cases of each limit.

    Args:
        limits: The maximum number of items per user and round, or None for the private choice.
        budget: The claimed guarantee.
    """
    for limit in limits:
        plan = Items(max_items_per_user=limit).plan(budget)
        if not isinstance(plan.last, AdaptiveRounds):
            raise InternalError("the default set union is not adaptive")
        yield near_adaptive(plan)
        yield alone_adaptive(plan)


def near_adaptive(plan: UnionPlan, engine: EngineOf = in_memory, most_copies: int = COPIES) -> Case:
    """Return the case of users who all have the same item."""
    ran = rounds_of(plan)
    chances = [item_probability(ran, others, 1) if others else 0.0 for others in range(MOST_HOLDERS)]
    shown = []
    for others, (without, joined) in enumerate(pairwise(chances)):
        counts = TrialCounts(round(TELLING * joined), round(TELLING * without), TELLING)
        shown.append((epsilon_shown(counts, plan.budget.delta), others))
    _, holders = max(shown)
    event = Event(plan, width=1, most=1, engine=engine, most_copies=most_copies)
    exact = chances[holders + 1], chances[holders]
    return event.case(f"near: {holders} others", [(0,)] * (holders + 1), [(0,)] * holders, exact)


def alone_adaptive(plan: UnionPlan, engine: EngineOf = in_memory, most_copies: int = COPIES) -> Case:
    """Return the case of an item that only the canary has."""
    event = Event(plan, width=1, most=1, engine=engine, most_copies=most_copies)
    return event.case("alone: 1 unique item", [(0,)], [], (item_probability(rounds_of(plan), 1, 1), 0.0))


def rounds_of(plan: UnionPlan) -> AdaptiveRounds:
    """Return the rounds that the plan executes.

    If no limit is given, these are the rounds of the smallest limit, because each user has one item.
    """
    first = plan.passes[0]
    return first.entry(LIMITS[0]) if isinstance(first, Menu) else first
