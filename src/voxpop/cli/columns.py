"""Which columns a call names, and how their text is cut."""

import re
from typing import Any

from voxpop.errors import ColumnError, InputError

REGEX = "regex:"


def chosen_columns(source: list[str], user: str | None, **contents: str | None) -> dict[str, Any]:
    """Return the column of users and the one column of what they hold, by the names that `read` gives them.

    Raises:
        InputError: if either is missing, naming the columns that exist.
    """
    if user is None:
        raise _missing("--user is missing: name the column that says whose a row is.", source)
    given = {kind: name for kind, name in contents.items() if name is not None}
    options = ", ".join(f"--{kind}" for kind in contents)
    if not given:
        raise _missing(f"what users hold is missing: name its column by one of {options}.", source)
    if len(given) > 1:
        raise InputError(f"give only one of {options}; got {' and '.join(f'--{kind}' for kind in given)}.")
    return {"user": user, **given}


def tokenizer_of(name: str) -> Any:
    """Return what `read` takes as its tokenizer: a name, or a compiled expression for `regex:PATTERN`.

    Raises:
        InputError: if the expression is not one.
    """
    if not name.startswith(REGEX):
        return name
    try:
        return re.compile(name.removeprefix(REGEX))
    except re.error as error:
        raise InputError(f"--tokenizer {name} is not a regular expression: {error}.") from error


def _missing(wish: str, source: list[str]) -> InputError:
    """Ask the source for a column that cannot be there: its refusal names those that are."""
    from voxpop.corpus.reading.sources import open_source

    try:
        next(iter(open_source(source, [""], 1)), None)
    except ColumnError as error:
        return InputError(f"{wish} {error}")
    return InputError(wish)
