"""`voxpop together`: the items of several data sets about the same people, under one budget."""

import re
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

from voxpop.cli.options import (
    Charge,
    ChargeOptions,
    Output,
    Result,
    ResultOptions,
    Run,
    RunOptions,
    Spend,
    SpendOptions,
    Table,
)
from voxpop.cli.output import guarantee_text, listed, print_json, print_plan, saved, stated
from voxpop.cli.releasing import checked_metadata, reader, released
from voxpop.errors import InputError

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
        raise InputError(f"{file} is not valid TOML: {error}. {EXAMPLE}") from error
    if not tables:
        raise InputError(f"{file} contains no data set. {EXAMPLE}")
    return {name: _data_set(file, name, table) for name, table in tables.items()}


def _data_set(file: Path, name: str, table: Any) -> tuple[list[str], Table, dict[str, Any]]:
    if not NAME.fullmatch(name):
        raise InputError(f"{file}: the name {name!r} must consist of letters, digits, - and _.")
    if not isinstance(table, dict) or "source" not in table:
        raise InputError(f"{file}: the data set {name} must be a table with a source. {EXAMPLE}")
    if unknown := sorted(set(table) - {"source", *KEYS}):
        raise InputError(f"{file}: {name} has the unknown key {unknown[0]}. Known keys are {', '.join(KEYS)}.")
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
