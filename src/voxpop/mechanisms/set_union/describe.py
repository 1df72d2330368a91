"""The text of a plan of set union and the content of its report, from public numbers.

For each type of pass, one function returns its `_Facts`. Texts and reports are made from these facts.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from voxpop.mechanisms.rounds.listed import known_note, users_grid
from voxpop.mechanisms.rounds.menu import about_limit, about_menu, choice_in
from voxpop.mechanisms.series import describe as series
from voxpop.privacy.guarantee import at_most
from voxpop.privacy.weightings.builtin import share_of
from voxpop.release.report.numbers import Chance, curve, optimal_chance, threshold_chance, users_for, whole
from voxpop.release.report.page import Grid, Story

_FEW_ITEMS = (
    "\nIf the items are keys of a table and most users have only one, vp.profile(table, user=..., joint=[...]) "
    "releases more keys in a single release, with counts (voxpop profile --joint)."
)
"""The advice in plans and reports if users have few items each."""
OTHERS = 10
_MOST_ROWS = 12


class _Facts(NamedTuple):
    """The facts about the passes that decide which items are released.

    Attributes:
        heading: The text about the passes and their limit.
        accounting: The method that computes the guarantee, or an empty string.
        proof: The name of the page with the proof.
        numbers: The table of the numbers of the passes (None before a limit is chosen).
        chance: A function that returns the probability of release for a number of items per user, or None if it is
            unknown.
    """

    heading: str
    accounting: str
    proof: str
    numbers: Grid | None
    chance: Callable[[int], Chance | None]


Passes = Sequence[Mapping[str, Any]]


def _about_rounds(plan: Mapping[str, Any], rounds: Passes) -> _Facts:
    first, *later = rounds
    limit = plan["max_items_per_user"]
    rows = [["1", f"{first['scale']:.6g}", f"{first['threshold'] / first['scale']:.4g}", "-", "-"]]
    for number, each in enumerate(later, start=2):
        levels = (each["score_threshold"], each["drop_threshold"], each["part"] / later[-1]["part"])
        rows.append(
            [str(number), f"{each['scale']:.6g}", *("-" if level is None else f"{level:.4g}" for level in levels)]
        )
    head = ["round", "sigma", "threshold", "drop below", "part"]
    note = "Sigma is in units of weight, and thresholds are in standard deviations of the noise in the score.\n"
    note += "Part: the weight of the round in the score, relative to the last round."
    pool = "" if choice_in(plan) else f", from a pool of {plan['pool']:,}"
    heading = f"Items in {len(rounds)} adaptive rounds, {about_limit(plan, limit)}{pool}"
    numbers = None if limit is None else Grid("Noise and thresholds of the rounds", head, rows, note)
    return _Facts(heading, "", "adaptive", numbers, lambda size: None)


def _about_selection(plan: Mapping[str, Any], passes: Passes) -> _Facts:
    chance = optimal_chance(plan["epsilon"], plan["delta"], round(passes[-1]["threshold"]))
    likely = [(holders, chance(holders)) for holders in range(1, 1 + (users_for(chance, 0.999) or 0))]
    rows = [[f"{holders:,}", f"{100 * share:.3g} %"] for holders, share in likely[-_MOST_ROWS:]]
    note = (
        "No noise is drawn. The number of users who kept an item determines its probability of release, which is the\n"
        "highest that the guarantee permits."
    )
    numbers = Grid("Probability of release", ["users who kept the item", "released"], rows, note)
    heading = f"{_heading(plan)}, optimal selection by number of users"
    return _Facts(heading, plan.get("accounting", ""), "optimal-selection", numbers, lambda size: chance)


def _about_threshold(plan: Mapping[str, Any], passes: Passes) -> _Facts:
    one = passes[-1]

    def chance(size: int) -> Chance | None:
        share = share_of(plan["weighting"], one["noise"], plan["max_items_per_user"], size)
        return None if share is None else threshold_chance(one, share)

    row = [f"{one['scale']:.6g}", f"{one['threshold']:.6g}", "-" if one["cutoff"] is None else f"{one['cutoff']:.5g}"]
    head = ["sigma" if one["noise"] == "gaussian" else "scale", "threshold", "cutoff"]
    note = "Numbers are in units of weight. Each user divides one unit, and no item receives weight above the cutoff."
    numbers = Grid("Noise and threshold", head, [row], note)
    return _Facts(f"{_heading(plan)}, {one['noise']} noise", plan.get("accounting", ""), "set-union", numbers, chance)


def _heading(plan: Mapping[str, Any]) -> str:
    return f"Items, at most {plan['max_items_per_user']:,} per user, {plan['weighting']} weighting"


FACTS = {"round": _about_rounds, "selection": _about_selection, "threshold": _about_threshold}
"""The facts by type of the passes that decide about items."""


def _passes(plan: Mapping[str, Any]) -> Passes:
    """Return the passes that decide which items are released."""
    return [row for row in plan["passes"] if row["pass"] != "choice"]


def _is_series(plan: Mapping[str, Any]) -> bool:
    return bool(plan["passes"][-1]["pass"] == "night")


def facts_of(plan: Mapping[str, Any]) -> _Facts:
    """Return the facts about the passes that decide which items are released."""
    passes = _passes(plan)
    return FACTS[passes[-1]["pass"]](plan, passes)


def describe(plan: Mapping[str, Any], guarantee: str = "") -> str:
    """Return the text of a plan from its public numbers."""
    if _is_series(plan):
        return series.describe(plan, guarantee)
    facts = facts_of(plan)
    accounting = f"{facts.accounting} accounting" if facts.accounting else ""
    return "\n".join(
        [
            facts.heading,
            *filter(None, ["; ".join(filter(None, [guarantee, accounting]))]),
            *about_menu(plan, plan["max_items_per_user"]),
            "",
            *([*facts.numbers.lines(), ""] if facts.numbers else []),
            *_users(plan).lines(),
        ]
    )


def story(plan: Mapping[str, Any], sizes: Mapping[int, int]) -> Story:
    """Return the content of a report from the numbers of its plan."""
    if _is_series(plan):
        return series.story(plan)
    facts, passes, limit = facts_of(plan), _passes(plan), plan["max_items_per_user"]
    chances = {size: facts.chance(size) for size in sorted({1, min(OTHERS, limit), limit})}
    curves = [
        {"name": f"{size:,} item{'' if size == 1 else 's'} each", "points": points}
        for size, chance in chances.items()
        if chance is not None and (points := curve(chance))
    ]
    each = [row for row in plan["users_needed"] if row["items"] == OTHERS and row["probability"] == 0.9]
    return Story(
        words="union.html",
        noun=("item", "items"),
        title="released",
        kicker="Items",
        proof=f"docs/privacy/{facts.proof}.md",
        values={
            "limit": limit,
            "chosen": choice_in(plan) is not None,
            "optimal": passes[-1]["pass"] == "selection",
            "rounds": len(passes),
            "listed": "known" in plan,
        },
        needed=_users(plan),
        about=(whole(each[0]["users"]), f"for 90 %, if each has {OTHERS} items"),
        curves=curves,
        curves_note="One line for each number of items of a user, none of which has more users. A user with many "
        "items gives each of them less weight.",
        grids=[facts.numbers] if facts.numbers else [],
    )


def _users(plan: Mapping[str, Any]) -> Grid:
    missed = "below 1e-6" if plan["miss_probability"] < 1e-6 else f"{plan['miss_probability']:.2g}"
    note = (
        "Items of each: the number of items of each of these users. None of them has more users than this item.\n"
        f"An item with ten times these users is missed with probability {missed}."
    )
    if "min_users" in plan:
        note += _promise(plan)
    if names := plan.get("data_sets"):
        note += f"\nOne guarantee covers {', '.join(names)} together, for all data of one user in all of them. "
        note += f"Noise in each is {len(names) ** 0.5:.3g} times that of one data set."
    note += known_note(plan, "item", "The columns of known items assume")
    return users_grid(plan, "an item", note + (_FEW_ITEMS if _has_few_items(plan) else ""))


def _promise(plan: Mapping[str, Any]) -> str:
    """Return the sentences about the bound for items with few users."""
    rows = (plan["users_needed"], plan["users_needed_without_promise"])
    needed, before = ({row["items"]: row["users"] for row in each if row["probability"] == 0.5} for each in rows)
    counts = ", ".join(f"{whole(needed[items])} instead of {whole(before[items])}" for items in needed)
    return (
        f"\nAn item of fewer than {plan['min_users']:,} users is released with probability at most "
        f"{at_most(plan['released_with_few'])}.\nTherefore, for probability 0.5, items need {counts} users "
        f"(with {', '.join(f'{items:,}' for items in needed)} such items each)."
    )


def _has_few_items(plan: Mapping[str, Any]) -> bool:
    """Return whether the smallest limit was chosen, or the caller set a limit of one item per user."""
    choice, limit = choice_in(plan), plan["max_items_per_user"]
    return limit is not None and limit == (1 if choice is None else min(choice["limits"]))
