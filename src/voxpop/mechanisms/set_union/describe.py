"""Plans of set union as text, from their public numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

from voxpop.mechanisms.rounds.listed import both_rows, known_grids, known_lines
from voxpop.mechanisms.rounds.menu import about_limit, about_menu, choice_in
from voxpop.mechanisms.series import describe as series
from voxpop.privacy.budget import table
from voxpop.privacy.guarantee import at_most
from voxpop.privacy.weightings.builtin import share_of
from voxpop.release.report import numbers
from voxpop.release.report.numbers import plain, whole
from voxpop.release.report.page import Grid, Story

_FEW_ITEMS = (
    "If the items are keys of a table and most users have few of them, vp.profile(table, user=..., joint=[...]) "
    "releases more keys, with counts (voxpop profile --joint)"
)
"""The advice of plans and reports if users have few items each."""


def describe(plan: Mapping[str, Any], guarantee: str = "") -> str:
    """Return the text of a plan from its public numbers."""
    if plan["weighting"] == "series":
        return series.describe(plan, guarantee)
    rounds = _decisions(plan)
    kind, limit = rounds[-1]["pass"], plan["max_items_per_user"]
    if kind == "round":
        pool = "" if choice_in(plan) else f", from a pool of {plan['pool']:,}"
        head = [
            f"Items in {len(rounds)} adaptive rounds, {about_limit(plan, limit)}{pool}",
            *_joined_parts(guarantee, "" if limit is None else "thresholds in standard deviations of the score"),
            *about_menu(plan, limit),
            *_data_sets(plan),
        ]
        shown = [] if limit is None else _round_table(rounds)
    else:
        optimal = kind == "selection"
        noise = "optimal selection by number of users" if optimal else f"{plan['noise']} noise"
        accounting = f"{plan['accounting']} accounting" if "accounting" in plan else ""
        head = [
            f"Items, at most {limit:,} per user, {plan['weighting']} weighting, {noise}",
            *_joined_parts(guarantee, accounting),
        ]
        scale, cutoff = "sigma" if plan["noise"] == "gaussian" else "scale", plan["cutoff"]
        row = [f"{plan['scale']:.6g}", f"{plan['threshold']:.6g}", "-" if cutoff is None else f"{cutoff:.5g}"]
        shown = [] if optimal else [[scale, "threshold", "cutoff"], row]
    lines = [
        *head,
        "",
        *([*table(shown), ""] if shown else []),
        *_users_table(plan),
        *known_lines(plan),
        *_promise_lines(plan),
        *([_FEW_ITEMS] if _has_few_items(plan) else []),
    ]
    return "\n".join(lines)


def _has_few_items(plan: Mapping[str, Any]) -> bool:
    """Return whether the smallest limit was chosen, or the caller has one item per user."""
    choice, limit = choice_in(plan), plan["max_items_per_user"]
    return limit is not None and limit == (1 if choice is None else min(choice["limits"]))


def _decisions(plan: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the passes that decide about items."""
    return [row for row in plan["passes"] if row["pass"] != "choice"]


def _round_table(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return the numbers of adaptive rounds as the cells of a table with a header."""
    first_round, *later = rows
    first = ["1", f"{first_round['scale']:.6g}", f"{first_round['threshold'] / first_round['scale']:.4g}", "-", "-"]
    cells = [["round", "sigma", "threshold", "drop below", "part"], first]
    for number, each in enumerate(later, start=2):
        drop = "-" if each["drop_threshold"] is None else f"{each['drop_threshold']:.4g}"
        part = f"{each['part'] / later[-1]['part']:.4g}"
        cells.append([str(number), f"{each['scale']:.6g}", f"{each['score_threshold']:.4g}", drop, part])
    return cells


def _joined_parts(*parts: str) -> list[str]:
    """Return one line of the non-empty parts, or no line."""
    line = "; ".join(filter(None, parts))
    return [line] if line else []


def _data_sets(plan: Mapping[str, Any]) -> list[str]:
    names = plan.get("data_sets", [])
    if not names:
        return []
    return [f"for {', '.join(names)} together: noise in each is {len(names) ** 0.5:.3g} times that of one data set"]


def _users_table(plan: Mapping[str, Any]) -> list[str]:
    names, rows = both_rows(plan)
    head = ["items of each", *names]
    missed = plan["miss_probability"]
    chance = "below 1e-6" if missed < 1e-6 else f"{missed:.2g}"
    return [
        "Users that an item needs, by probability of release",
        *table([head, *rows]),
        "(items of each: the number of items of each of these users; none of them has more users than this one)",
        f"An item with ten times these users is missed with probability {chance}",
    ]


def _promise_lines(plan: Mapping[str, Any]) -> list[str]:
    if "min_users" not in plan:
        return []
    rows = (plan["users_needed"], plan["users_needed_without_promise"])
    needed, before = ({row["items"]: row["users"] for row in each if row["probability"] == 0.5} for each in rows)
    counts = [f"{whole(needed[items])} instead of {whole(before[items])}" for items in needed]
    return [
        f"An item of fewer than {plan['min_users']:,} users is released with probability at most "
        f"{plan['released_with_few']:.2g}; for release with probability 0.5, items need",
        f"{', '.join(counts)} users (with {', '.join(f'{items:,}' for items in needed)} such items each)",
    ]


PAGES = {"round": "adaptive", "selection": "optimal-selection", "threshold": "set-union"}
OTHERS = 10
_SHOWN = 12


def story(plan: Mapping[str, Any], sizes: Mapping[int, int]) -> Story:
    """Return the story of a set union from its plan's numbers."""
    if plan["weighting"] == "series":
        return series.story(plan)
    rounds = _decisions(plan)
    last = rounds[-1]
    curves = [
        {"name": f"{size:,} item{'' if size == 1 else 's'} each", "points": points}
        for size in sorted({1, min(OTHERS, plan["max_items_per_user"]), plan["max_items_per_user"]})
        if (points := curve_of(plan, last, size))
    ]
    return Story(
        words="union.html",
        noun=("item", "items"),
        title="released",
        kicker="Set union",
        proof=f"docs/privacy/{PAGES[last['pass']]}.md",
        values={
            "limit": plan["max_items_per_user"],
            "chosen": choice_in(plan) is not None,
            "optimal": last["pass"] == "selection",
            "rounds": len(rounds),
            "listed": "known" in plan,
        },
        needed=_needed(plan),
        about=_about(plan),
        curves=curves,
        curves_note="One line for each number of items of a user, none of which has more users. A user with many "
        "items gives each of them less weight.",
        grids=[*known_grids(plan), _rounds_grid(plan)],
    )


def curve_of(plan: Mapping[str, Any], last: Mapping[str, Any], size: int) -> list[tuple[int, float]]:
    """Return the probability of release by number of users with `size` items each; empty if unknown."""
    chance: numbers.Chance
    if last["pass"] == "round":
        return []
    if last["pass"] == "selection":
        chance = numbers.optimal_chance(plan["epsilon"], plan["delta"], round(last["threshold"]))
    else:
        share = share_of(plan["weighting"], last["noise"], plan["max_items_per_user"], size)
        if share is None:
            return []
        chance = numbers.threshold_chance(last, share)
    return numbers.curve(chance)


def _about(plan: Mapping[str, Any]) -> tuple[str, str]:
    rows = [row for row in plan["users_needed"] if row["items"] == OTHERS and row["probability"] == 0.9]
    return whole(rows[0]["users"]), f"for 90 %, if each has {OTHERS} items"


def _needed(plan: Mapping[str, Any]) -> Grid:
    names, rows = both_rows(plan, " %", 100)
    return Grid(
        "Users that an item needs",
        ["items of each user", *names],
        rows,
        "Items of each user: the number of items of each of these users; none of them has more users."
        + _promise(plan)
        + _together_text(plan)
        + (f" {_FEW_ITEMS}." if _has_few_items(plan) else ""),
    )


def _promise(plan: Mapping[str, Any]) -> str:
    """Return the text of the bound for items with few users."""
    if "min_users" not in plan:
        return ""
    chance = at_most(plan["released_with_few"])
    return f" An item of fewer than {whole(plan['min_users'])} users is released with probability at most {chance}."


def _together_text(plan: Mapping[str, Any]) -> str:
    """Return the text about the data sets that the guarantee covers, if there are several."""
    names = plan.get("data_sets", [])
    if not names:
        return ""
    return f" One guarantee covers {', '.join(names)} together, for all data of one user in all of them."


def _rounds_grid(plan: Mapping[str, Any]) -> Grid:
    first, *later = _decisions(plan)
    if first["pass"] == "selection":
        chance = numbers.optimal_chance(plan["epsilon"], plan["delta"], round(first["threshold"]))
        likely = [(holders, chance(holders)) for holders in range(1, 1 + (numbers.users_for(chance, 0.999) or 0))]
        shown = [[f"{holders:,}", f"{100 * share:.3g} %"] for holders, share in likely[-_SHOWN:]]
        note = "No noise is drawn: each number of users who kept the item has its probability, the highest that can be."
        return Grid("Probability of release", ["users who kept the item", "released"], shown, note)
    if later:
        return _adaptive_rounds(first, later)
    rows = [["1", first["noise"], *(plain(first[key]) for key in ("scale", "threshold", "cutoff"))]]
    head = ["round", "noise", "sigma" if plan["noise"] == "gaussian" else "scale b", "threshold", "weight stops at"]
    return Grid("Noise and threshold", head, rows, "In units of weight: each user has one unit to share out.")


def _adaptive_rounds(first_round: Mapping[str, Any], later: list[Mapping[str, Any]]) -> Grid:
    """Return the rounds that add up the cumulative score."""
    rows = [["1", plain(first_round["scale"]), plain(first_round["threshold"] / first_round["scale"]), "–"]]
    for number, each in enumerate(later, start=2):
        floor = each["drop_threshold"]
        released = plain(each["score_threshold"])
        rows.append([str(number), plain(each["scale"]), released, plain(floor)])
    note = "Noise is in units of weight, the other columns in standard deviations of the noise of all rounds together."
    return Grid("Noise and score", ["round", "sigma", "released from", "dropped below"], rows, note)
