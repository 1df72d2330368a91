"""The commands. Heavy libraries are imported when a command runs.

`voxpop together` releases the items of several data sets about the same people under one budget.
"""

import re
import tomllib
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import App, Parameter

from voxpop.cli.audit import audit
from voxpop.cli.demo import demo
from voxpop.cli.ledger import app as ledger
from voxpop.cli.options import (
    COUNTED,
    MECHANISM_GROUP,
    Charge,
    ChargeOptions,
    Choice,
    Json,
    Output,
    Result,
    ResultOptions,
    Run,
    RunOptions,
    Sources,
    Spend,
    SpendOptions,
    Table,
    TableOptions,
    numbers_of,
    options_of,
    shown_default,
)
from voxpop.cli.releasing import (
    checked_metadata,
    guarantee_text,
    listed,
    print_json,
    print_plan,
    reader,
    release_and_report,
    released,
    saved,
    stated,
)
from voxpop.cli.saved import ask, complete, count, export, plan_count, plan_top, show, top
from voxpop.cli.sequences import alphabet_of, check_delta, release_model
from voxpop.errors import InputError
from voxpop.reading.choices import WeightingName
from voxpop.release.registry import MECHANISMS, load

if TYPE_CHECKING:
    from voxpop.release.release import Release

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
"""A name is also the name of a folder."""
EXAMPLE: Final = 'Example: [words] with source = "posts.parquet", user = "author" and text = "body" below it.'
SEVERAL: Final = ("user", "items", "types")
EXECUTION: Final = ("memory", "work_folder")
KEYS: Final = (*(each.name for each in fields(Table)), *EXECUTION)


def together(
    file: Annotated[Path, Parameter(name="FILE", help="TOML file with a table for each data set.")],
    /,
    *,
    output: Output,
    limit: Annotated[int | None, Parameter(help="Most items of one user in a round.")] = None,
    min_users: Annotated[int | None, Parameter(help="Fewest users of a released item.")] = None,
    plan: Annotated[bool, Parameter(help="Show the plan and stop: reads and spends nothing.")] = False,
    spend: SpendOptions = Spend(),
    charge: ChargeOptions = Charge(),
    result: ResultOptions = Result(),
    run: RunOptions = Run(),
) -> None:
    """Release the items of several data sets about the same people, under one budget.

    FILE has a table for each data set: its name, a source, a column of users and one of text, tokens, items or
    sequence. Each result is saved to a folder of its name in the output folder. The guarantee covers all data of one
    user.

    Example: `voxpop together people.toml --epsilon 2 --delta 1e-8 -o found`
    """
    import voxpop as vp
    from voxpop.release.saving import check_target

    run.check()
    metadata = checked_metadata(result, charge)
    sources = data_sets_of(file)
    made = vp.SetUnion(limit=limit, min_users=min_users).plan_each(list(sources), spend.budget)
    if plan:
        print_plan(made, as_json=result.json)
        return
    folders = {name: output / name for name in sources}

    def check() -> None:
        for folder in folders.values():
            check_target(folder, overwrite=result.overwrite)

    readers = {name: reader(source, table, replace(run, **how)) for name, (source, table, how) in sources.items()}

    def read() -> dict[str, Any]:
        return {name: each() for name, each in readers.items()}

    _, releases = released(check, lambda: made, read, run, charge)
    for name, each in releases.items():
        title = f"{metadata['title']}: {name}" if "title" in metadata else name
        releases[name] = each.with_metadata(**{**metadata, "title": title})
        releases[name].save(folders[name], overwrite=result.overwrite)
    _print(releases, folders, as_json=result.json)


def data_sets_of(file: Path) -> dict[str, tuple[list[str], Table, dict[str, Any]]]:
    """Return source, table and execution options of each data set of a file, by name.

    Sources are relative to the working folder, as in other commands.

    Raises:
        InputError: if the file is missing or has other content.
    """
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}. {EXAMPLE}") from error
    except ValueError as error:
        raise InputError(f"{file} is not valid TOML: {error}. Correct the file. {EXAMPLE}") from error
    if not tables:
        raise InputError(f"{file} contains no data set. {EXAMPLE}")
    return {name: _data_set(file, name, table) for name, table in tables.items()}


def _data_set(file: Path, name: str, table: Any) -> tuple[list[str], Table, dict[str, Any]]:
    if not NAME.fullmatch(name):
        raise InputError(f"{file}: the name {name!r} must consist of letters, digits, - and _.")
    if not isinstance(table, dict) or "source" not in table:
        raise InputError(f"{file}: the data set {name} must be a table with a source. {EXAMPLE}")
    if unknown := sorted(set(table) - {"source", *KEYS}):
        raise InputError(f"{file}: {name} has the unknown key {unknown[0]}. Use only {', '.join(KEYS)}.")
    source = table["source"] if isinstance(table["source"], list) else [table["source"]]
    if not source or not all(isinstance(each, str) for each in source):
        raise InputError(f"{file}: the source of {name} must be a path, or a list of paths.")
    given = {key: _given(key, value) for key, value in table.items() if key != "source"}
    execution: dict[str, Any] = {key: given[key] for key in EXECUTION if key in given}
    if "work_folder" in execution:
        execution["work_folder"] = Path(execution["work_folder"])
    return source, Table(**{key: value for key, value in given.items() if key not in EXECUTION}), execution


def _given(key: str, value: Any) -> Any:
    if key in SEVERAL:
        return value if isinstance(value, list) else [value]
    return value if isinstance(value, bool) else str(value)


def _print(releases: "dict[str, Release]", folders: dict[str, Path], *, as_json: bool) -> None:
    first = next(iter(releases.values()))
    if as_json:
        found = {
            name: {"released": len(each), "folder": str(folders[name].resolve())} for name, each in releases.items()
        }
        print_json({**stated(first.guarantee), "plan": first.plan.to_dict(), "data_sets": found})
        return
    for name, each in releases.items():
        print(f"{name}: {listed(each)}\n")
    print(guarantee_text(first.guarantee).lstrip("\n"))
    print("  It covers all data sets together: all data of one user in any of them.")
    print(saved(next(iter(folders.values())).parent.resolve(), first.about, "report.html of each folder"))


def _weighting(name: str) -> Any:
    """Return the weighting of a name; "adaptive" is itself."""
    from voxpop.mechanisms.weightings.builtin import WEIGHTINGS

    return WEIGHTINGS.get(name, name)


CHOICES = {
    "items": {
        "weighting": Choice(
            WeightingName,
            _weighting,
            'How users share their weight: in "adaptive" rounds, or by a classic weighting. At limit 1 every classic '
            "weighting runs optimal selection.",
        )
    },
    "ngrams": {
        "values": Choice(
            str | None,
            lambda text: None if text is None else numbers_of("--values", text, float),
            "The worth of a released phrase, one number for each length, separated by commas. Lengths that are worth "
            "more get more of the budget. By default all lengths count the same. Choose the numbers without looking at "
            "the data.",
        )
    },
    "hitters": {"unit": Choice(str, lambda text: int(text) if text.isdecimal() else text)},
    "sequences": {
        "alphabet": Choice(
            str | None,
            alphabet_of,
            "All symbols that may occur, separated by commas, or a UTF-8 file with one symbol per line, or the folder "
            "of a release of single items. The alphabet is public; other symbols are removed from every sequence. "
            '"find" finds the alphabet with a quarter of epsilon and all of delta.',
        )
    },
}
"""Fields of mechanisms whose values need a conversion on the command line."""
EXAMPLES = {
    "items": "voxpop items posts.parquet --user author --text body --epsilon 4 --delta 1e-7 -o words",
    "ngrams": "voxpop ngrams posts.parquet --user author --text body --epsilon 4 --delta 1e-7 -o phrases",
    "hitters": "voxpop hitters posts.parquet --user author --text body --epsilon 1 --delta 1e-8 -o words",
    "sequences": "voxpop sequences visits.parquet --user user --sequence pages --epsilon 1 --alphabet home,news,sport "
    "--synthesize 1000 -o model",
}


def _version() -> str:
    import voxpop

    return f"voxpop {voxpop.__version__}"


app = App(
    name="voxpop",
    help="Find the items, phrases and sequences that many users share, and release them with user-level differential "
    "privacy.",
    version=_version,
    version_flags=["--version"],
    help_flags=["--help", "-h"],
    result_action="return_value",
    suppress_keyboard_interrupt=False,
    default_parameter=Parameter(negative=(), show_default=shown_default),
)
plans = App(
    name="plan",
    help="Show the noise, the thresholds and the number of users that an item needs. Reads no private data.",
)


def _release_command(options_type: Any) -> Callable[..., None]:
    def command(
        source: Sources,
        /,
        *,
        output: Output,
        table: TableOptions = Table(),
        options: Annotated[options_type, MECHANISM_GROUP] = options_type(),
        spend: SpendOptions = Spend(),
        charge: ChargeOptions = Charge(),
        result: ResultOptions = Result(),
        run: RunOptions = Run(),
    ) -> None:
        budget = spend.budget
        release_and_report(lambda: options.configured.plan(budget), source, table, charge, run, result, output)

    return command


def _sequences_command(options_type: Any) -> Callable[..., None]:
    def command(
        source: Sources,
        /,
        *,
        output: Output,
        synthesize: Annotated[
            int, Parameter(help="Also save this number of synthetic sequences.", validator=COUNTED)
        ] = 0,
        table: TableOptions = Table(),
        options: Annotated[options_type, MECHANISM_GROUP] = options_type(),
        spend: SpendOptions = Spend(),
        charge: ChargeOptions = Charge(),
        result: ResultOptions = Result(),
        run: RunOptions = Run(),
    ) -> None:
        plan = _sequences_plan(options, spend)
        alphabet = alphabet_of(options.alphabet)
        release_model(plan, source, table, charge, run, result, output, alphabet, synthesize)

    return command


def _sequences_plan(options: Any, spend: Spend) -> Callable[[], Any]:
    budget = spend.pure
    check_delta(options.alphabet, budget.delta)
    return lambda: options.configured.plan(budget)


def _plan_command(options_type: Any, plan_of: Callable[[Any, Spend], Callable[[], Any]]) -> Callable[..., None]:
    def command(
        *,
        options: Annotated[options_type, MECHANISM_GROUP] = options_type(),
        spend: SpendOptions = Spend(),
        json: Json = False,
    ) -> None:
        print_plan(plan_of(options, spend)(), as_json=json)

    return command


def _plan(options: Any, spend: Spend) -> Callable[[], Any]:
    budget = spend.budget
    return lambda: options.configured.plan(budget)


for each in MECHANISMS:
    if each.command not in CHOICES:
        continue
    configuration = load(each.config)
    options_type = options_of(configuration, CHOICES[each.command])
    of_sequences = each.command == "sequences"
    summary, example = configuration.__doc__.splitlines()[0], EXAMPLES[each.command]
    app.command(
        (_sequences_command if of_sequences else _release_command)(options_type),
        name=each.command,
        help=f"{summary}\n\nExample: `{example}`",
    )
    plans.command(
        _plan_command(options_type, _sequences_plan if of_sequences else _plan),
        name=each.command,
        help=f"Show the plan of `voxpop {each.command}`: its guarantee, noise and thresholds. Reads no data.",
    )
for each_command in (together, count, top, ask, show, complete, export, audit, demo):
    app.command(each_command)
plans.command(plan_count, name="count")
plans.command(plan_top, name="top")
app.command(plans)
app.command(ledger)
