"""`voxpop ledger`: create data sets with a budget, and show what was spent."""

from fractions import Fraction
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from voxpop.cli.options import Json, Spend, SpendOptions
from voxpop.cli.releasing import print_json, say
from voxpop.errors import InputError, on_one_line
from voxpop.privacy.budget import table
from voxpop.release.registry import MECHANISMS, load

if TYPE_CHECKING:
    from voxpop.ledger.ledger import LedgerAccount

app = App(name="ledger", help="Keep an account of the budget that releases have spent.")

File = Annotated[Path, Parameter(name="FILE", help="The ledger, a JSON file.")]
Planned = Literal["items", "ngrams", "hitters", "sequences", "profile"]
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
        say(f'"{account.name}" has a budget of ({budget.epsilon:g}, {budget.delta:g}) in {account.path}')


@app.command
def show(
    file: File,
    /,
    *,
    dataset: Dataset = None,
    mechanism: Annotated[
        Planned | None,
        Parameter(name="--for", help="Also show the largest epsilon that still fits for this kind of release."),
    ] = None,
    delta: Annotated[float | None, Parameter(help="Delta of the release that --for names.")] = None,
    json: Json = False,
) -> None:
    """Show the entries, the spent budget and the budget that is left for each data set.

    Example: `voxpop ledger show team.json --for items --delta 1e-8`
    """
    from voxpop.ledger.ledger import Ledger

    if mechanism is not None and mechanism != "sequences" and not delta:
        raise InputError(f"--delta is missing: --for {mechanism} requires it. Add one, such as --delta 1e-8.")
    ledger = Ledger(file)
    accounts = [ledger.account(name) for name in (ledger.names if dataset is None else [dataset])]
    described = [_described(each, mechanism, delta or 0.0) for each in accounts]
    if json:
        print_json({"datasets": described})
        return
    say("\n\n".join(map(_text, described)) or "The ledger contains no data set.")


def _described(account: "LedgerAccount", command: str | None, delta: float) -> dict[str, Any]:
    """Return an account for JSON. The used share is None if the budget is 0 and something was charged."""
    from voxpop.ledger.caps import accounts_of, as_written

    budget, entries, composed = account.budget, account.entries, account.spent
    plain = accounts_of(budget)[0]
    caps = {"epsilon": plain.epsilon, "delta": plain.chance}
    sums = {name: sum(as_written(getattr(each.guarantee, name)) for each in entries) for name in caps}
    return {
        "dataset": account.name,
        "budget": {"epsilon": budget.epsilon, "delta": budget.delta},
        "spent": {name: float(each) for name, each in sums.items()},
        # A first release may take the whole delta; later ones share a part of it.
        "left": {name: float(max(Fraction(0), caps[name] - sums[name])) for name in caps}
        if entries
        else {"epsilon": budget.epsilon, "delta": budget.delta},
        "composed": None if composed is None else {"epsilon": composed.epsilon, "delta": composed.delta},
        "used": {
            way: {cap: part if isfinite(part) else None for cap, part in parts.items()}
            for way, parts in account.used().items()
        },
        "entries": [entry.to_dict() for entry in entries],
        **({} if command is None else {"fits": _fitting(account, command, delta)}),
    }


def _fitting(account: "LedgerAccount", command: str, delta: float) -> dict[str, Any]:
    (place,) = (each.config for each in MECHANISMS if each.command == command)
    # Every alphabet has the same guarantee.
    mechanism = load(place)(**({"alphabet": ["a"]} if command == "sequences" else {}))
    return {"mechanism": command, "delta": delta, "epsilon": account.largest_epsilon(mechanism, delta)}


def _text(account: dict[str, Any]) -> str:
    budget, spent, left = account["budget"], account["spent"], account["left"]
    number = len(account["entries"])
    title = f'"{on_one_line(account["dataset"])}": budget ({budget["epsilon"]:g}, {budget["delta"]:g})'
    rows = [["entry", "charged", "label", "mechanism", "epsilon", "delta", "release", "state"]]
    for entry in account["entries"]:
        stated = entry["guarantee"]
        numbers = (f"{stated['epsilon']:g}", f"{stated['delta']:g}")
        state = "not finished, charged" if entry["state"] == "charged" else entry["state"]
        texts = (
            entry["label"] or "-",
            entry["mechanism"],
            *numbers,
            entry["release"].removeprefix("sha256:")[:8] or "-",
            state,
        )
        rows.append([on_one_line(str(text)) for text in (entry["number"], entry["charged"], *texts)])
    lines = [f"{title}, {'1 entry' if number == 1 else f'{number} entries'}", *(table(rows) if number else [])]
    for name in ("epsilon", "delta"):
        most = spent[name] + left[name]
        part = f" (a third of {budget[name]:g})" if name == "delta" and most < budget[name] else ""
        lines.append(f"  {name}: {spent[name]:.4g} of {most:.4g}{part} spent, {left[name]:.4g} left")
    gaussian = max(inf if part is None else part for part in account["used"].get("gaussian", {"": inf}).values())
    if number and gaussian < spent["epsilon"] / budget["epsilon"]:
        lines.append(f"  as Gaussian noise, which adds up more slowly: {100 * gaussian:.3g} % spent")
    if fits := account.get("fits"):
        most = f"at most epsilon {fits['epsilon']:g} fits" if fits["epsilon"] else "nothing fits"
        lines.append(f"  next release of {fits['mechanism']} at delta {fits['delta']:g}: {most}")
    return "\n".join(lines)
