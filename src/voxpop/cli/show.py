"""`voxpop show`: what a saved release holds."""

from itertools import islice
from typing import Annotated

import typer

from voxpop.cli.options import Json, Saved

First = Annotated[int, typer.Option(min=0, help="How many grams to show, from the start.")]


def show(folder: Saved, first: First = 20, json: Json = False) -> None:
    """Show a saved release and its guarantee."""
    from voxpop.cli import report
    from voxpop.release.loading import load

    release = load(folder)
    grams = list(islice(release, first))
    if json:
        content = report.summary(release, folder)
        typer.echo(report.json_line({**content, "first": [list(gram) for gram in grams]}))
        return
    typer.echo(report.count(release))
    for gram in grams:
        typer.echo(f"  {report.printable(gram)}")
    typer.echo(report.promise(release.guarantee))
    typer.echo(f"\nPlan\n{report.indented(str(release.plan))}")
