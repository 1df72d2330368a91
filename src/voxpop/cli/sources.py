"""The kinds of sources on the command line, recognised by their names and columns."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from voxpop.errors import ColumnError, InputError, VoxpopError

QUERY, DATABASE_FILES = (
    re.compile(r"\s*(select|with)\s", re.IGNORECASE),
    (".db", ".db3", ".s3db", ".sqlite", ".sqlite3", ".duckdb"),
)

CONTENTS = ("text", "tokens", "items", "sequence")
"""The options that name the content column."""


def check_path(path: str) -> None:
    """Raise an error if a file argument is a query or a database.

    Raises:
        InputError: If the argument is a query or a database. The message names the correct options but not the address,
            which may contain a password.
    """
    from voxpop.reading.databases import DATABASE, format_of

    if DATABASE.match(path):
        raise InputError("The source is the address of a database. Give it as --database, and the query as --sql.")
    if QUERY.match(path):
        raise InputError("The source is a query. Give it as --sql, and the address of the database as --database.")
    if path.lower().endswith(DATABASE_FILES):
        kind = format_of(Path(path)) or ("duckdb" if path.lower().endswith(".duckdb") else "sqlite")
        raise InputError(
            f'{path} is a database file. Give --database {kind}:///{path} and --sql "select ... from ...".'
        )


def is_event_log(source: Any, *, cases: bool) -> bool:
    """Return whether an event log has columns with standard names, which `voxpop.read` finds without arguments."""
    from voxpop.engine.read import schema_before_reading
    from voxpop.reading.event_logs import standard_columns

    try:
        return bool(standard_columns(schema_before_reading(source, None, {}) or (), cases=cases))
    except VoxpopError:
        return False


def missing_column(message: str, source: Any) -> InputError:
    """Return an error that also lists the columns of the source."""
    found = columns_of(source)
    return InputError(f"{message} {found}" if found else message)


def columns_of(source: Any) -> str:
    """Return a sentence that lists the columns of a source, or an empty string if they are unavailable."""
    from voxpop.reading.sources import open_source
    from voxpop.reading.wanted import Request

    try:
        next(iter(open_source(source, Request([""], "tokens", []))), None)
    except ColumnError as error:
        where, found, names = str(error).partition(' has no column "". Choose one of ')
        return f"{where} has the columns {names}" if found else ""
    return ""


def check_reading(schema: Mapping[str, Any] | None, reading: Mapping[str, Any], options: Any, where: str) -> None:
    """Read a table with the same columns but without rows, so that an invalid call raises the same error as the run.

    Args:
        schema: The types of the columns, unless only the rows determine them.
        reading: The arguments of `voxpop.read`.
        options: Its options.
        where: The source, for messages.
    """
    import pyarrow as pa

    from voxpop.engine.read import read
    from voxpop.reading.types import UNDECLARED

    kinds = dict(schema or {})
    if schema is None:
        lists = {"tokens", "sequence"} if "order" not in reading else {"tokens"}
        for role in ("user", *CONTENTS):
            kind = pa.list_(pa.string()) if role in lists else pa.string()
            kinds |= dict.fromkeys(column_list(reading.get(role, [])), kind)
    if "order" in reading and kinds.get(reading["order"], UNDECLARED) == UNDECLARED:
        kinds[reading["order"]] = pa.int64() if isinstance(reading.get("session_gap"), float) else pa.timestamp("us")
    how = replace(options, partitions=None, progress=False)
    try:
        read(_made_up(kinds, 0), **reading, options=how)
        # Add a row without contents, because the type of contents is checked only if there are rows.
        if "order" not in reading:
            users = dict.fromkeys(column_list(reading.get("user", [])), pa.string())
            read(_made_up({**kinds, **users}, 1, users), **reading, options=how)
    except VoxpopError as error:
        table, _, reason = str(error).rpartition(" on: ")
        if not table:
            raise
        raise type(error)(f"{where}: {reason}") from None


def _made_up(kinds: Mapping[str, Any], number: int, users: Iterable[str] = ()) -> Any:
    """Return rows of the user "1" that are null in all other columns."""
    import pyarrow as pa

    columns = [pa.array(["1"] * number) if name in users else pa.nulls(number, kind) for name, kind in kinds.items()]
    return pa.RecordBatch.from_arrays(columns, list(kinds))


def column_list(names: Any) -> list[str]:
    """Return the names of one column or of a list of columns."""
    return [names] if isinstance(names, str) else names
