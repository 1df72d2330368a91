"""The commands of `voxpop series`, which releases items every night under one budget."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

import voxpop as vp
from voxpop.cli import options as given
from voxpop.cli.releasing import (
    account_of,
    guarantee_text,
    indented,
    plural,
    print_json,
    print_plan,
    reader,
    sample,
    say,
    stage,
    total_text,
)
from voxpop.errors import InputError
from voxpop.files.progress import note

if TYPE_CHECKING:
    from voxpop.mechanisms.series.series import Series

app = App(name="series", help="Release every night under one budget for the whole period.")
_SeriesFolder = Annotated[
    Path, Parameter(name="DIR", help="Folder of the series. It is private, and must never be copied or restored.")
]
KeyFile = Annotated[Path | None, Parameter(help="File with the 32-byte key that encrypts the state.")]


Nights = Annotated[int, Parameter(help="Number of nights that share the budget.", validator=given.COUNTED)]
_SpendingOption = Annotated[
    Literal["growing", "equal"],
    Parameter(help="Growing budgets release the most items by the end; equal budgets release more at first."),
]
_ItemsOption = Annotated[
    int | None, Parameter(help="Maximum number of items per user in all nights; 1,000 by default.")
]
_KnownOption = Annotated[
    str | None, Parameter(help="Public items that need fewer users, as in `voxpop items --known`; stored in the state.")
]


@app.command
def plan(
    *,
    nights: Nights,
    spending: _SpendingOption = "growing",
    max_items_per_user: _ItemsOption = None,
    known: _KnownOption = None,
    spend: given.SpendOptions = given.SpendArguments(),
    json: given.Json = False,
) -> Any:
    """Show the guarantee and the noise of a series, and the number of users that an item needs. Reads no data.

    Example: `voxpop series plan --nights 365 --epsilon 3 --delta 1e-6`
    """
    mechanism = vp.Items(max_items_per_user, known=known)
    return print_plan(mechanism.plan_series(spend.budget, nights, spending=spending), as_json=json)


@app.command
def init(
    folder: _SeriesFolder,
    /,
    *,
    nights: Nights,
    spending: _SpendingOption = "growing",
    max_items_per_user: _ItemsOption = None,
    known: _KnownOption = None,
    spend: given.SpendOptions = given.SpendArguments(),
    charge: given.ChargeOptions = given.ChargeArguments(),
    key_file: KeyFile = None,
    json: given.Json = False,
) -> None:
    """Charge a series once, and write its first state.

    Example: `voxpop series init state --nights 365 --epsilon 3 --delta 1e-6 --ledger team.ledger --dataset posts`
    """
    if charge.run_id is not None:
        raise InputError("--run-id does not apply, because a series is identified by its folder. Remove it.")
    account, key = account_of(charge, reported=False), _key(key_file)
    series = vp.Items(max_items_per_user, known=known).series(
        folder, spend.budget, nights=nights, spending=spending, ledger=account, seed=charge.seed, key=key
    )
    print_plan(series.plan, as_json=json)
    if not json:
        if not series.guarantee.private:
            say(guarantee_text(series.guarantee))
        _say_total(series)


@app.command
def run(
    folder: _SeriesFolder,
    source: given.Sources = None,
    /,
    *,
    night: Annotated[
        int | None,
        Parameter(help="Number of the night, from 1. Skipped nights count as nights without rows."),
    ] = None,
    output: Annotated[
        Path | None, Parameter(name=["--output", "-o"], help="Also save the items released so far to this folder.")
    ] = None,
    table: given.TableOptions = given.TableArguments(),
    run_options: given.RunOptions = given.RunArguments(),
    key_file: KeyFile = None,
    json: given.Json = False,
) -> None:
    """Add the rows of a night, and print the items that were released since the previous night.

    Example: `voxpop series run state 2026-11-25.parquet --user author --text body --night 30 -o words`
    """
    series, read = _opened_series(folder, key_file), reader(source, table, run_options)
    repeated = night is not None and night == series.night
    data = read()
    note("read")
    with stage("Releasing"):
        new = series.run(data, night)
    note("repeated" if repeated else "released", night=series.night)
    if output is not None:
        series.release.save(output, overwrite=True)
        note("saved", folder=str(output))
    if json:
        items = [list(gram) for gram in new.each_gram()]
        again = {"repeated": True} if repeated else {}
        print_json({"night": series.night, "total": new.total.to_dict(), "items": items, **again})
        return
    say(f"Night {series.night}: {len(new):,} new, {len(series.release):,} in all")
    if len(new):
        say(indented(", ".join(sample(new))))
    _say_total(series)
    if repeated:
        say("This night has already run. Its result is shown again, and nothing was added.")


@app.command
def show(folder: _SeriesFolder, /, *, key_file: KeyFile = None, json: given.Json = False) -> None:
    """Show the items released on each night, and the guarantee of all nights.

    Example: `voxpop series show state`
    """
    series = _opened_series(folder, key_file)
    plan, counts, guarantee = series.plan, series.counts, series.guarantee
    if json:
        from voxpop.reading.arrow import joined
        from voxpop.reading.keys import spelled

        *columns, nights = (joined(each) for each in series.released.columns)
        texts = zip(*(spelled(each, "item").to_pylist() for each in columns), strict=True)
        items: list[Any] = [
            {"item": list(item), "night": night} for item, night in zip(texts, nights.to_pylist(), strict=True)
        ]
        stated = {"guarantee": guarantee.to_dict(), "total": series.release.total.to_dict()}
        print_json({**stated, "nights": plan.mechanism.nights, "counts": counts, "items": items})
        return
    say(f"{len(counts)} of {plan.mechanism.nights} nights, {sum(counts):,} items released")
    say("\n".join(f"{night:>6}  {count:>8,}" for night, count in enumerate(counts, start=1) if count))
    say(guarantee_text(guarantee))
    _say_total(series)


@app.command
def delete(
    folder: _SeriesFolder,
    user: Annotated[str, Parameter(name="USER", help="The id of the user, in the form that it has in the rows.")],
    /,
    *,
    key_file: KeyFile = None,
) -> None:
    """Delete the rows of a user from the state. Names and noisy scores of items remain until the series ends.

    The id may be a whole number or a string. Write dates and other types in their printed form, such as 2026-11-22. If
    several columns identify a user, join their values with bars. Write -- before an id that begins with a hyphen.

    Example: `voxpop series delete state 4711`
    """
    series = _opened_series(folder, key_file)
    found = [each for each in map(series.remove, _ids(user)) if each is not None]
    if not found:
        raise InputError(
            "The state does not contain this user, so nothing was deleted. Give the id in the form that it has in the "
            "rows, and check the folder of the series."
        )
    items, nights = sum(each.items for each in found), sum(each.nights for each in found)
    counted = f"{plural(items, 'item')} from {plural(nights, 'night')}"
    say(f"Deleted {counted}. Later rows of this user are ignored.")


def _say_total(series: "Series") -> None:
    """Print the total of a series that was charged to a ledger."""
    if (total := series.release.total).charged:
        say(total_text(total))


def _ids(text: str) -> list[int | str]:
    """Return the ids that a text can represent.

    The ids are the string itself and, if the string is the usual spelling of a whole number, this number.
    """
    whole = re.fullmatch("0|-?[1-9][0-9]{0,19}", text) and -(2**63) <= int(text) < 2**64
    return [text, int(text)] if whole else [text]


def _opened_series(folder: Path, key_file: Path | None) -> "Series":
    from voxpop.mechanisms.series.series import Series

    return Series(folder, _key(key_file))


def _key(path: Path | None) -> bytes | None:
    try:
        return None if path is None else path.read_bytes()
    except OSError as error:
        raise InputError(f"--key-file {path} cannot be read: {error.strerror}. Give a file with 32 bytes.") from None
