"""`voxpop ask`: questions to a saved model of sequences, each answer with an interval; no question costs budget."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from voxpop.cli.options import Json, Saved
from voxpop.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from voxpop.sequences.model import SequenceModel


class Question(StrEnum):
    """What can be asked."""

    next = "next"
    paths = "paths"
    funnel = "funnel"
    lengths = "lengths"
    starts = "starts"
    ends = "ends"
    transitions = "transitions"


Asked = Annotated[Question, typer.Argument(help="What to ask.")]
Symbols = Annotated[str, typer.Option(metavar="LIST", help="Symbols with commas between: the prefix, or the steps.")]
Length = Annotated[int, typer.Option(help="Of the paths.")]
Within = Annotated[int | None, typer.Option(help="Most symbols from one step of a funnel to the next.")]
Level = Annotated[float, typer.Option(help="What share of the intervals is to hold.")]
First = Annotated[int, typer.Option(min=1, help="How many rows to show.")]


def ask(
    folder: Saved,
    question: Asked,
    symbols: Symbols = "",
    length: Length = 3,
    within: Within = None,
    level: Level = 0.9,
    first: First = 20,
    json: Json = False,
) -> None:
    """Ask a model that `voxpop sequences` saved.

    voxpop ask model funnel --symbols home,basket,paid --within 3
    """
    from voxpop.sequences.model import SequenceModel

    model = SequenceModel.load(folder)
    named = [symbol for symbol in symbols.split(",") if symbol]
    if named and question not in (Question.next, Question.funnel):
        raise InputError(f"--symbols belongs to next and funnel, not to {question.value}.")
    frame = _answer(model, question, named, length, within, level, first)
    if json:
        from voxpop.cli.report import json_line

        typer.echo(json_line({"question": question.value, "level": level, "answer": frame.to_dicts()}))
        return
    for row in frame.head(first).iter_rows(named=True):
        typer.echo(_line(row))


def _answer(
    model: "SequenceModel",
    question: Question,
    symbols: list[str],
    length: int,
    within: int | None,
    level: float,
    first: int,
) -> "pl.DataFrame":
    if question is Question.next:
        return model.following(symbols, level)
    if question is Question.paths:
        return model.paths(length, first, level)
    if question is Question.funnel:
        return model.funnel(symbols, within, level)
    of = {"lengths": model.lengths, "starts": model.starting, "ends": model.ending, "transitions": model.transitions}
    return of[question.value](level)


def _line(row: dict[str, object]) -> str:
    from voxpop.showing import printable

    shares = [float(str(row.pop(name))) for name in ("share", "error", "low", "high")]
    names = []
    for value in row.values():
        symbols = value if isinstance(value, list) else ["(end)" if value is None else str(value)]
        names.append(printable(tuple(symbols)))
    share, _, low, high = (f"{value:.4f}" for value in shares)
    numbers = f"{share:>8}   ({low} to {high})"
    return f"{numbers}   {' -> '.join(names)}"
