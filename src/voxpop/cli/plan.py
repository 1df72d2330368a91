"""`voxpop plan`: the numbers that would run, without any data."""

import typer

from voxpop.cli.options import (
    Accounting,
    Alpha,
    Delta,
    Epsilon,
    Json,
    Limit,
    Noise,
    Rounds,
    WeightingName,
    budget_of,
    set_union_of,
)


def plan(
    epsilon: Epsilon = None,
    delta: Delta = None,
    limit: Limit = 100,
    weighting: WeightingName = "l2-descent",
    noise: Noise = "gaussian",
    alpha: Alpha = 3.0,
    rounds: Rounds = 1,
    accounting: Accounting = "joint",
    json: Json = False,
) -> None:
    """Show the numbers that would run; reads no data.

    How much noise, which threshold, and how many users an item needs to be released.

    voxpop plan --epsilon 4 --delta 1e-7 --limit 100
    """
    from voxpop.cli.report import json_line, promised

    budget = budget_of(epsilon, delta)
    planned = set_union_of(
        limit=limit, weighting=weighting, noise=noise, alpha=alpha, rounds=rounds, accounting=accounting
    ).plan(budget)
    if json:
        typer.echo(json_line({**promised(planned.guarantee), "plan": planned.to_dict()}))
    else:
        typer.echo(str(planned))
