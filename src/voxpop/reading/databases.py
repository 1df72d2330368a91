"""Read the rows of a database query as they arrive.

| connection | reader | source of types |
|---|---|---|
| `postgresql://...` | ADBC (`pip install adbc-driver-postgresql`) | the query's columns |
| `duckdb:///file.duckdb`, a DuckDB connection | DuckDB | the query's columns |
| an open ADBC connection, except to SQLite | ADBC | the query's columns |
| `sqlite:///file.db`, SQLAlchemy, any connection of Python's DB-API | its cursor | no types, so values are strings |
"""

import re
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, final
from urllib.parse import unquote, unquote_plus

import pyarrow as pa

from voxpop.errors import ColumnError, InputError, SourceError, VoxpopError, required
from voxpop.reading.columns import FEW_ROWS, Batches, check_columns, guarded, withheld
from voxpop.reading.keys import is_uuid
from voxpop.reading.tables import stream_batches
from voxpop.reading.types import UNDECLARED, array_of_objects, spelling_of
from voxpop.reading.wanted import Request

SCHEME: Final = re.compile(r"([a-z0-9+]+)://(.*)", re.DOTALL)
POSTGRES: Final = "adbc_driver_postgresql"
ADDRESSES: Final = ("postgresql", "postgres", "sqlite", "duckdb")
_LONGEST_REASON: Final = 500
"""The maximum number of characters of a driver's text that are shown."""
ALSO: Final = "postgresql://, sqlite:/// and duckdb:/// addresses, or an open connection"
FEWEST_OF_DUCKDB: Final = 1 << 11
"""The number of rows that DuckDB computes at a time."""
NO_DOWNLOADS: Final = {"autoinstall_known_extensions": "false"}
"""The settings of DuckDB. Installed extensions are loaded, and no extension is downloaded."""
FILE_MARKS: Final = {"sqlite": (0, b"SQLite format 3\0"), "duckdb": (8, b"DUCK")}
"""The position and the bytes that identify files of these databases."""
RESULT: Final = "the result of the query"
DATABASE: Final = re.compile(
    r"(postgres(ql)?|redshift|sqlite|duckdb|mysql|mariadb|mssql|oracle|snowflake|bigquery|trino|clickhouse)(\+\w+)?://",
    re.IGNORECASE,
)
"""The beginning of a database address."""
QUOTED: Final = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
RANDOM: Final = re.compile(
    r"\b(?:random|rand|newid|gen_random_uuid|generate_uuid|uuid_generate_v4|uuid|randomblob|uniform)\s*\("
    r"|\bdbms_random\b|\btablesample\b|\busing\s+sample\b",
    re.IGNORECASE,
)
"""The functions and clauses of SQL that draw random numbers or rows."""


@final
@dataclass(frozen=True, slots=True)
class SQL:
    """A database query, as the source of `voxpop.read`.

    Attributes:
        query: SQL that selects the columns to read.
        connection: An address (postgresql://, sqlite:///, duckdb:///), or an open connection, which remains open.

    Raises:
        InputError: If the query is not a string, or the connection is neither an address nor an open connection.

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
    """Yield the requested columns of a query's result.

    Raises:
        InputError: If a driver is not installed, or the query selects nothing.
        SourceError: If the database fails. The database's message is omitted, because it may quote rows.
    """
    with _cursor(source, source.query) as cursor:
        yield from cursor_batches(cursor, request)


def columns_of_query(source: SQL) -> dict[str, pa.DataType]:
    """Return the declared types of the columns of a query. The database computes no rows to determine the types."""
    with _cursor(source, f"select * from (\n{source.query.strip().rstrip(';')}\n) as columns_only limit 0") as cursor:
        reader = _arrow_reader(cursor, 1)
        if reader is None:
            return dict.fromkeys([each[0] for each in cursor.description], UNDECLARED)
        return {field.name: UNDECLARED if _is_numeric(field.type) else field.type for field in reader.schema}


@contextmanager
def _cursor(source: SQL, query: str) -> Iterator[Any]:
    if RANDOM.search(QUOTED.sub(" ", query)):
        raise InputError(
            "the query draws at random (random(), tablesample), so one user's rows affect which rows of other users "
            "are read. Read the whole table, or write the query's result to a table first, and read that."
        )
    given = source.connection
    connection = closing(_connect(given)) if isinstance(given, str) else nullcontext(given)
    with connection as opened, closing(_execute(opened, query)) as cursor:
        yield cursor


def is_cursor(source: Any) -> bool:
    """Return whether an object is a DB-API cursor, or a DuckDB connection or relation."""
    return is_duckdb(source) or (hasattr(source, "fetchmany") and hasattr(source, "description"))


def is_duckdb(source: Any) -> bool:
    """Return whether an object belongs to DuckDB, without importing DuckDB."""
    return type(source).__module__.lstrip("_").partition(".")[0] == "duckdb"


def cursor_batches(cursor: Any, request: Request) -> Batches:
    """Yield the rows of a cursor, as Arrow batches if the driver supports Arrow, otherwise as Python objects."""
    if cursor.description is None:
        raise InputError("the cursor has no result. Execute a query first, or give vp.SQL(query, connection).")
    reader = _arrow_reader(cursor, request.rows, small=request.small)
    if reader is not None:
        yield from stream_batches(_with_plain_types(reader, request), request)
        return
    names = [each[0] for each in cursor.description]
    check_columns(request.names, names, RESULT)
    places, first = [names.index(name) for name in request.names], 0
    rows = FEW_ROWS if request.small else request.rows
    for found in guarded(iter(lambda: list(cursor.fetchmany(rows)), [])):
        pairs = zip(places, request.selection, strict=True)
        arrays = [array_of_objects([row[place] for row in found], column, RESULT, first) for place, column in pairs]
        yield RESULT, pa.RecordBatch.from_arrays(arrays, request.names)
        first += len(found)


def _with_plain_types(reader: Any, request: Request) -> Any:
    """Return a reader that converts numbers of any precision to strings, as drivers without types do.

    Raises:
        ColumnError: If a requested column has any other type that Arrow wraps without converting it. The message
            contains the required cast.
    """
    schema, wanted = reader.schema, [name for name in request.names if reader.schema.get_field_index(name) >= 0]
    for name in wanted:
        kind = schema.field(name).type
        if isinstance(kind, pa.BaseExtensionType) and not is_uuid(kind) and not _is_numeric(kind):
            called = getattr(kind, "type_name", kind.extension_name)
            raise ColumnError(
                f'the column "{name}" is of the type {called}, which drivers spell differently. Cast it in the query, '
                f'such as cast("{name}" as text).'
            )
    numeric = [name for name in wanted if _is_numeric(schema.field(name).type)]
    if not numeric:
        return reader
    for name in numeric:
        schema = schema.set(schema.get_field_index(name), pa.field(name, UNDECLARED))

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in guarded(iter(reader)):
            for name in numeric:
                place = batch.schema.get_field_index(name)
                texts = [None if each is None else spelling_of(Decimal(each)) for each in _texts(batch.column(place))]
                batch = batch.set_column(place, name, pa.array(texts, UNDECLARED))
            yield batch

    return pa.RecordBatchReader.from_batches(schema, batches())


def _texts(column: pa.Array) -> list[Any]:
    return list(column.storage.to_pylist())


def _is_numeric(kind: pa.DataType) -> bool:
    """Return whether a type is ADBC's type for numbers of any precision, which are stored as text."""
    return getattr(kind, "extension_name", "") == "arrow.opaque" and kind.type_name == "numeric"


def _arrow_reader(cursor: Any, rows: int, *, small: bool = False) -> Any:
    """Return the Arrow batches of a cursor, unless the cursor supports only rows."""
    duck = is_duckdb(cursor)
    if duck and small and hasattr(cursor, "execute"):
        raise InputError(
            "a DuckDB connection copies all rows, so memory= cannot limit it. Give vp.SQL(query, connection)."
        )
    if type(cursor).__module__.startswith("adbc_driver") and _is_sqlite(cursor):
        raise InputError(
            "ADBC's driver for SQLite infers types from rows, so one row can change the types of all other rows. Give "
            'vp.SQL(query, "sqlite:///...") or a connection of Python\'s sqlite3.'
        )
    with withheld(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = FEWEST_OF_DUCKDB if small else rows
        for name in ("to_arrow_reader", "fetch_record_batch", "fetch_arrow_reader"):
            if hasattr(cursor, name):
                return getattr(cursor, name)(rows) if duck else getattr(cursor, name)()
    return None


def _is_sqlite(cursor: Any) -> bool:
    # PostgreSQL sends the rows of a cursor with COPY, and any other request on the same connection ends the COPY.
    with withheld(), closing(cursor.connection.adbc_clone()) as other:
        return bool(other.adbc_get_info().get("vendor_name") == "SQLite")


def _connect(address: str) -> Any:
    scheme, rest = SCHEME.fullmatch(address).groups()  # type: ignore[union-attr]
    scheme, file = scheme.partition("+")[0], rest.removeprefix("/")
    _check_format(scheme, file)
    if scheme == "sqlite" and not file.startswith("file:"):
        if not Path(file).is_file():
            raise SourceError("the address names no existing SQLite file. Check the path after sqlite:///.")
        file = f"{Path(file).resolve().as_uri()}?mode=ro"
    package = {"sqlite": "sqlite3", "duckdb": "duckdb"}.get(scheme, POSTGRES)
    module = f"{package}.dbapi" if package == POSTGRES else package
    driver = required(module, f"{scheme}://", package.replace("_", "-"))
    with _opening(address):
        if scheme == "sqlite":
            return driver.connect(file, uri=True)
        if scheme != "duckdb":
            return driver.connect(address)
        try:
            return driver.connect(file, read_only=True, config=NO_DOWNLOADS)
        except driver.ConnectionException as error:  # A process can open a file with only one configuration.
            if "configuration" not in str(error):
                raise
            raise InputError(
                "the file of the address is already open in this process, with other settings. Give vp.SQL the open "
                "connection instead of the address, or close that connection."
            ) from None


def _check_format(scheme: str, file: str) -> None:
    """Raise an error if an SQLite file has a DuckDB address, or vice versa.

    DuckDB would download an extension to open an SQLite file.
    """
    found = format_of(Path(file)) if scheme in FILE_MARKS else None
    if found not in (None, scheme):
        raise InputError(
            f"the address begins with {scheme}:///, but its file must be opened by {found}. Write {found}:/// before "
            "the path."
        )


def format_of(path: Path) -> str | None:
    """Return "sqlite" or "duckdb" if a file begins like a database of this kind, and None otherwise."""
    try:
        with path.open("rb") as opened:
            head = opened.read(16)
    except (OSError, ValueError):
        return None
    return next((name for name, (start, mark) in FILE_MARKS.items() if head[start:].startswith(mark)), None)


@contextmanager
def _opening(address: str) -> Iterator[None]:
    """Raise an error with the driver's text if a database cannot be opened.

    The text contains no rows, because no query has run.
    """
    try:
        yield
    except VoxpopError:
        raise
    except Exception as error:
        check_extension(error)
        said = " ".join(without_password(str(error), address).split())[:_LONGEST_REASON].rstrip(".")
        raise SourceError(
            f"the database cannot be opened ({type(error).__name__}: {said}). Check the address, and whether the "
            "database is running."
        ) from None


def check_extension(error: Exception) -> None:
    """If DuckDB failed because an extension is not installed, raise an error with the next step."""
    text = str(error).lower()
    if is_duckdb(error) and "extension" in text and "install" in text:
        raise InputError(
            "the query or the address needs an extension of DuckDB that is not installed, and voxpop downloads none. "
            "Install it in DuckDB, such as with `INSTALL httpfs`, or give vp.SQL an open connection that loaded it."
        ) from None


def without_password(text: str, address: str) -> str:
    """Return a text without the passwords of an address.

    Example:
        >>> without_password("no route to postgresql://ann:s%40x@db/shop; tried s@x", "postgresql://ann:s%40x@db/shop")
        'no route to postgresql://ann:***@db/shop; tried ***'
    """
    found = re.findall(r"://[^:@/]*:([^/?#]*)@|(?:password|pwd|token|secret)=([^&\s;]+)", address, re.IGNORECASE)
    secrets = {form for pair in found for each in pair if each for form in (each, unquote(each), unquote_plus(each))}
    for each in sorted(secrets, key=len, reverse=True):
        text = text.replace(each, "***")
    return text


def _execute(connection: Any, query: str) -> Any:
    """Return a cursor that has run the query."""
    if hasattr(connection, "raw_connection"):  # a SQLAlchemy engine
        with _opening(str(getattr(connection, "url", ""))):
            connection = connection.raw_connection()
    elif hasattr(connection, "exec_driver_sql"):  # a SQLAlchemy connection
        connection = connection.connection
    advice = "it must be SQL, such as select user, item from table."
    with withheld("the database refuses the query", advice):
        cursor = connection.cursor()
        if is_duckdb(cursor):
            try:
                cursor = cursor.sql(query)
            except Exception as error:
                check_extension(error)
                raise
        else:
            cursor.execute(query)
    if cursor is None:
        raise InputError("the query selects no rows. Give a SELECT.")
    return cursor
