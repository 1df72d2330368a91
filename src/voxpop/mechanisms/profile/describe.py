"""Plans and reports of profiles as text, from their public numbers."""

from collections.abc import Mapping
from typing import Any

from voxpop.errors import on_one_line
from voxpop.mechanisms.rounds.menu import about_limit, about_menu
from voxpop.privacy.budget import table
from voxpop.privacy.planned import ITEMS_EACH
from voxpop.release.report.numbers import plain, whole
from voxpop.release.report.page import Grid, Story

PROBABILITY = 0.9


def describe(plan: Mapping[str, Any], guarantee: str = "") -> str:
    """Return the text of a plan from its public numbers."""
    kinds = {name: "words" if name in plan["text"] else kind for name, kind in plan["columns"].items()}
    joint = ", ".join(" x ".join(names) for names in plan["joint"]) or "none"
    if plan["joint"]:
        joint += f"; at most {plan['spurious']:g} released joint values that no user holds are expected"
    later = "no counts"
    if plan["counts"]:
        later = f"counts of users, and cover with noise of {plan['sigma_of_cover']:.3g} users"
    lines = [
        f"Profile of {len(kinds):,} columns, {about_limit(plan, plan['max_items_per_user'], 'values')}",
        *([guarantee] if guarantee else []),
        *about_menu(plan, plan["max_items_per_user"]),
        f"then {later}",
        f"columns: {', '.join(f'{on_one_line(name)} ({kind})' for name, kind in kinds.items()) or 'none'}",
        f"left out: {', '.join(f'{name} ({why})' for name, why in plan['left_out'].items()) or 'none'}",
        f"joint: {joint}",
        "",
        f"Users who must hold a value for it to be released with probability {PROBABILITY:g}",
        *table([["values of each", "users"], *_needed(plan)]),
    ]
    return "\n".join(lines)


def _needed(plan: Mapping[str, Any]) -> list[list[str]]:
    rows = [row for row in plan["users_needed"] if row["probability"] == PROBABILITY]
    return [[f"{row['items']:,}", whole(row["users"])] for row in rows]


def story(plan: Mapping[str, Any], sizes: Mapping[int, int]) -> Story:
    """Return the story of a profile from its plan's numbers; the columns are added by the profile itself."""
    rows = _needed(plan)
    return Story(
        words="profile.html",
        noun=("value", "values"),
        title="released",
        kicker="Profile of a table",
        proof="docs/privacy/profile.md",
        values={
            "counts": plan["counts"],
            "spurious": plain(plan["spurious"]) if plan["joint"] else "",
            "sigma": plain(plan["sigma_of_cover"]),
        },
        needed=Grid(
            "Users that a value needs",
            ["values of each user", "users"],
            rows,
            "For a release with probability 0.9. Each row is for users who each hold this number of values, none of "
            "them held by more users.",
        ),
        about=(rows[1][1], f"for 90 %, if each holds {ITEMS_EACH[1]} values"),
        completes=False,
    )
