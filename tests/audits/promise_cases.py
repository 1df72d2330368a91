"""The worst cases of set union with `min_users`, which promises that items with few users are rarely released.

- *few*: an item has one user fewer than `min_users`, and these users have no other items. The claim is that the item is
  released with probability at most BETA for any set of such users. This is the guarantee of delta = BETA for a
  comparison with a collection without the item.
- *near*: an item has the number of users at which one more user has the largest effect. The claim is the budget, as for
  a plan without the promise.

Copies are independent for the same reasons as without the promise.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from audits.adaptive_cases import near_adaptive
from audits.union_cases import BUDGET, LIMIT, Event, classic_of, near, released_by
from voxpop.errors import InternalError
from voxpop.mechanisms.rounds.adaptive import AdaptiveRounds
from voxpop.mechanisms.rounds.users_needed import MinUsersBound, item_probability
from voxpop.mechanisms.set_union.mechanism import Items
from voxpop.mechanisms.set_union.plan import UnionPlan, plan_adaptive
from voxpop.papers.dpsu import SetUnion, plan_round
from voxpop.papers.optimal_selection import OptimalSelection
from voxpop.privacy.budget import Budget
from voxpop.privacy.weightings.builtin import WEIGHTINGS
from voxpop.testing.auditing import Case

USERS: Final = 6
BETA: Final = 0.02


def promising_plans(budget: Budget = BUDGET, beta: float = BETA) -> tuple[UnionPlan, ...]:
    """Return plans of every kind, with promises that fail often enough for the failures to be counted."""
    promise = MinUsersBound(USERS, beta)
    optimal = OptimalSelection(USERS)
    classic = (
        plan_round(SetUnion(LIMIT, name, accounting="joint", min_users=USERS), budget, promise) for name in WEIGHTINGS
    )
    return plan_adaptive(Items(LIMIT, min_users=USERS), budget, promise=promise), optimal.plan(budget), *classic


def promise_cases(budget: Budget = BUDGET) -> Iterator[Case]:
    """Yield the cases of each plan.

    Args:
        budget: The guarantee that is claimed in addition to the promise.
    """
    for plan in promising_plans(budget):
        yield few(plan)
        yield near_adaptive(plan) if isinstance(plan.last, AdaptiveRounds) else near(classic_of(plan))


def few(plan: UnionPlan, users: int | None = None) -> Case:
    """Return the case of an item with too few users.

    Args:
        plan: The plan to run.
        users: The number of users of the item. The default is one fewer than the number that the plan promises.

    Raises:
        InternalError: If the plan has no promise.
    """
    promise = plan.promise
    if promise is None:
        raise InternalError("the plan promises nothing about items with few users")
    holders = promise.few if users is None else users
    adaptive = isinstance(plan.last, AdaptiveRounds)
    exact = item_probability(plan.last, holders, 1) if adaptive else released_by(classic_of(plan), holders, 1)
    case = Event(plan, width=1, most=1).case(f"few: {holders} users", [(0,)] * holders, [], (exact, 0.0))
    # Optimal selection never releases an item with too few users, so the case may claim any beta.
    beta = max(BETA, promise.beta) if exact == 0.0 else promise.beta
    return replace(case, budget=Budget(plan.budget.epsilon, beta))
