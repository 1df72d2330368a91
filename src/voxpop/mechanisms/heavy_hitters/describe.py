"""The text of a plan of heavy hitters and the content of its report, from public numbers."""

from collections.abc import Mapping
from typing import Any

from voxpop.privacy.trie.accountant import group_delta
from voxpop.release.report.numbers import curve, plain, rows_of_type, voting_chance, whole
from voxpop.release.report.page import Grid, Story

_SHOWN_DIGITS = 12
"""The number of hexadecimal digits of a fingerprint that texts show."""


def describe(plan: Mapping[str, Any], guarantee: str = "") -> str:
    """Return the text of a plan from its public numbers."""
    [votes] = rows_of_type(plan, "votes")
    one_word = votes["words"] == "one"
    whose = "the user's most frequent word" if one_word else "one of the user's words, drawn again in each round"
    times = ""
    if votes["again"]:
        times = f", a second time with probability {votes['again']:g}, and after each additional vote again with "
        times += f"probability {votes['further']:g}"
    theorem = f"rate and threshold by Theorem 1 of {plan['paper']}" if "paper" in plan else ""
    twice = group_delta(plan["epsilon"], plan["delta_spent"], 2)
    held = f"({2 * plan['epsilon']:g}, {twice:.3g})-DP"
    return "\n".join(
        [
            f"Heavy hitters of at most {plan['max_length']} {plan['alphabet']}, the end mark counted,",
            *filter(None, ["; ".join(filter(None, [guarantee, theorem]))]),
            f"a user votes once for {whose}{times}",
            *([_listed(plan["exclude"])] if "exclude" in plan else []),
            # If delta reaches 1, there is no guarantee for such a person.
            *([f"a person who counts as two users, such as one on two nodes, has {held}"] if twice < 1.0 else []),
            "",
            *_rounds(plan).lines(),
            "",
            *_voters(plan).lines(),
        ]
    )


def _rounds(plan: Mapping[str, Any]) -> Grid:
    [votes] = rows_of_type(plan, "votes")
    first, unit = votes["first_unit"], votes["unit"]
    symbols = plain(unit) if unit == first or votes["rounds"] == 1 else f"{first}, then {unit}"
    head = ["maximum of rounds", f"{plan['alphabet']} per round", "probability of selection", "votes needed"]
    row = [whole(votes["rounds"]), symbols, f"{plain(100 * votes['rate'], 4)} %", whole(votes["theta"])]
    return Grid("Rounds", head, [row])


def _voters(plan: Mapping[str, Any]) -> Grid:
    return Grid(
        "Users who must vote for a word",
        ["found with probability", "users who vote for it"],
        [[f"{row['probability']:g}", whole(row["users"])] for row in plan["users_needed"]],
        "The worst case: a word of full length that shares no prefix with others. Most words need fewer.",
    )


def _listed(exclude: Mapping[str, Any]) -> str:
    digest = str(exclude["fingerprint"]).removeprefix("sha256:")[:_SHOWN_DIGITS]
    return f"no user votes for a word of a public list of {exclude['size']:,} (sha256 {digest}...)"


def story(plan: Mapping[str, Any], sizes: Mapping[int, int]) -> Story:
    """Return the content of a report from the numbers of a plan."""
    [votes] = rows_of_type(plan, "votes")
    [likely] = (row["users"] for row in plan["users_needed"] if row["probability"] == 0.9)
    return Story(
        words="hitters.html",
        noun=("phrase", "phrases") if plan["alphabet"] == "tokens" else ("word", "words"),
        title="released",
        kicker="Heavy hitters",
        proof="docs/privacy/heavy-hitters.md",
        values={
            **{name: votes[name] for name in ("words", "theta", "rounds")},
            **{name: plan[name] for name in ("max_length", "alphabet")},
            "rate": plain(100 * votes["rate"], 4),
            "trust": plan.get("trust", ""),
            "exclude": _listed(plan["exclude"]) if "exclude" in plan else "",
            "again": plain(100 * votes["again"], 3) if votes["again"] else "",
        },
        needed=_voters(plan),
        about=(whole(likely), "voters for 90 %, at worst"),
        curves=[{"name": "full length", "points": curve(voting_chance(votes))}],
        curves_note="The worst case: a word of full length that shares no prefix with others, for which its users vote "
        "whenever they are selected.",
        grids=[_rounds(plan)],
    )
