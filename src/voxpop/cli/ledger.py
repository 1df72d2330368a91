"""The commands of `voxpop ledger`, which create data sets with a budget and show the spent budget."""

from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

import voxpop as vp
from voxpop.cli.options import Json, SpendArguments, SpendOptions
from voxpop.cli.releasing import print_json, say
from voxpop.errors import InputError, on_one_line
from voxpop.privacy.budget import table
from voxpop.release.registry import MECHANISMS, load_object

if TYPE_CHECKING:
    from voxpop.ledger.ledger import LedgerAccount

app = App(name="ledger", help="Keep an account of the budget that releases have spent.")

_LedgerFile = Annotated[Path, Parameter(name="FILE", help="The file of the ledger.")]
_USUAL_SETTINGS: dict[str, dict[str, Any]] = {
    # The alphabet and the keys are arbitrary, because the guarantee does not depend on them. `repeated` is set because
    # a reserve pays for repeated releases.
    "sequences": {"alphabet": ["a"]},
    "keys": {"columns": {"key": "string"}, "joint": [["key"]], "repeated": True},
}
PlannedCommand = Literal["items", "ngrams", "heavy-hitters", "sequences", "profile", "keys"]
Dataset = Annotated[str | None, Parameter(help="Name of the data set.")]


@app.command
def init(
    file: _LedgerFile, /, *, dataset: Dataset = None, spend: SpendOptions = SpendArguments(), json: Json = False
) -> None:
    """Register a data set with one budget for all its releases. Creates the ledger if it does not exist.

    The command fails if the data set already exists. The command also fails if the file existed before and is now
    missing. In this second case, restore the newest copy of the file.

    Example: `voxpop ledger init team.ledger --dataset posts --epsilon 8 --delta 1e-6`
    """
    if dataset is None:
        raise InputError("--dataset is missing. Name the data set, such as --dataset posts.")
    budget = spend.budget
    account = vp.Ledger(file).open(dataset, budget, create=True)
    if json:
        print_json({"dataset": account.name, "budget": {"epsilon": budget.epsilon, "delta": budget.delta}})
    else:
        say(f'"{account.name}" has a budget of ({budget.epsilon:g}, {budget.delta:g}) in {account.path}')


@app.command
def show(
    file: _LedgerFile,
    /,
    *,
    dataset: Dataset = None,
    mechanism: Annotated[
        PlannedCommand | None,
        Parameter(name="--for", help="Also show the largest epsilon that still fits for this kind of release."),
    ] = None,
    delta: Annotated[float | None, Parameter(help="Delta of the release that --for names.")] = None,
    json: Json = False,
) -> None:
    """Show the entries, the spent budget and the remaining budget of each data set.

    Example: `voxpop ledger show team.ledger --for items --delta 1e-8`
    """
    if mechanism is not None and mechanism != "sequences" and not delta:
        raise InputError(f"--delta is missing, and --for {mechanism} requires it. Add one, such as --delta 1e-8.")
    ledger = vp.Ledger(file)
    accounts = [ledger.account(name) for name in (ledger.names if dataset is None else [dataset])]
    described = [_described(each, mechanism, delta or 0.0) for each in accounts]
    if json:
        print_json({"datasets": described})
        return
    reasons = ["" if (total := each.spent) is None else total.reason for each in accounts]
    say("\n\n".join(map(_account_text, described, reasons)) or "The ledger contains no data set.")


@app.command
def reserve(
    file: _LedgerFile,
    /,
    *,
    mechanism: Annotated[PlannedCommand, Parameter(name="--for", help="Kind of the releases.")],
    times: Annotated[int, Parameter(help="Number of releases, such as 52 for a weekly job.")],
    dataset: Dataset = None,
    label: Annotated[str, Parameter(help="Label of the reserve.")] = "",
    spend: SpendOptions = SpendArguments(),
    json: Json = False,
) -> None:
    """Charge several identical releases in advance, with the default settings of their command.

    The reserve pays for later releases of this kind with the same epsilon and delta. If the reserve is the first entry
    of a data set, the budget covers more identical releases than with individual charges.

    Example: `voxpop ledger reserve team.ledger --dataset posts --for items --times 52 --epsilon 0.5 --delta 1e-8`
    """
    ledger = vp.Ledger(file)
    if dataset is None and len(ledger.names) != 1:
        raise InputError("--dataset is missing. Name the data set, such as --dataset posts.")
    account = ledger.account(dataset or ledger.names[0])
    entry = account.reserve(_usual(mechanism).plan(spend.budget), times, label)
    if json:
        print_json({"dataset": account.name, "entry": entry.to_dict()})
    else:
        print(f"{entry} reserves {times:,} releases of {entry.mechanism} with {entry.guarantee}")


def _usual(command: str) -> Any:
    """Return the mechanism of a command with its default settings."""
    (place,) = (each.config for each in MECHANISMS if each.command == command)
    return load_object(place)(**_USUAL_SETTINGS.get(command, {}))


def _described(account: "LedgerAccount", command: str | None, delta: float) -> dict[str, Any]:
    """Return an account for JSON.

    The used part of a cap is None if the cap is 0 and a release was charged against this cap.
    """
    budget, total = account.budget, account.spent
    return {
        "dataset": account.name,
        "budget": {"epsilon": budget.epsilon, "delta": budget.delta},
        "total": None if total is None else total.to_dict(),
        "used": {
            corner: {cap: part if isfinite(part) else None for cap, part in parts.items()}
            for corner, parts in account.used().items()
        },
        "entries": [entry.to_dict() for entry in account.entries],
        **({} if command is None else {"fits": _fitting(account, command, delta)}),
    }


def _fitting(account: "LedgerAccount", command: str, delta: float) -> dict[str, Any]:
    return {"mechanism": command, "delta": delta, "epsilon": account.largest_epsilon(_usual(command), delta)}


def _account_text(account: dict[str, Any], reason: str) -> str:
    budget, entries = account["budget"], account["entries"]
    title = f'"{on_one_line(account["dataset"])}": budget ({budget["epsilon"]:g}, {budget["delta"]:g})'
    rows = [["entry", "charged", "label", "mechanism", "epsilon", "delta", "release", "state"]]
    for entry in entries:
        stated, reserve = entry["guarantee"], entry["reserve"]
        state = "not finished, charged" if entry["state"] == "charged" else entry["state"]
        if entry["mechanism"] == "series" and entry["state"] == "charged":
            state = "charged for all nights"
        if entry["state"] == "reserved":
            used = sum(each["reserve"] == entry["number"] for each in entries)
            state = f"reserve: {used} of {entry['times']} used"
        texts = (
            entry["label"] or "-",
            entry["mechanism"],
            f"{stated['epsilon']:g}",
            f"{stated['delta']:g}",
            entry["release"].rpartition(":")[2][:8] or "-",
            f"{state}, paid by entry {reserve}" if reserve else state,
        )
        rows.append([on_one_line(str(text)) for text in (entry["number"], entry["charged"], *texts)])
    number = "1 entry" if len(entries) == 1 else f"{len(entries)} entries"
    lines = [f"{title}, {number}", *(table(rows) if entries else [])]
    if total := account["total"]:
        adaptive, fixed = (f"({total[name]['epsilon']:g}, {total[name]['delta']:g})" for name in ("adaptive", "fixed"))
        lines.append(
            f"  total: {adaptive}, the budget, which is valid even if each release was chosen after earlier results"
        )
        lines.append(f"  if all budgets were fixed in advance: {fixed}")
        lines += [f"    {reason}"] if reason else []
        parts = (
            (name, max(inf if part is None else part for part in used.values()))
            for name, used in account["used"].items()
        )
        used = ", ".join(f"{name} {100 * part:.3g} %" if part <= 1 else f"{name} full" for name, part in parts)
        lines.append(f"  budget used, by three methods of composition: {used}")
    if fits := account.get("fits"):
        most = f"at most epsilon {fits['epsilon']:g} fits" if fits["epsilon"] else "nothing fits"
        # A release of keys is planned as one of many releases. A single release may need more of the budget.
        alone = " with --repeated" if fits["mechanism"] == "keys" else ""
        lines.append(f"  next release of {fits['mechanism']}{alone} at delta {fits['delta']:g}: {most}")
    return "\n".join(lines)
