"""`voxpop show`: what a saved release or model holds."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from voxpop.cli.options import Json, Saved
from voxpop.showing import printable, words_first

if TYPE_CHECKING:
    from voxpop.release.release import Release
    from voxpop.sequences.model import SequenceModel

First = Annotated[int, typer.Option(min=0, help="How many grams to show, from the start.")]


def show(folder: Saved, first: First = 20, json: Json = False) -> None:
    """Show a saved release or model and its guarantee."""
    from voxpop.cli import report
    from voxpop.release.loading import load
    from voxpop.release.release import Release

    saved = load(folder)
    count, rows, lines = _release(saved, first) if isinstance(saved, Release) else _model(saved, first)
    if json:
        typer.echo(report.json_line({**report.summary(saved, folder), "first": rows}))
        return
    typer.echo(count)
    for line in lines:
        typer.echo(f"  {line}")
    typer.echo(report.promise(saved.guarantee))
    typer.echo(f"\nPlan\n{report.indented(str(saved.plan))}")


def _release(release: "Release", first: int) -> tuple[str, list[Any], list[str]]:
    from voxpop.cli import report

    grams = words_first(release.each_gram())[:first]
    return report.count(release), [list(gram) for gram in grams], [printable(gram) for gram in grams]


def _model(model: "SequenceModel", first: int) -> tuple[str, list[Any], list[str]]:
    """Return the first grams of a model with their noisy counts; a dot marks the end of a sequence."""
    rows = model.to_polars().head(first).select("gram", "ends", "count").to_dicts()
    lines = [f"{row['count']:>12,}  {printable(row['gram'])}{' .' if row['ends'] else ''}" for row in rows]
    noun = f"gram{'' if len(model) == 1 else 's'}"
    return f"A model of {len(model):,} {noun} with noisy counts; a dot is the end of a sequence.", rows, lines
