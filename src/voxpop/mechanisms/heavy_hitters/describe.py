"""The text of a plan of heavy hitters and the content of its report, from public numbers."""

from collections.abc import Mapping
from typing import Any

from voxpop.privacy.trie.accountant import group_delta
from voxpop.release.report.numbers import curve, plain, voting_chance, whole
from voxpop.release.report.page import Grid, Story

_SHOWN_DIGITS = 12
"""Number of hexadecimal digits of a fingerprint in texts."""


def describe(plan: Mapping[str, Any], guarantee: str = "") -> str:
    """Return the text of a plan from its public numbers."""
    first, unit, symbols = plan["first_unit"], plan["unit"], plan["alphabet"]
    step = f"{first} {symbols} a round" if first > 1 else "one symbol a round"
    if first != unit and plan["rounds"] > 1:
        step = f"{first} {symbols} in the first round and {unit} in each later one"
    whose = "its most frequent word" if plan["words"] == "one" else "any of its words, drawn again in each round"
    times = "once"
    if plan["again"]:
        times += f"; with chance {plan['again']:g} again, and then with chance {plan['further']:g} once more, and so on"
    theorem = f"rate and threshold by Theorem 1 of {plan['paper']}" if "paper" in plan else ""
    lines = [
        f"Heavy hitters of at most {plan['max_length']} {symbols}, the end mark counted,",
        step,
        *filter(None, ["; ".join(filter(None, [guarantee, theorem]))]),
        "",
        f"  {plan['rounds']} rounds at most; a user takes part in each with probability "
        f"{100 * plan['sampling_rate']:.4g} %",
        f"  a user votes for {whose}, {times}",
        f"  a prefix grows with {plan['theta']} votes or more",
    ]
    if "exclude" in plan:
        lines.append(f"  {_listed(plan['exclude'])}")
    twice = group_delta(plan["epsilon"], plan["delta_spent"], 2)
    if twice < 1.0:  # otherwise there is no guarantee for such a person
        held = f"({2 * plan['epsilon']:g}, {twice:.3g})-DP"
        lines.append(f"  a person who counts as two users, such as one on two nodes, has {held}")
    return "\n".join(
        [
            *lines,
            "",
            "Users who must vote for a word, by the probability that it is found",
            *(f"  {row['probability']:g}: {row['users']:,}" for row in plan["users_needed"]),
            "(a word of full length that shares no prefix with others; most need fewer)",
        ]
    )


def _listed(exclude: Mapping[str, Any]) -> str:
    digest = str(exclude["fingerprint"]).removeprefix("sha256:")[:_SHOWN_DIGITS]
    return f"no user votes for a word of a public list of {exclude['size']:,} (sha256 {digest}...)"


def story(plan: Mapping[str, Any], sizes: Mapping[int, int]) -> Story:
    """Return the content of a report from the numbers of a plan."""
    needed = {row["probability"]: row["users"] for row in plan["users_needed"]}
    rate, first, unit = f"{plain(100 * plan['sampling_rate'], 4)} %", plan["first_unit"], plan["unit"]
    symbols = plain(unit) if unit == first else f"{first}, then {unit}"
    return Story(
        words="hitters.html",
        noun=("phrase", "phrases") if plan["alphabet"] == "tokens" else ("word", "words"),
        title="released",
        kicker="Heavy hitters",
        proof="docs/privacy/heavy-hitters.md",
        values={
            **{name: plan[name] for name in ("words", "theta", "rounds", "max_length", "alphabet")},
            "rate": plain(100 * plan["sampling_rate"], 4),
            "trust": plan.get("trust", ""),
            "exclude": _listed(plan["exclude"]) if "exclude" in plan else "",
            "again": plain(100 * plan["again"], 3) if plan["again"] else "",
        },
        needed=Grid(
            "Voters that a word needs",
            ["found with probability", "users who vote for it"],
            [[f"{100 * probability:g} %", whole(users)] for probability, users in needed.items()],
            "The worst case: a word of full length that shares no prefix with others. Most need fewer.",
        ),
        about=(whole(needed[0.9]), "voters for 90 %, at worst"),
        curves=[{"name": "full length", "points": curve(voting_chance(plan))}],
        curves_note="The worst case: a word of full length that shares no prefix with others, for which its users vote "
        "whenever they are selected.",
        grids=[
            Grid(
                "What ran",
                ["probability of selection", "votes that a prefix needs", "maximum of rounds", "symbols per round"],
                [[rate, whole(plan["theta"]), whole(plan["rounds"]), symbols]],
            )
        ],
    )
