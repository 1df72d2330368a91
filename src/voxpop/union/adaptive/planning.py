"""From a budget to the numbers of adaptive rounds."""

from typing import TYPE_CHECKING

from voxpop.errors import BudgetError
from voxpop.privacy.budget import Budget, too_large
from voxpop.rounds.adaptive.few import ever_released_with_few
from voxpop.rounds.adaptive.planning import plan_rounds, pool_for, rounds_slack, total_delta
from voxpop.rounds.adaptive.schedule import Schedule, schedule_for
from voxpop.rounds.at_least import check_promise
from voxpop.union.adaptive.plan import AdaptivePlan

if TYPE_CHECKING:
    from voxpop.union.set_union import SetUnion


def plan_adaptive(
    union: "SetUnion", budget: Budget, schedule: Schedule | None = None, data_sets: tuple[str, ...] = ()
) -> AdaptivePlan:
    """Fill in adaptive rounds; see `SetUnion.plan`."""
    many = max(1, len(data_sets))
    limit = union.limit_used
    pool = pool_for(limit, union.pool)
    schedule = schedule or schedule_for(limit)
    # Data sets are independent, so what arithmetic costs adds up.
    slack = many * rounds_slack(budget.epsilon, len(schedule.shares), limit, pool)
    if budget.delta <= 2 * slack:
        if 2 * slack >= 1.0:
            raise too_large(budget.epsilon)
        raise BudgetError(
            f"adaptive rounds need a delta of at least {2 * slack:.2g} at epsilon {budget.epsilon:g} with a pool of "
            f"{pool:,} items, got {budget.delta:g}. Choose it far below 1 / (number of users you expect), such as 1e-7."
        )
    promise = union.promise
    planned = plan_rounds(budget.epsilon, budget.delta - slack, limit, pool, schedule, promise=promise, data_sets=many)
    opening, later, evidence = planned.opening, planned.rounds, planned.evidence
    if promise is not None:
        check_promise(promise, ever_released_with_few(promise, opening, later, evidence))
    spent = total_delta(opening, later, evidence, budget, pool, many) + slack
    plan = AdaptivePlan(union, budget, limit, pool, opening, later, evidence, data_sets, delta=spent)
    return plan.checked(spent)
