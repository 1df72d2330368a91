"""`voxpop complete`: how a released phrase goes on."""

from typing import Annotated

import typer

from voxpop.cli.options import Json, Saved
from voxpop.showing import printable

Typed = Annotated[str, typer.Argument(metavar="TEXT", help="What stands before; its last word may be a beginning.")]
Most = Annotated[int, typer.Option("--limit", help="Most continuations.")]


def complete(folder: Saved, prompt: Typed = "", limit: Most = 10, json: Json = False) -> None:
    """Show how released phrases go on from a text: longest context first.

    voxpop complete phrases "thank you for"
    """
    from voxpop.cli import report
    from voxpop.release.stored_release import load_release

    release = load_release(folder)
    found = release.complete(prompt, limit)
    if json:
        rows = [{"token": each.token, "context": list(each.context), "phrases": each.phrases} for each in found]
        typer.echo(report.json_line({"prompt": prompt, "completions": rows, "statement": str(release.guarantee)}))
        return
    if not found:
        typer.echo("Nothing released goes on from there.")
    for each in found:
        typer.echo(f"  {printable(each.gram)}")
