"""Queries of a database, read as they come: through ADBC where there is an address, through the connection otherwise.

| connection | read by |
|---|---|
| `postgresql://...` | ADBC (`pip install adbc-driver-postgresql`) |
| `sqlite:///file.db` | ADBC (`pip install adbc-driver-sqlite`) |
| `duckdb:///file.duckdb` | DuckDB |
| an open connection: ADBC, DuckDB, SQLAlchemy, or any of Python's DB-API | its own cursor |
"""

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from voxpop.corpus.reading.arrow_sources import cursor_batches, is_duckdb
from voxpop.corpus.reading.columns import Batches
from voxpop.corpus.reading.failures import quieten
from voxpop.corpus.reading.portions import FEW_ROWS
from voxpop.errors import InputError, SourceError

SCHEME = re.compile(r"([a-z0-9+]+)://(.*)", re.DOTALL)
DRIVERS = {"postgresql": "adbc_driver_postgresql", "postgres": "adbc_driver_postgresql", "sqlite": "adbc_driver_sqlite"}
ALSO = "postgresql://, sqlite:/// and duckdb:/// addresses, or an open connection"


def query_batches(query: str, connection: Any, columns: list[str], rows: int, *, small: bool) -> Batches:
    """Yield the wanted columns of what a query finds.

    Args:
        query: SQL.
        connection: an address, or an open connection, which stays open.
        columns: names of the wanted columns.
        rows: about how many rows a batch may have.
        small: hold few of them.

    Raises:
        InputError: where the address is of no known kind, or its driver is not installed.
        SourceError: where the database refuses; its message is not passed on, for it may quote rows.
    """
    with _opened(connection) as opened, closing(_execute(opened, query, small=small)) as cursor:
        yield from cursor_batches(cursor, columns, rows, small=small)


@contextmanager
def _opened(connection: Any) -> Iterator[Any]:
    if not isinstance(connection, str):
        if not any(hasattr(connection, name) for name in ("cursor", "execute", "raw_connection")):
            raise InputError(f"connection= takes {ALSO}; got {type(connection).__name__}.")
        yield connection
        return
    found = SCHEME.fullmatch(connection)
    scheme = found[1].partition("+")[0] if found else ""
    if found is None or scheme not in (*DRIVERS, "duckdb"):
        raise InputError(f"connection= takes {ALSO}; this one begins otherwise.")
    with closing(_connect(scheme, found[2], connection)) as opened:
        yield opened


def _connect(scheme: str, rest: str, address: str) -> Any:
    package = DRIVERS.get(scheme, "duckdb")
    try:
        driver = import_module("duckdb" if scheme == "duckdb" else f"{package}.dbapi")
    except ImportError:
        raise InputError(
            f"{scheme}:// needs {package}, which is not installed: pip install {package.replace('_', '-')}, or "
            "voxpop[databases]."
        ) from None
    file = rest.removeprefix("/")
    # SQLite would make an empty one. What begins with "file:" says itself whether it may.
    if scheme == "sqlite" and not file.startswith("file:") and not Path(file).is_file():
        raise SourceError("connection= names a file of SQLite that is not there; check its path, after sqlite:///.")
    try:
        if scheme == "duckdb":
            return driver.connect(rest.removeprefix("/"), read_only=True)
        return driver.connect(rest.removeprefix("/") if scheme == "sqlite" else address)
    except Exception as error:
        raise _refused(error, "cannot be opened; check the address, and whether it runs") from None


def _execute(connection: Any, query: str, *, small: bool) -> Any:
    """Return a cursor that has run the query."""
    if hasattr(connection, "raw_connection"):  # an engine of SQLAlchemy
        connection = connection.raw_connection()
    elif hasattr(connection, "exec_driver_sql"):  # a connection of SQLAlchemy
        connection = connection.connection
    try:
        cursor = connection.cursor()
        if is_duckdb(cursor):
            cursor = cursor.sql(query)
        else:
            if small and type(cursor).__module__.startswith("adbc_driver"):
                _count_few_rows(cursor)
            cursor.execute(query)
    except Exception as error:
        raise _refused(
            error, "refuses the query; it must be SQL, such as select user, item from table. Try it there by itself"
        ) from None
    if cursor is None:
        raise InputError("the query finds no rows by its kind: give a SELECT.")
    return cursor


def _count_few_rows(cursor: Any) -> None:
    """Have ADBC's SQLite fetch few rows at a time; PostgreSQL's counts bytes."""
    if cursor.connection.adbc_get_info().get("vendor_name") == "SQLite":
        cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(FEW_ROWS)})


def _refused(error: BaseException, what: str) -> SourceError:
    kind = type(error).__name__
    quieten(error)
    return SourceError(f"the database {what}. It failed with {kind}; what it said may quote rows, and is left out.")
