"""Adaptive rounds in words and small tables."""

from typing import Any

from voxpop.rounds.adaptive.numbers import round_table
from voxpop.tables import table
from voxpop.union.describe import missing_line, promise_lines, users_table


def describe(plan: dict[str, Any], guarantee: str) -> str:
    """Return the text of a plan from its public numbers."""
    rounds = len(plan["round_plans"])
    lines = [
        f"Set union in {rounds} adaptive rounds, at most {plan['limit']:,} of a pool of {plan['pool']:,} items a user",
        f"{guarantee}; thresholds and floors in standard deviations of the evidence",
        *_data_sets(plan),
        "",
        *table(round_table(plan["round_plans"])),
        "",
        *users_table(plan),
        missing_line(plan),
        *promise_lines(plan),
        *_one_each(plan),
    ]
    return "\n".join(lines)


def _data_sets(plan: dict[str, Any]) -> list[str]:
    """Return how several data sets share the budget, as lines."""
    names = plan.get("data_sets", [])
    if not names:
        return []
    return [f"for {', '.join(names)} together: noise in each is {len(names) ** 0.5:.3g} times that of one data set"]


def _one_each(plan: dict[str, Any]) -> list[str]:
    """Return what is better where users hold one item each, as lines."""
    if plan["limit"] > 1:
        return []
    return ['Where users hold one item each, weighting="count" is the optimal mechanism']
