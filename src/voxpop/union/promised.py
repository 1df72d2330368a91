"""What a promise about items of few users comes to, and what it costs, in numbers."""

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
