"""`voxpop plan`: the numbers that would run, without any data."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from voxpop.cli.options import (
    Accounting,
    Budgets,
    Cap,
    Delta,
    Epsilon,
    Eta,
    Guide,
    Json,
    Noise,
    Pool,
    Pruning,
    Rounds,
    Values,
    budget_of,
    ngrams_of,
    set_union_of,
)
from voxpop.errors import InputError

if TYPE_CHECKING:
    from voxpop.ngrams.plan import NGramsPlan
    from voxpop.union.adaptive.plan import AdaptivePlan
    from voxpop.union.plan import UnionPlan

AnyAlpha = Annotated[
    float | None,
    typer.Option("--alpha", help="As for items (classic weightings) or ngrams.", show_default=False),
]
AnyLimit = Annotated[
    str | None, typer.Option("--limit", help="As for items or ngrams; 100 if left out.", show_default=False)
]
AnyWeighting = Annotated[
    str | None,
    typer.Option("--weighting", help="As for items (adaptive) or ngrams (l2-descent).", show_default=False),
]
Longest = Annotated[
    int | None,
    typer.Option("--max-length", help="Plan phrases of up to this many tokens, instead of items.", show_default=False),
]


def plan(
    epsilon: Epsilon = None,
    delta: Delta = None,
    max_length: Longest = None,
    limit: AnyLimit = None,
    weighting: AnyWeighting = None,
    noise: Noise = "gaussian",
    alpha: AnyAlpha = None,
    rounds: Rounds = 1,
    accounting: Accounting = "joint",
    pool: Pool = None,
    cap: Cap = None,
    eta: Eta = 0.01,
    guide: Guide = True,
    pruning: Pruning = "both",
    budgets: Budgets = "auto",
    values: Values = None,
    json: Json = False,
) -> None:
    """Show the numbers that would run; reads no data.

    How much noise, which threshold, and how many users an item or phrase needs to be released. The last five options
    belong to phrases, --noise, --rounds, --pool and --cap to items.

    voxpop plan --epsilon 4 --delta 1e-7 --limit 100

    voxpop plan --epsilon 4 --delta 1e-7 --max-length 9
    """
    from voxpop.cli.report import json_line, promised

    budget = budget_of(epsilon, delta)
    given = {"weighting": weighting, "alpha": alpha}
    shared: dict[str, Any] = {"accounting": accounting} | {name: one for name, one in given.items() if one is not None}
    if max_length is None:
        items = set_union_of(
            limit=None if limit is None else _whole(limit), noise=noise, rounds=rounds, pool=pool, cap=cap, **shared
        )
        planned: UnionPlan | AdaptivePlan | NGramsPlan = items.plan(budget)
    else:
        shape = {"max_length": max_length, "eta": eta, "guide": guide, "pruning": pruning}
        phrases = ngrams_of(limit or "100", budgets, values, **shape, **shared)
        planned = phrases.plan(budget)
    if json:
        typer.echo(json_line({**promised(planned.guarantee), "plan": planned.to_dict()}))
    else:
        typer.echo(str(planned))


def _whole(limit: str) -> int:
    try:
        return int(limit)
    except ValueError:
        raise InputError(f"--limit must be a whole number, got {limit}; lists go with --max-length.") from None
