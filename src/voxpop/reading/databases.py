"""Queries of a database, read as rows arrive.

| connection | reader | source of types |
|---|---|---|
| `postgresql://...` | ADBC (`pip install adbc-driver-postgresql`) | the query's columns |
| `duckdb:///file.duckdb`, a DuckDB connection | DuckDB | the query's columns |
| an open ADBC connection, except to SQLite | ADBC | the query's columns |
| `sqlite:///file.db`, SQLAlchemy, any connection of Python's DB-API | its cursor | none: values are strings |
"""

import re
import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final, final

import pyarrow as pa

from voxpop.errors import InputError, SourceError
from voxpop.reading.columns import FEW_ROWS, Batches, check_columns, withheld
from voxpop.reading.types import array_of_objects
from voxpop.reading.wanted import Request

SCHEME: Final = re.compile(r"([a-z0-9+]+)://(.*)", re.DOTALL)
POSTGRES: Final = "adbc_driver_postgresql"
ADDRESSES: Final = ("postgresql", "postgres", "sqlite", "duckdb")
ALSO: Final = "postgresql://, sqlite:/// and duckdb:/// addresses, or an open connection"
FEWEST_OF_DUCKDB: Final = 1 << 11
"""Rows: DuckDB computes this number of rows at a time."""
RESULT: Final = "the result of the query"


@final
@dataclass(frozen=True, slots=True)
class SQL:
    """A query of a database, as the source of `voxpop.read`.

    Attributes:
        query: SQL that selects the columns to read.
        connection: an address (postgresql://, sqlite:///, duckdb:///), or an open connection, which stays open.

    Raises:
        InputError: if the query is no string, or the connection is neither an address nor an open connection.

    Example:
        >>> import sqlite3
        >>> import voxpop as vp
        >>> shop = sqlite3.connect(":memory:")
        >>> _ = shop.execute("create table bought (who, what)")
        >>> vp.read(vp.SQL("select who, what from bought", shop), user="who", items="what")
        Corpus(kind='items', private)
    """

    query: str
    connection: Any = field(repr=False)

    def __post_init__(self) -> None:
        opened, given = self.connection, type(self.connection).__name__
        if not isinstance(self.query, str):
            raise InputError(f"the query of vp.SQL must be a string; got {type(self.query).__name__}.")
        if isinstance(opened, str):
            found = SCHEME.fullmatch(opened)
            if found is None or found[1].partition("+")[0] not in ADDRESSES:
                raise InputError(f"vp.SQL takes {ALSO}; this address begins otherwise.")
        elif not any(hasattr(opened, name) for name in ("cursor", "execute", "raw_connection")):
            raise InputError(f"vp.SQL takes {ALSO}; got {given}.")


def sql_batches(source: SQL, request: Request) -> Batches:
    """Yield the wanted columns of a query's result.

    Raises:
        InputError: if a driver is not installed, or the query selects nothing.
        SourceError: if the database fails; its message may quote rows and is left out.
    """
    with _opened(source.connection) as opened, closing(_execute(opened, source.query)) as cursor:
        yield from cursor_batches(cursor, request)


def is_cursor(source: Any) -> bool:
    """Return whether an object is a cursor of Python's DB-API, or a connection or relation of DuckDB."""
    return is_duckdb(source) or (hasattr(source, "fetchmany") and hasattr(source, "description"))


def is_duckdb(source: Any) -> bool:
    """Return whether an object is one of DuckDB's, without importing it."""
    return type(source).__module__.lstrip("_").partition(".")[0] == "duckdb"


def cursor_batches(cursor: Any, request: Request) -> Batches:
    """Yield the rows of a cursor: by Arrow if the driver has it, else as Python objects."""
    from voxpop.reading.tables import stream_batches

    if cursor.description is None:
        raise InputError("the cursor has no result: execute a query first, or give vp.SQL(query, connection).")
    reader = _arrow_reader(cursor, request)
    if reader is not None:
        yield from stream_batches(reader, request)
        return
    names = [each[0] for each in cursor.description]
    check_columns(request.names, names, RESULT)
    places, first = [names.index(name) for name in request.names], 0
    while True:
        with withheld():
            found = list(cursor.fetchmany(FEW_ROWS if request.small else request.rows))
        if not found:
            return
        pairs = zip(places, request.columns, strict=True)
        arrays = [array_of_objects([row[place] for row in found], column, RESULT, first) for place, column in pairs]
        yield RESULT, pa.RecordBatch.from_arrays(arrays, request.names)
        first += len(found)


def _arrow_reader(cursor: Any, request: Request) -> Any:
    """Return a cursor's own Arrow batches, or None if it has only rows."""
    duck = is_duckdb(cursor)
    if duck and request.small and hasattr(cursor, "execute"):
        raise InputError(
            "a DuckDB connection copies all rows, which no memory limit can bound: give vp.SQL(query, connection)."
        )
    if type(cursor).__module__.startswith("adbc_driver") and _is_sqlite(cursor):
        raise InputError(
            "ADBC's driver for SQLite infers types from rows, so one row can change those of all others. Give "
            'vp.SQL(query, "sqlite:///...") or a connection of Python\'s sqlite3.'
        )
    with withheld(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = FEWEST_OF_DUCKDB if request.small else request.rows
        for name in ("to_arrow_reader", "fetch_record_batch", "fetch_arrow_reader"):
            if hasattr(cursor, name):
                return getattr(cursor, name)(rows) if duck else getattr(cursor, name)()
    return None


def _is_sqlite(cursor: Any) -> bool:
    # PostgreSQL sends the rows of a cursor by COPY, and any other request on the same connection ends the COPY.
    with withheld(), closing(cursor.connection.adbc_clone()) as other:
        return bool(other.adbc_get_info().get("vendor_name") == "SQLite")


@contextmanager
def _opened(connection: Any) -> Iterator[Any]:
    if not isinstance(connection, str):
        yield connection
        return
    scheme, rest = SCHEME.fullmatch(connection).groups()  # type: ignore[union-attr]
    with closing(_connect(scheme.partition("+")[0], rest.removeprefix("/"), connection)) as opened:
        yield opened


def _connect(scheme: str, file: str, address: str) -> Any:
    if scheme == "sqlite" and not file.startswith("file:"):
        if not Path(file).is_file():
            raise SourceError("the address names no existing file of SQLite. Check the path after sqlite:///.")
        file = f"{Path(file).resolve().as_uri()}?mode=ro"
    package = {"sqlite": "sqlite3", "duckdb": "duckdb"}.get(scheme, POSTGRES)
    try:
        driver = (
            sqlite3 if scheme == "sqlite" else import_module(f"{package}.dbapi" if package == POSTGRES else package)
        )
    except ImportError:
        raise InputError(
            f"{scheme}:// needs {package}, which is not installed: pip install {package.replace('_', '-')}."
        ) from None
    with withheld("the database cannot be opened", "is the address right, and does the database run?"):
        if scheme == "sqlite":
            return driver.connect(file, uri=True)
        return driver.connect(file, read_only=True) if scheme == "duckdb" else driver.connect(address)


def _execute(connection: Any, query: str) -> Any:
    """Return a cursor that has run the query."""
    if hasattr(connection, "raw_connection"):  # an engine of SQLAlchemy
        connection = connection.raw_connection()
    elif hasattr(connection, "exec_driver_sql"):  # a connection of SQLAlchemy
        connection = connection.connection
    advice = "it must be SQL, such as select user, item from table."
    with withheld("the database refuses the query", advice):
        cursor = connection.cursor()
        if is_duckdb(cursor):
            cursor = cursor.sql(query)
        else:
            cursor.execute(query)
    if cursor is None:
        raise InputError("the query selects no rows: give a SELECT.")
    return cursor
