"""The text of plans and reports of profiles, from their public numbers."""

from collections.abc import Mapping
from typing import Any

from voxpop.errors import on_one_line
from voxpop.mechanisms.profile.constants import COVER, SHARE_OF_REST
from voxpop.mechanisms.rounds.listed import known_note
from voxpop.mechanisms.rounds.menu import about_limit, about_menu
from voxpop.privacy.planned import ITEMS_EACH
from voxpop.release.profile import ONLY_NOISE
from voxpop.release.report.numbers import plain, rows_of_type, whole
from voxpop.release.report.page import Grid, Story

PROBABILITY = 0.9


def describe(plan: Mapping[str, Any], guarantee: str = "") -> str:
    """Return the text of a plan from its public numbers."""
    if plan["mechanism"] == "keys":
        return _about_keys(plan, guarantee)
    kinds = {name: "words" if name in plan["text"] else kind for name, kind in plan["columns"].items()}
    joint = ", ".join(" x ".join(names) for names in plan["joint"]) or "none"
    for row in rows_of_type(plan, "joining"):
        joint += f"; at most {row['spurious']:g} released joint values that no user has are expected"
    later = "no counts"
    for row in rows_of_type(plan, "cover"):
        later = f"counts of users, and cover with noise of {row['sigma']:.3g} users"
    lines = [
        f"Profile of {len(kinds):,} columns, {about_limit(plan, plan['max_items_per_user'], 'values')}",
        *([guarantee] if guarantee else []),
        *about_menu(plan, plan["max_items_per_user"]),
        f"then {later}",
        f"columns: {', '.join(f'{on_one_line(name)} ({kind})' for name, kind in kinds.items()) or 'none'}",
        f"omitted: {', '.join(f'{name} ({why})' for name, why in plan['left_out'].items()) or 'none'}",
        f"joint: {joint}",
        "",
        *_needed(plan).lines(),
    ]
    return "\n".join(lines)


def _about_keys(plan: Mapping[str, Any], guarantee: str) -> str:
    rest = [
        f"standard error of the sums of other rows: {row['error']:,.3g} users"
        for row in rows_of_type(plan, "rest", "cover")
    ]
    sets = ", ".join(" x ".join(map(on_one_line, names)) for names in plan["joint"])
    return "\n".join(
        [
            f"Keys with counts: {sets}",
            *([guarantee] if guarantee else []),
            *_entry_lines(plan),
            *(rest or ["other rows are not measured"]),
            *_cost_lines(plan),
            *ONLY_NOISE.split(". ", 1),
            "",
            *_needed(plan).lines(),
        ]
    )


def _cost_lines(plan: Mapping[str, Any]) -> list[str]:
    """Return the lines about the cost of each part of the plan, and about the total cost of several equal releases."""
    choice = rows_of_type(plan, "classes")
    parts = [f"the choice costs {100 * row['rate'] / plan['epsilon']:.0f} % of epsilon" for row in choice]
    if plan["other_rows"]:
        parts.append(
            "the other rows cost "
            + (f"{200 * COVER:.0f} % of the counts" if plan["repeated"] else f"{100 * SHARE_OF_REST:.0f} % of epsilon")
        )
    # If delta is large, the sum of the deltas alone covers the total cost, so the total epsilon would be 0.
    kept = [each for each in plan["together"] if each["releases"] * plan["delta"] < 1 and each["epsilon"] > 0]
    total = " and ".join(f"{each['releases']} have epsilon {each['epsilon']:.3g}" for each in kept)
    advice = "" if plan["repeated"] else "; with repeated=True (--repeated) the total is smaller"
    return [
        *(["; ".join(parts)] if parts else []),
        "each further set, such as a margin, adds its keys to the keys of each user, so a margin may lead to rounds",
        f"of such releases, {total} together{advice}"
        if total
        else f"{plan['together'][0]['releases']} of such releases have no meaningful guarantee together, because their "
        "deltas add up to 1 or more",
    ]


def _entry_lines(plan: Mapping[str, Any]) -> list[str]:
    """Return a line for each possible entry of the menu, or for the entry that was used."""
    lines = [
        f"at most {row['limit']} {'key' if row['limit'] == 1 else 'keys'} per user: one noisy number per key, standard "
        f"error {row['error']:.3g} users"
        for row in rows_of_type(plan, "numbers")
    ]
    for row in rows_of_type(plan, "more"):
        more = row["limit"]
        lines.append(
            "users of one, two and more keys in separate parts; the last part counts only released keys"
            + (f", at most {more} per user: standard error {plan['error']:.3g} users" if more else "")
        )
    if rows_of_type(plan, "round"):
        rounds = f", {about_limit(plan, plan['round_limit'], 'keys')}" if plan["max_keys_per_user"] is None else ""
        lines.append(f"adaptive rounds{rounds}, then counts with the same share of the budget")
    if plan["repeated"]:
        return ["one of many releases, so all users take part in rounds:", *lines]
    if plan["max_keys_per_user"] is not None:
        return [f"the limit of {plan['max_keys_per_user']:,} keys per user is public", *lines]
    if plan["chosen"] is not None:
        return ["chosen privately by the numbers of keys of the users:", lines[plan["chosen"]]]
    [choice] = rows_of_type(plan, "classes")
    noise = f"{2**0.5 / choice['rate']:.3g} users"
    return [f"one of these, chosen privately by the numbers of keys of the users, with noise of {noise}:", *lines]


def _noun(plan: Mapping[str, Any]) -> tuple[str, str]:
    return ("key", "keys") if plan["mechanism"] == "keys" else ("value", "values")


def _needed(plan: Mapping[str, Any]) -> Grid:
    """Return the table of users needed, by number of values per user. Listed values have an additional column."""
    one, several = _noun(plan)
    listed = "users_needed" in plan.get("known", {})
    lists = [plan, plan["known"]] if listed else [plan]
    each = [[row for row in numbers["users_needed"] if row["probability"] == PROBABILITY] for numbers in lists]
    note = f"Each row is for users who each have this number of {several}, none of which has more users."
    return Grid(
        f"Users that a {one} needs to be released with probability {PROBABILITY:g}",
        [f"{several} of each", "users", *(["users, known"] if listed else [])],
        [[f"{rows[0]['items']:,}", *(whole(row["users"]) for row in rows)] for rows in zip(*each, strict=True)],
        note + known_note(plan, one, "The column of known values assumes"),
    )


def story(plan: Mapping[str, Any], sizes: Mapping[int, int]) -> Story:
    """Return the content of a profile's report from the numbers of its plan. The profile itself adds the columns."""
    keyed, needed = plan["mechanism"] == "keys", _needed(plan)
    each = "one key" if keyed else f"{ITEMS_EACH[1]} values"
    joint, cover = rows_of_type(plan, "joining"), rows_of_type(plan, "rest", "cover")
    sigma = cover[0]["error" if keyed else "sigma"] if cover else 0.0
    return Story(
        words="profile.html",
        noun=_noun(plan),
        title="released",
        kicker="Keys with counts" if keyed else "Profile of a table",
        proof=f"docs/privacy/{'keys' if keyed else 'profile'}.md",
        values={
            "counts": keyed or plan["counts"],
            "spurious": plain(joint[0]["spurious"]) if joint else "",
            "sigma": plain(sigma),
            "listed": "known" in plan,
        },
        needed=needed,
        about=(needed.rows[0 if keyed else 1][1], f"for 90 %, if each user has {each}"),
        completes=False,
    )
