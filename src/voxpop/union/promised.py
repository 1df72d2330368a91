"""What a promise about items of few users comes to, and what it costs: numbers and words of a plan."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from voxpop.rounds.holders import users_needed_rows

if TYPE_CHECKING:
    from voxpop.privacy.budget import Budget
    from voxpop.union.set_union import SetUnion


def promised_numbers(
    union: "SetUnion", budget: "Budget", chance: float, data_sets: Sequence[str] = ()
) -> dict[str, Any]:
    """Return how likely an item of too few users is released, and how many users items need without the promise.

    Args:
        union: the mechanism; nothing is returned where it promises nothing.
        budget: what it spends.
        chance: a bound by the numbers that run.
        data_sets: where several share the budget, their names.
    """
    if union.promise is None:
        return {}
    without = replace(union, at_least=None, beta=None).plan(budget, data_sets)
    return {"released_with_few": chance, "users_needed_without_promise": users_needed_rows(without.holders)}


def promise_lines(plan: dict[str, Any]) -> list[str]:
    """Return what is promised about items of few users, as lines of a plan."""
    if "at_least" not in plan:
        return []
    rows = (plan["users_needed"], plan["users_needed_without_promise"])
    needed, before = ({row["items"]: row["users"] for row in each if row["probability"] == 0.5} for each in rows)
    counts = [f"{_users(needed[items])} instead of {_users(before[items])}" for items in needed]
    return [
        f"An item of fewer than {plan['at_least']:,} users is released with probability at most "
        f"{plan['released_with_few']:.2g}; to be released every other time items need",
        f"{', '.join(counts)} users (who hold {', '.join(f'{items:,}' for items in needed)} such items each)",
    ]


def _users(count: int | None) -> str:
    return "never" if count is None else f"{count:,}"
