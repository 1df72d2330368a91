"""The story of heavy hitters."""

from collections.abc import Mapping
from typing import Any

from voxpop.release.report.chances import curve, voting_chance
from voxpop.release.report.story import Grid, Story
from voxpop.release.report.words import plain, whole


def about_hitters(plan: Mapping[str, Any], sizes: Mapping[int, int]) -> Story:
    """Return the story of heavy hitters from their plan's numbers."""
    tokens = plan["alphabet"] == "tokens"
    return Story(
        words="hitters.html",
        noun=("phrase", "phrases") if tokens else ("word", "words"),
        title="that many people hold",
        kicker="Heavy hitters",
        proof="docs/privacy/heavy-hitters.md",
        values={
            "words": plan["words"],
            "fixed": plan["sampling"] == "fixed",
            "rate": plain(100 * plan["sampling_rate"], 4),
            "theta": plan["theta"],
            "rounds": plan["rounds"],
            "max_length": plan["max_length"],
            "alphabet": plan["alphabet"],
            "trust": plan.get("trust", ""),
            "again": plain(100 * plan["again"], 3) if plan["again"] else "",
        },
        needed=Grid(
            "Voters that a word needs",
            ["found with probability", "users who vote for it"],
            [[f"{100 * row['probability']:g} %", whole(row["holders"])] for row in plan["holders_needed"]],
            "The worst case: a word of full length that shares no prefix with others. Most need fewer.",
        ),
        about=(whole(plan["holders_90"]), "voters for 90 %, at worst"),
        curves=[
            {
                "name": "full length",
                "points": curve(voting_chance(plan)),
            }
        ],
        curves_note="The worst case: a word of full length that shares no prefix with others, for which its users vote "
        "whenever they are asked.",
        grids=[
            Grid(
                "What ran",
                ["probability of being asked", "votes a prefix needs", "rounds at most", "symbols a round"],
                [
                    [
                        f"{plain(100 * plan['sampling_rate'], 4)} %",
                        whole(plan["theta"]),
                        whole(plan["rounds"]),
                        plain(plan["unit"])
                        if plan["unit"] == plan["first_unit"]
                        else f"{plan['first_unit']}, then {plan['unit']}",
                    ]
                ],
            )
        ],
        completes=True,
    )
