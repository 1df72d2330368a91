"""`voxpop ledger`: create data sets with a budget, and show what was spent."""

from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from voxpop.cli.options import Json, Spend, SpendOptions
from voxpop.cli.releasing import plural, print_json
from voxpop.errors import InputError

if TYPE_CHECKING:
    from voxpop.ledger.ledger import LedgerAccount

app = App(name="ledger", help="Keep an account of the budget that releases have spent.")

File = Annotated[Path, Parameter(name="FILE", help="The ledger, a JSON file.")]
Dataset = Annotated[str | None, Parameter(help="Name of the data set.")]


@app.command
def init(file: File, /, *, dataset: Dataset = None, spend: SpendOptions = Spend(), json: Json = False) -> None:
    """Create a data set with the budget of all its releases together, and the file if it does not exist.

    An existing data set is refused. A file that existed and is missing is refused too: restore its newest copy.

    Example: `voxpop ledger init team.json --dataset posts --epsilon 8 --delta 1e-6`
    """
    from voxpop.ledger.ledger import Ledger

    if dataset is None:
        raise InputError("--dataset is missing: name the data set, such as --dataset posts.")
    budget = spend.budget
    account = Ledger(file).open(dataset, budget, create=True)
    if json:
        print_json({"dataset": account.name, "budget": {"epsilon": budget.epsilon, "delta": budget.delta}})
    else:
        print(f'"{account.name}" has a budget of ({budget.epsilon:g}, {budget.delta:g}) in {account.path}')


@app.command
def show(file: File, /, *, dataset: Dataset = None, json: Json = False) -> None:
    """Show the entries and the spent budget of each data set.

    Example: `voxpop ledger show team.json`
    """
    from voxpop.ledger.ledger import Ledger

    ledger = Ledger(file)
    accounts = [ledger.account(name) for name in (ledger.names if dataset is None else [dataset])]
    described = [_described(each) for each in accounts]
    if json:
        print_json({"datasets": described})
        return
    print("\n\n".join(_text(each) for each in described) or "The ledger contains no data set.")


def _described(account: "LedgerAccount") -> dict[str, Any]:
    """Return an account for JSON. The used share is None if the budget is 0 and something was charged."""
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
    from voxpop.ledger.ledger import WAYS
    from voxpop.privacy.budget import table

    budget, spent = account["budget"], account["spent"]
    title = f'"{account["dataset"]}": budget ({budget["epsilon"]:g}, {budget["delta"]:g})'
    if spent is None:
        return f"{title}, nothing spent"
    rows = [["entry", "charged", "release", "epsilon", "delta", "state"]]
    for entry in account["entries"]:
        stated = entry["guarantee"]
        state = "finished" if entry["finished"] else "not finished, charged"
        numbers = (f"{stated['epsilon']:g}", f"{stated['delta']:g}")
        rows.append([str(entry["number"]), entry["charged"], entry["label"], *numbers, state])
    lines = "\n".join(table(rows))
    # None means that the budget is 0 and something was charged: nothing is left.
    fullest = {
        name: max(inf if part is None else part for part in parts.values()) for name, parts in account["used"].items()
    }
    name, part = min(fullest.items(), key=lambda pair: pair[1])
    used = "nothing is left" if part > 1 else f"{100 * part:.3g} % used ({WAYS[name]})"
    entries = (
        plural(len(account["entries"]), "entry")
        if len(account["entries"]) == 1
        else f"{len(account['entries'])} entries"
    )
    return (
        f"{title}, {entries}\n{lines}\n"
        f"  together ({spent['epsilon']:.4g}, {spent['delta']:.4g}) if no budget depended on an earlier release; {used}"
    )
