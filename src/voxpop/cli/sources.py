"""Kinds of sources on the command line, which follow from their names and columns."""

import re
from pathlib import Path
from typing import Any

from voxpop.errors import ColumnError, InputError, VoxpopError

QUERY, DATABASE_FILES = (
    re.compile(r"\s*(select|with)\s", re.IGNORECASE),
    (".db", ".db3", ".s3db", ".sqlite", ".sqlite3", ".duckdb"),
)


def check_path(path: str) -> None:
    """Raise an error if a file argument is a query or a database.

    Raises:
        InputError: If it is one. The message contains the right options but not the address, which may contain a
            password.
    """
    from voxpop.reading.databases import DATABASE, format_of

    if DATABASE.match(path):
        raise InputError("The source is the address of a database. Give it as --database, and the query as --sql.")
    if QUERY.match(path):
        raise InputError("The source is a query. Give it as --sql, and the address of the database as --database.")
    if path.lower().endswith(DATABASE_FILES):
        kind = format_of(Path(path)) or ("duckdb" if path.lower().endswith(".duckdb") else "sqlite")
        raise InputError(
            f'{path} is a file of a database. Give --database {kind}:///{path} and --sql "select ... from ...".'
        )


def is_event_log(source: Any, *, cases: bool) -> bool:
    """Return whether an event log has columns with standard names, so that `voxpop.read` finds them."""
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
    """Return a sentence that lists the columns of a source, or an empty string if they cannot be listed."""
    from voxpop.reading.sources import open_source
    from voxpop.reading.types import Column
    from voxpop.reading.wanted import Request

    try:
        next(iter(open_source(source, Request([Column("")], 1))), None)
    except ColumnError as error:
        where, found, names = str(error).partition(' has no column "". Choose one of ')
        return f"{where} has the columns {names}" if found else ""
    return ""
