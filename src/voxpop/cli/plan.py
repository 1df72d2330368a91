"""`voxpop plan`: the numbers that would run, without any data; a command for each mechanism."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import typer

from voxpop.cli.bundles import bundled
from voxpop.cli.options import Json
from voxpop.mechanisms import MECHANISMS, Mechanism

commands = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Show the numbers that would run; reads no data. How much noise, which threshold, and how many users an item "
    "or phrase needs to be released.",
)


def plan_command(mechanism: Mechanism) -> Callable[..., None]:
    """Return the command that plans a mechanism: its own options, and what may be spent."""
    home = import_module(mechanism.cli)

    def plan(options: Any, spend: Any, json: Json = False) -> None:
        from voxpop.cli.report import json_line, promised

        planned = options.planned(spend.budget)
        if json:
            typer.echo(json_line({**promised(planned.guarantee), "plan": planned.to_dict()}))
        else:
            typer.echo(str(planned))

    plan.__annotations__ |= {"options": home.Options, "spend": home.Spend}
    plan.__doc__ = f"Plan `voxpop {mechanism.command}`: what its release would guarantee, and how; reads no data."
    return bundled(plan)


for _each in MECHANISMS:
    commands.command(_each.command)(plan_command(_each))
