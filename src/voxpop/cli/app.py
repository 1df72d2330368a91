"""The commands and what they are called. Nothing heavy is imported until one of them runs."""

from typing import Annotated

import typer

from voxpop.cli.ask import ask
from voxpop.cli.audit import audit
from voxpop.cli.complete import complete
from voxpop.cli.demo import demo
from voxpop.cli.export import export
from voxpop.cli.ledger import commands as ledger
from voxpop.cli.plan import commands as plan
from voxpop.cli.show import show
from voxpop.cli.together import together
from voxpop.mechanisms import MECHANISMS, load

app = typer.Typer(
    name="voxpop",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from voxpop.version import installed_version

        typer.echo(f"voxpop {installed_version()}")
        raise typer.Exit


@app.callback()
def voxpop(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version and leave.")
    ] = False,
) -> None:
    """Find what many people share, and release it with user-level differential privacy."""


for mechanism in MECHANISMS:
    app.command(mechanism.command)(load(f"{mechanism.cli}:{mechanism.command}"))
app.add_typer(plan, name="plan")
for command in (together, ask, show, complete, export, audit, demo):
    app.command()(command)
app.add_typer(ledger, name="ledger")
