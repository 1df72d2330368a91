"""What a report tells of one mechanism: words to choose, numbers, tables and pictures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final


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
    """What a report tells of one mechanism.

    Attributes:
        words: name of the template that holds its sentences.
        noun: what one released thing is called, and several.
        title: what follows their number in the heading.
        kicker: the line above the heading.
        proof: page of the documentation with the proof, or "".
        values: numbers for the sentences.
        needed: how many users something needed, or None.
        about: the same in one number, and what it supposes.
        curves: probability of release by holders: name and points.
        curves_note: what the curves suppose.
        costs: parts of the budget: `length`, `part` and `share`, adding up to 1.
        sessions: how sessions go, as `voxpop.sequences.picturing` tells it, or nothing.
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
    costs: Sequence[Mapping[str, Any]] = ()
    sessions: Mapping[str, Any] = field(default_factory=dict)
    grids: Sequence[Grid] = ()
    completes: bool = True
