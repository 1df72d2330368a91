"""The commands and what they are called. Nothing heavy is imported until one of them runs."""

from typing import Annotated

import typer

from voxpop.cli.ask import ask
from voxpop.cli.audit import audit
from voxpop.cli.complete import complete
from voxpop.cli.count import count
from voxpop.cli.demo import demo
from voxpop.cli.export import export
from voxpop.cli.hitters import hitters
from voxpop.cli.items import items
from voxpop.cli.ledger import commands as ledger
from voxpop.cli.ngrams import ngrams
from voxpop.cli.plan import plan
from voxpop.cli.sequences import sequences
from voxpop.cli.show import show

app = typer.Typer(
    name="voxpop",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        import voxpop

        typer.echo(f"voxpop {voxpop.__version__}")
        raise typer.Exit


@app.callback()
def voxpop(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version and leave.")
    ] = False,
) -> None:
    """Find what many people share, and release it with user-level differential privacy."""


for command in (items, ngrams, hitters, sequences, ask, plan, show, complete, count, export, audit, demo):
    app.command()(command)
app.add_typer(ledger, name="ledger")
