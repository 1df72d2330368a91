"""From a plan's public numbers to the story of its report."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from voxpop.release.registry import load, mechanism_called
from voxpop.release.report.numbers import curve, plain, voting_chance, whole


@final
@dataclass(frozen=True, slots=True)
class Grid:
    """A table of the page.

    Attributes:
        title: above it.
        head: of the columns.
        rows: cells as text.
        note: below it.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@final
@dataclass(frozen=True, slots=True)
class Story:
    """The content of a report about one mechanism.

    Attributes:
        words: name of the template that holds its sentences.
        noun: the name of a released object, singular and plural.
        title: the text after their number in the heading.
        kicker: the line above the heading.
        proof: page of the documentation with the proof, or "".
        values: numbers for the sentences.
        needed: the number of users needed, or None.
        about: the same in one number, and its assumptions.
        curves: probability of release by holders: name and points.
        curves_note: the assumptions of the curves.
        cards: the cards at the top, next to the guarantee: a title, a number and a note each.
        costs: parts of the budget: `length`, `part` and `share`, adding up to 1.
        sessions: data of the charts of sessions, from `voxpop.mechanisms.sequences.describe`, or nothing.
        grids: the numbers that ran.
        completes: whether the page completes phrases.
    """

    words: str
    noun: tuple[str, str]
    title: str
    kicker: str
    proof: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    needed: Grid | None = None
    about: tuple[str, str] = ("", "")
    curves: Sequence[Mapping[str, Any]] = ()
    curves_note: str = ""
    cards: Sequence[tuple[str, str, str]] = ()
    costs: Sequence[Mapping[str, Any]] = ()
    sessions: Mapping[str, Any] = field(default_factory=dict)
    grids: Sequence[Grid] = ()
    completes: bool = True


Sizes = Mapping[int, int]
"""Number of released grams of each length."""


def story_of(plan: Mapping[str, Any], sizes: Sizes) -> Story:
    """Return the story of a release.

    Args:
        plan: the result of its plan's `to_dict`, also one of a loaded release.
        sizes: number of released grams of each length.

    Returns:
        The story of its mechanism, or a general one where the numbers are not those of a mechanism of this version.
    """
    mechanism = mechanism_called(str(plan.get("mechanism")))
    if mechanism is None or mechanism.story is None:
        return general_story(plan, sizes)
    about: Callable[[Mapping[str, Any], Sizes], Story] = load(mechanism.story)
    try:
        return about(plan, sizes)
    except (KeyError, TypeError, ValueError, IndexError):
        return general_story(plan, sizes)


def general_story(plan: Mapping[str, Any], sizes: Sizes) -> Story:
    """Return the content that is common to all releases."""
    single = max(sizes, default=1) == 1
    noun = ("item", "items") if single else ("phrase", "phrases")
    return Story("general.html", noun, "released", str(plan.get("mechanism", "Release")))


def about_hitters(plan: Mapping[str, Any], sizes: Mapping[int, int]) -> Story:
    """Return the story of heavy hitters from their plan's numbers."""
    tokens = plan["alphabet"] == "tokens"
    return Story(
        words="hitters.html",
        noun=("phrase", "phrases") if tokens else ("word", "words"),
        title="released",
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
