"""The story of a set union."""

from collections.abc import Mapping
from typing import Any

from voxpop.release.report.chances import Chance, curve, optimal_chance, share_of, threshold_chance, users_for
from voxpop.release.report.story import Grid, Story
from voxpop.release.report.words import at_most, plain, whole

OTHERS = 10
SHOWN = 12


def about_union(plan: Mapping[str, Any], sizes: Mapping[int, int]) -> Story:
    """Return the story of a set union from its plan's numbers."""
    last = plan["round_plans"][-1]
    curves = [
        {"name": f"{size:,} item{'' if size == 1 else 's'} each", "points": points}
        for size in sorted({1, min(OTHERS, plan["limit"]), plan["limit"]})
        if (points := curve_of(plan, last, size))
    ]
    return Story(
        words="union.html",
        noun=("item", "items"),
        title="that many people share",
        kicker="Set union",
        proof=f"docs/privacy/{_page(plan, last)}.md",
        values={"limit": plan["limit"], "optimal": last["noise"] == "optimal", "rounds": len(plan["round_plans"])},
        needed=_needed(plan),
        about=_about(plan),
        curves=curves,
        curves_note="One line for each number of items that the holders hold, none of them held by more people. "
        "Whoever holds many items gives each of them less weight.",
        grids=[_rounds(plan)],
    )


def curve_of(plan: Mapping[str, Any], last: Mapping[str, Any], size: int) -> list[tuple[int, float]]:
    """Return how likely an item is released, by its holders, who hold `size` items each; empty where unknown."""
    chance: Chance
    if _adaptive(plan) or last["noise"] == "set-only":
        return []
    if last["noise"] == "optimal":
        chance = optimal_chance(plan["epsilon"], plan["delta"], round(last["threshold"]))
    else:
        share = share_of(plan["weighting"], last["noise"], plan["limit"], size)
        if share is None:
            return []
        chance = threshold_chance(last, share)
    return curve(chance)


def _adaptive(plan: Mapping[str, Any]) -> bool:
    return bool(plan["weighting"] == "adaptive")


def _page(plan: Mapping[str, Any], last: Mapping[str, Any]) -> str:
    if _adaptive(plan):
        return "adaptive"
    if last["noise"] in ("optimal", "set-only"):
        return {"optimal": "optimal-selection", "set-only": "set-only"}[last["noise"]]
    return "rounds" if len(plan["round_plans"]) > 1 else "set-union"


def _about(plan: Mapping[str, Any]) -> tuple[str, str]:
    rows = [row for row in plan["users_needed"] if row["items"] == OTHERS and row["probability"] == 0.9]
    return whole(rows[0]["users"]), f"for 90 %, if each holds {OTHERS} items"


def _needed(plan: Mapping[str, Any]) -> Grid:
    users = {(row["items"], row["probability"]): row["users"] for row in plan["users_needed"]}
    probabilities = sorted({probability for _, probability in users})
    sizes = sorted({size for size, _ in users})
    return Grid(
        "Holders that an item needs",
        ["items of each holder", *(f"{100 * probability:g} %" for probability in probabilities)],
        [[f"{size:,}", *(whole(users[size, each]) for each in probabilities)] for size in sizes],
        "Each row is for holders of so many items each, none of them held by more people."
        + (" In the last round alone: earlier rounds can only help." if len(plan["round_plans"]) > 1 else "")
        + _promise(plan)
        + _together(plan),
    )


def _promise(plan: Mapping[str, Any]) -> str:
    """Return what is promised about items of few users."""
    if "at_least" not in plan:
        return ""
    chance = at_most(plan["released_with_few"])
    return f" An item of fewer than {whole(plan['at_least'])} users is released with probability at most {chance}."


def _together(plan: Mapping[str, Any]) -> str:
    """Return which data sets the guarantee covers, where there are several."""
    names = plan.get("data_sets", [])
    if not names:
        return ""
    return f" One guarantee covers {', '.join(names)} together: everything that one user holds in any of them."


def _rounds(plan: Mapping[str, Any]) -> Grid:
    last = plan["round_plans"][-1]
    if last["noise"] == "optimal":
        chance = optimal_chance(plan["epsilon"], plan["delta"], round(last["threshold"]))
        likely = [(holders, chance(holders)) for holders in range(1, 1 + (users_for(chance, 0.999) or 0))]
        shown = [[f"{holders:,}", f"{100 * share:.3g} %"] for holders, share in likely[-SHOWN:]]
        note = "No noise is drawn: each number of users who kept the item has its probability, the highest that can be."
        return Grid("Probability of release", ["users who kept the item", "released"], shown, note)
    if _adaptive(plan):
        return _adaptive_rounds(plan)
    if plan["round_plans"][-1]["noise"] == "set-only":
        return _tables(plan)
    rows = [
        [str(number), each["noise"], *(plain(each[key]) for key in ("scale", "threshold", "cutoff"))]
        for number, each in enumerate(plan["round_plans"], start=1)
    ]
    head = ["round", "noise", "sigma" if plan["noise"] == "gaussian" else "scale b", "threshold", "weight stops at"]
    return Grid("Noise and threshold", head, rows, "In units of weight: each user has one unit to share out.")


def _adaptive_rounds(plan: Mapping[str, Any]) -> Grid:
    """Return the rounds that add up evidence."""
    opening, *later = plan["round_plans"]
    rows = [["1", plain(opening["scale"]), plain(opening["threshold"] / opening["scale"]), "–"]]
    for number, each in enumerate(later, start=2):
        floor = each["evidence_floor"]
        released = plain(each["evidence_threshold"])
        rows.append([str(number), plain(each["scale"]), released, "–" if floor is None else plain(floor)])
    note = "Noise in units of weight; the rest in standard deviations of the noise in what the rounds saw together."
    return Grid("Noise and evidence", ["round", "sigma", "released from", "dropped below"], rows, note)


def _tables(plan: Mapping[str, Any]) -> Grid:
    """Return which share of the rounds there are where a table decides."""
    rows = [[str(number), each["noise"]] for number, each in enumerate(plan["round_plans"], start=1)]
    note = "No noise is drawn: a public table says how likely each weight is released."
    return Grid("Rounds", ["round", "decided by"], rows, note)
