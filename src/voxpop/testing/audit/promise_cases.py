"""The worst cases of what is promised about items of few users: set union with `at_least`.

- *few*: one user fewer than were asked for hold an item, and nothing else. The claim is that it comes out with
  probability at most beta, whoever they are: that of a guarantee of delta = beta beside a collection without the item.
- *near*: so many users hold an item that one more matters most. The claim is the budget, as without the promise.

Copies share nothing, for the same reasons as without it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from voxpop.errors import InternalError
from voxpop.privacy.budget import Budget
from voxpop.rounds.adaptive.holders import released
from voxpop.testing.audit.adaptive_cases import near_adaptive
from voxpop.testing.audit.case import Case
from voxpop.testing.audit.union_cases import BUDGET, LIMIT, Event, near, released_by
from voxpop.union.adaptive.plan import AdaptivePlan
from voxpop.union.plan import UnionPlan
from voxpop.union.set_union import SetUnion

USERS: Final = 6
BETA: Final = 0.02
PROMISING: Final[tuple[SetUnion, ...]] = (
    SetUnion(limit=LIMIT, at_least=USERS, beta=BETA),
    SetUnion(limit=LIMIT, weighting="l2-descent", at_least=USERS, beta=BETA),
    SetUnion(limit=LIMIT, weighting="weighted", noise="laplace", rounds=2, at_least=USERS, beta=BETA),
    SetUnion(limit=1, weighting="count", at_least=USERS, beta=BETA),
)


def promise_cases(unions: Sequence[SetUnion] = PROMISING, budget: Budget = BUDGET) -> Iterator[Case]:
    """Yield the cases of each configuration.

    Args:
        unions: what to audit, each with a promise.
        budget: the claim, beside the promise.
    """
    for union in unions:
        plan = union.plan(budget)
        yield few(plan)
        yield near_adaptive(plan) if isinstance(plan, AdaptivePlan) else near(plan)


def few(plan: UnionPlan | AdaptivePlan, users: int | None = None) -> Case:
    """Return the case of an item of too few users.

    Args:
        plan: what runs.
        users: who are too few; by default one fewer than the plan promises.

    Raises:
        InternalError: where nothing was promised.
    """
    promise = plan.mechanism.promise
    if promise is None:
        raise InternalError("nothing was promised about items of few users; please report the call.")
    holders = promise.few if users is None else users
    exact = released(plan, holders, 1) if isinstance(plan, AdaptivePlan) else released_by(plan, holders, 1)
    case = Event(plan, width=1, most=1).case(f"few: {holders} users", [(0,)] * holders, [], (exact, 0.0))
    return replace(case, budget=Budget(plan.budget.epsilon, promise.beta))
