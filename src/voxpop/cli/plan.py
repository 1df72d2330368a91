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
    Focus,
    Guide,
    Json,
    Limits,
    Noise,
    Pruning,
    Rounds,
    Values,
    WeightingName,
    budget_of,
    ngrams_of,
    set_union_of,
)
from voxpop.errors import InputError

if TYPE_CHECKING:
    from voxpop.ngrams.plan import NGramsPlan
    from voxpop.union.focus.plan import FocusPlan
    from voxpop.union.plan import UnionPlan

AnyAlpha = Annotated[
    float | None,
    typer.Option("--alpha", help="As for items (3 if left out) or ngrams (5 if left out).", show_default=False),
]
Longest = Annotated[
    int | None,
    typer.Option("--max-length", help="Plan phrases of up to this many tokens, instead of items.", show_default=False),
]


def plan(
    epsilon: Epsilon = None,
    delta: Delta = None,
    max_length: Longest = None,
    limit: Limits = "100",
    weighting: WeightingName = "l2-descent",
    noise: Noise = "gaussian",
    alpha: AnyAlpha = None,
    rounds: Rounds = 1,
    accounting: Accounting = "joint",
    focus: Focus = False,
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
    belong to phrases, --noise, --rounds and --cap to items.

    voxpop plan --epsilon 4 --delta 1e-7 --limit 100

    voxpop plan --epsilon 4 --delta 1e-7 --max-length 9
    """
    from voxpop.cli.report import json_line, promised

    budget = budget_of(epsilon, delta)
    shared: dict[str, Any] = {"weighting": weighting, "accounting": accounting}
    if alpha is not None:
        shared["alpha"] = alpha
    if max_length is None:
        items = set_union_of(limit=_whole(limit), noise=noise, rounds=rounds, focus=focus, cap=cap, **shared)
        planned: UnionPlan | FocusPlan | NGramsPlan = items.plan(budget)
    else:
        shape = {"max_length": max_length, "eta": eta, "guide": guide, "pruning": pruning}
        phrases = ngrams_of(limit, budgets, values, **shape, **shared)
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
