"""Several data sets of one call: a TOML file with a table for each."""

import re
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from voxpop.cli.bundles import Columns, Place, Where
from voxpop.errors import InputError

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
"""A name is that of a folder, too."""
EXAMPLE: Final = '[words] with source = "posts.parquet", user = "author" and text = "body" below it'
WHERE: Final = tuple(each.name for each in fields(Where))
COLUMNS: Final = tuple(each.name for each in fields(Columns))


@dataclass(frozen=True)
class DataSet:
    """What a table of the file says: what is read, and which columns."""

    where: Where
    columns: Columns


def data_sets_of(file: Path) -> dict[str, DataSet]:
    """Return the data sets of a file by name, in its order.

    Sources are taken from the folder that the command runs in, as those of other commands.

    Raises:
        InputError: if there is no such file, or it says something else.
    """
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}. Write {EXAMPLE}.") from error
    except ValueError as error:
        raise InputError(f"{file} is no TOML: {error}. Write {EXAMPLE}.") from error
    if not tables:
        raise InputError(f"{file} names no data set. Write {EXAMPLE}.")
    return {name: _data_set(file, name, table) for name, table in tables.items()}


def read_all(data_sets: dict[str, DataSet], place: Place) -> dict[str, Any]:
    """Return the corpus of each data set by name; a column that no call names is missed before anything is read."""
    from voxpop.cli.releasing import ready_to_read

    ready = {name: ready_to_read(each.where, each.columns, place) for name, each in data_sets.items()}
    return {name: read() for name, read in ready.items()}


def _data_set(file: Path, name: str, table: Any) -> DataSet:
    """Return what one table says."""
    if not NAME.fullmatch(name):
        raise InputError(f"{file}: a data set is named by letters, digits, - and _, for a folder; got {name!r}.")
    if not isinstance(table, dict) or "source" not in table:
        raise InputError(f"{file}: the data set {name} needs a table with a source. Write {EXAMPLE}.")
    if unknown := sorted(set(table) - {*WHERE, *COLUMNS}):
        raise InputError(f"{file}: {name} has {unknown[0]}, which is none of {', '.join((*WHERE, *COLUMNS))}.")
    source = table["source"] if isinstance(table["source"], list) else [table["source"]]
    given = {key: value if isinstance(value, str) else str(value) for key, value in table.items() if key != "source"}
    if not source or not all(isinstance(each, str) for each in source):
        raise InputError(f"{file}: the source of {name} must be a path, or a list of paths.")
    if "work_folder" in given:
        given["work_folder"] = Path(given["work_folder"])  # type: ignore[assignment]
    return DataSet(
        Where(source, **{key: value for key, value in given.items() if key in WHERE}),  # type: ignore[arg-type]
        Columns(**{key: value for key, value in given.items() if key in COLUMNS}),
    )
