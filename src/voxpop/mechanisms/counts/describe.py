"""The text of plans of counts and rankings, computed from their public numbers."""

from collections.abc import Mapping
from typing import Any

from voxpop.mechanisms.counts.constants import USUAL
from voxpop.mechanisms.rounds.menu import choice_in
from voxpop.release.report.numbers import rows_of_type


def describe(plan: Mapping[str, Any], guarantee: str = "") -> str:
    """Return the text of a plan of counts or of a ranking."""
    picks = rows_of_type(plan, "picks")
    title, *lines = _about_top(plan, *picks) if picks else _about_counts(plan)
    return "\n".join(filter(None, [title, guarantee, *lines]))


def _about_counts(plan: Mapping[str, Any]) -> list[str]:
    limits = ", ".join(f"{row['limit']:,}" for row in rows_of_type(plan, "count")) or "none"
    choice = choice_in(plan)
    limit, error = f"{limits}{', chosen privately' if choice else ''}", f"{plan['error']:.4g}"
    if choice and not choice["chosen"]:
        limit, error = f"to be chosen privately, at most {limits}", f"at most {error}"
    what = "each released gram" + (f" and each of {plan['known']['size']:,} known items" if "known" in plan else "")
    return [
        f"Counts of the users of {what}, Gaussian noise",
        f"grams of each length for which a user counts in full: {limit}",
        f"standard error of a count: {error} users",
    ]


def _about_top(plan: Mapping[str, Any], picks: Mapping[str, Any]) -> list[str]:
    return [
        f"The {picks['picks']:,} grams of {picks['candidates']:,} with the most users, in order, Gumbel noise",
        f"standard error of the numbers that determine the order: {plan['error']:.4g}",
        f"with probability {USUAL:g} no named gram has {plan['behind']:,.0f} users fewer than a gram after it",
    ]
