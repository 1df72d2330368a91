"""`voxpop ledger`: open data sets, see what was spent; and how commands that release charge them."""

from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from voxpop.cli.options import Dataset, Delta, Epsilon, Json, budget_of
from voxpop.errors import InputError

if TYPE_CHECKING:
    from voxpop.ledger.account import LedgerAccount

commands = typer.Typer(no_args_is_help=True, help="Keep an account of what releases have spent.", rich_markup_mode=None)

File = Annotated[Path, typer.Argument(metavar="FILE", help="The ledger, a JSON file.", show_default=False)]


@commands.command()
def init(file: File, dataset: Dataset = None, epsilon: Epsilon = None, delta: Delta = None, json: Json = False) -> None:
    """Open a data set with the budget that all its releases may cost together.

    voxpop ledger init team.json --dataset posts --epsilon 8 --delta 1e-6
    """
    from voxpop.cli.report import json_line
    from voxpop.ledger.ledger import Ledger

    if dataset is None:
        raise InputError("--dataset is missing: give the data set a name, such as --dataset posts.")
    budget = budget_of(epsilon, delta)
    Ledger(file).open(dataset, budget)
    if json:
        typer.echo(json_line({"dataset": dataset, "budget": {"epsilon": budget.epsilon, "delta": budget.delta}}))
    else:
        typer.echo(f'"{dataset}" may spend ({budget.epsilon:g}, {budget.delta:g}) in all; kept in {file}')


@commands.command()
def show(file: File, dataset: Dataset = None, json: Json = False) -> None:
    """Show what has been spent on each data set, and how much is left."""
    from voxpop.cli.report import json_line
    from voxpop.ledger.ledger import Ledger

    ledger = Ledger(file)
    accounts = [ledger.account(name) for name in (ledger.names if dataset is None else [dataset])]
    described = [_described(each) for each in accounts]
    if json:
        typer.echo(json_line({"datasets": described}))
        return
    typer.echo("\n\n".join(_text(each) for each in described) or "No data set yet.")


def account_of(ledger: Path | None, dataset: str | None, seed: int | None, *, reported: bool) -> "LedgerAccount | None":
    """Return the account that a call names, or None where it names none.

    Args:
        ledger: the file.
        dataset: name of the data set.
        seed: of the release.
        reported: whether a report names the data set, so that it may be named without a ledger.

    Raises:
        InputError: where one of ledger and data set is missing, or a seed is given besides.
    """
    if ledger is None and (dataset is None or reported):
        return None
    if ledger is None:
        raise InputError("--dataset needs --ledger beside it: the data set of which ledger is charged?")
    if dataset is None:
        raise InputError("--ledger needs --dataset beside it: which data set of the ledger is charged?")
    if seed is not None:
        raise InputError(
            "--seed makes a release that is not private, so no ledger can hold it. Leave out one of the two."
        )
    from voxpop.ledger.ledger import Ledger

    return Ledger(ledger).account(dataset)


def run(plan: Any, corpus: Any, seed: int | None, account: "LedgerAccount | None") -> Any:
    """Run a plan, charged to an account where there is one."""
    return plan.release(corpus, seed) if account is None else account.release(plan, corpus)


def _described(account: "LedgerAccount") -> dict[str, Any]:
    """Return all there is to say, ready for JSON: where a cap is 0 and something was charged, its part is none."""
    budget, spent = account.budget, account.spent
    return {
        "dataset": account.name,
        "budget": {"epsilon": budget.epsilon, "delta": budget.delta},
        "spent": None if spent is None else {"epsilon": spent.epsilon, "delta": spent.delta},
        "used": {
            way: {cap: part if isfinite(part) else None for cap, part in parts.items()}
            for way, parts in account.used().items()
        },
        "entries": [entry.to_dict() for entry in account.entries],
    }


def _text(account: dict[str, Any]) -> str:
    from voxpop.ledger.caps import WAYS
    from voxpop.tables import table

    budget, spent = account["budget"], account["spent"]
    lines = [f'"{account["dataset"]}" may spend ({budget["epsilon"]:g}, {budget["delta"]:g})-DP in all']
    if spent is None:
        return f"{lines[0]}\n  nothing spent yet"
    rows = [["", "charged", "release", "epsilon", "delta", ""]]
    for entry in account["entries"]:
        promised = entry["guarantee"]
        note = "" if entry["finished"] else "did not come back; counts all the same"
        numbers = [f"{promised['epsilon']:g}", f"{promised['delta']:g}"]
        rows.append([str(entry["number"]), entry["charged"], entry["label"], *numbers, note])
    lines += table(rows)
    lines.append(
        f"  together ({spent['epsilon']:.4g}, {spent['delta']:.4g})-DP, if no budget was chosen by an earlier release"
    )
    fullest = {
        name: max(inf if part is None else part for part in parts.values()) for name, parts in account["used"].items()
    }
    name, part = min(fullest.items(), key=lambda pair: pair[1])
    if part > 1:
        lines.append("  nothing is left")
    else:
        lines.append(f"  {100 * part:.3g} % used ({WAYS[name]})")
    return "\n".join(lines)
