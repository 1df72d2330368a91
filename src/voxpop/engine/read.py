"""Read a table of users and their contents, or only its schema, with the engine that the table requires."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from voxpop.engine.data import Corpus
from voxpop.engine.local.read import read_here
from voxpop.errors import InputError
from voxpop.files.progress import tell
from voxpop.reading import tables
from voxpop.reading.choices import TextTokenizer
from voxpop.reading.columns import check_columns, enclosed, withheld
from voxpop.reading.databases import RESULT, SQL, columns_of_query
from voxpop.reading.event_logs import standard_columns
from voxpop.reading.files import FIRST_ROW, TEXT_FILE, declared_by, is_csv_file, suffix_of
from voxpop.reading.keys import type_named
from voxpop.reading.remote import THE_FILE, is_remote
from voxpop.reading.shape import unite
from voxpop.reading.sources import FILES, is_spark, local_files, source_of
from voxpop.reading.tables import THE_TABLE
from voxpop.reading.text_files import CSV
from voxpop.reading.types import UNDECLARED, Column, check_declared, declared_types
from voxpop.reading.wanted import ReadOptions, Request, Tokenizer


def read(
    source: Any,
    *,
    user: str | list[str] | None = None,
    text: str | None = None,
    tokens: str | None = None,
    items: str | list[str] | None = None,
    sequence: str | None = None,
    order: str | None = None,
    session_gap: Any = None,
    tokenizer: TextTokenizer | Tokenizer = "words",
    types: dict[str, Any] | None = None,
    csv: CSV | None = None,
    options: ReadOptions | None = None,
) -> Corpus:
    """Read a table with a user column and a column of the users' contents.

    The rows of a user may be in any order and in any number of files.

    Args:
        source: A path, folder or glob of Parquet, Arrow, CSV, TSV, JSON, XES or text files, the address of such a file
            (s3://, https://), an open file, or a list of paths; a polars, pandas or pyarrow table, or any object with
            Arrow's interfaces; an iterator of tables; rows with field names, such as dictionaries or dataclasses; a
            dictionary of columns; a cursor; `vp.SQL(query, connection)`; or a Spark DataFrame, which remains on its
            cluster (docs/guides/spark.md). docs/guides/reading.md lists all sources.
        user: The name of the column that identifies the user of a row, or a list of several columns. `user.id` is the
            field `id` of the column `user`. A row without a user raises an error, or is skipped with
            `vp.ReadOptions(missing_users="drop")`. If no content column is given, the source is an event log (XES,
            OCEL or a table). In this case, the columns with the standard names of activities and times are read.
            Without `user`, the case column is also read, so that each case is protected as one user.
        text: The name of a text column, which `tokenizer` splits into tokens. A null is an empty text.
        tokens: The name of a column of lists of tokens, in order.
        items: The name of a column of unordered items, with one item or a list in each row. Nulls are skipped. If a
            list of columns is given, the values of a row are combined into one item. Releases return items with the
            types of these columns.
        sequence: The name of a column of ordered lists. With `order`, it is the name of a column of single events.
        order: The name of a time column. Each row is then an event, and a user's events in this order are the
            user's sequence. Events with the same time are in the order of their bytes. Null events are skipped.
        session_gap: The longest pause within a sequence, such as "30min", or a number if `order` is a column of
            numbers. A longer pause starts a new sequence.
        tokenizer: "words" (Unicode words in lower case, without addresses; docs/guides/reading.md), "whitespace",
            "characters", a compiled regular expression, a callable that maps a list of texts to a list of lists of
            strings, or `vp.Tokenizer` with further options.
        types: The types of columns that the source does not declare, such as {"price": "decimal(12, 2)", "at":
            "timestamp"}. Undeclared values are read as strings, and times as integers or ISO timestamps, regardless
            of the values in other rows (docs/guides/types.md).
        csv: The dialect of CSV files, such as `vp.CSV(delimiter=";")`. By default, the dialect is detected.
        options: Options for reading, such as `vp.ReadOptions(memory="2GiB")`.

    Returns:
        The private data, for the `release` method of any mechanism.

    Raises:
        InputError: If not exactly one of text, tokens, items and sequence is given, or arguments do not fit the source.
        SourceError: If the source is missing or broken, a row has no user, or a value does not fit its type. A table
            without rows is not an error.
        ColumnError: If a column is missing or has the wrong type.

    Example:
        >>> import polars as pl
        >>> import voxpop as vp
        >>> posts = pl.DataFrame({"author": ["ann", "bob"], "body": ["Good morning!", "good night"]})
        >>> vp.read(posts, user="author", text="body")
        Corpus(kind='text', private)
    """
    cut = tokenizer if isinstance(tokenizer, Tokenizer) else Tokenizer(tokenizer)
    how = checked("options", options, ReadOptions)
    if text is tokens is items is sequence is order is None:
        user, sequence, order = event_columns(source, user, csv, types or {}, progress=how.progress)
    if user is None:
        raise InputError("user= is missing. Name the column that identifies the user.")
    request = Request.of(
        user=user,
        text=text,
        tokens=tokens,
        items=items,
        sequence=sequence,
        order=order,
        session_gap=session_gap,
        types=types,
        tokenizer=cut,
        options=how,
        csv=checked("csv", csv, CSV),
    )
    return read_wanted(source, request)


def event_columns(
    source: Any, user: Any, csv: CSV | None, types: Mapping[str, Any], *, progress: bool | None = None
) -> tuple[Any, str, str]:
    """Return the user columns, activities and times of an event log, which have standard names.

    Args:
        source: The source, as in `read`.
        user: The user column that the caller named; None for the case column.
        csv: The dialect of CSV files, as in `read`.
        types: The types of columns, as in `read`.
        progress: Whether messages are shown.

    Raises:
        InputError: If the source has no schema, or its columns do not have these names.
    """
    schema = schema_before_reading(source, checked("csv", csv, CSV), types)
    if schema is None:
        raise InputError(
            "give user= and exactly one of text=, tokens=, items= and sequence=. Columns of an event log are found "
            "only in a source with a schema, such as a file or a table."
        )
    found = standard_columns(schema, cases=user is None)
    # The message contains only standard names, so it reveals no data. The message also shows that no text column was
    # named.
    message = f'Read as an event log: sequence="{found["sequence"]}", order="{found["order"]}".'
    if user is None:
        user = found["user"]
        message += (
            f' Its cases are in the column "{user}", and each case is protected as one user. If a person may have '
            "several cases, pass the column that identifies persons as user=."
        )
    tell(message, progress)
    return user, found["sequence"], found["order"]


def read_wanted(source: Any, request: Request) -> Corpus:
    """Read the given columns of a source with the engine that the source requires; see `read`."""
    if not is_spark(source):
        if request.options.partitions is not None:
            raise InputError("`partitions` is an option for Spark DataFrames. Remove it for this source.")
        return Corpus(read_here(source, request))
    if request.csv.given:
        raise InputError("csv= describes CSV files, and this source is a table. Remove csv=.")
    if request.types:
        raise InputError("a Spark DataFrame declares its types. Cast its columns there, and remove types=.")
    return Corpus(enclosed(lambda: _of_spark(source, request)))


def _of_spark(source: Any, request: Request) -> Any:
    from voxpop.engine.spark.reading import read_spark

    with withheld():
        return read_spark(source, request)


def checked(name: str, given: Any, kind: Any) -> Any:
    """Return an argument after checking that it has this class, or the default if none is given."""
    if given is not None and not isinstance(given, kind):
        raise InputError(f"`{name}` must be a vp.{kind.__name__}, got {type(given).__name__}.")
    return kind() if given is None else given


# The code below finds the names and declared types of the columns of a table. Types are never inferred from values.


def declared_schema(
    source: Any, csv: CSV | None, types: Mapping[str, Any], named: Sequence[str] = ()
) -> dict[str, pa.DataType]:
    """Return the type of each column, in order; see `schema_before_reading`.

    Raises:
        InputError: If the source has no schema before it is read.
        ColumnError: If one of the names is not a column, or files have different columns.
    """
    found = schema_before_reading(source, csv, types, named)
    if found is None:
        raise InputError(
            "this source has no schema before it is read. Give Parquet, Arrow or CSV files, a table of polars, "
            "pandas, pyarrow or Spark, or vp.SQL(query, connection)."
        )
    return found


def schema_before_reading(
    source: Any, csv: CSV | None, types: Mapping[str, Any], named: Sequence[str] = ()
) -> dict[str, pa.DataType] | None:
    """Return the type of each column, in order, or None if only the rows of the source show its columns.

    Args:
        source: Parquet, Arrow or CSV files, a table in memory, or a Spark DataFrame.
        csv: The dialect of CSV files.
        types: The types that the source does not declare.
        named: The names of columns that must exist. If the first row of a CSV file does not contain these names, the
            row is possibly data.

    Raises:
        ColumnError: If one of the names is not a column, or files have different columns.
    """
    dialect = csv or CSV()
    with withheld():
        found = _schema(source, dialect, types)
    if found is None:
        return None
    files = local_files(source, other=dialect.given)
    is_csv = any(dialect.given or is_csv_file(file) for file in files)
    # A field of a struct, such as user.id, is looked up later, when rows are read.
    whole = [name for name in named if name in found or name.partition(".")[0] not in found]
    check_columns(
        whole, list(found), source_called(source, dialect), declared=not is_csv, hint=FIRST_ROW if is_csv else ""
    )
    declared = {name: type_named(kind) for name, kind in declared_types(types, found).items()}
    sure = not is_csv and _declares_types(source, files)
    own = {name: found[name] for name in declared if sure or found[name] != UNDECLARED}
    check_declared([Column(name, declared[name]) for name in own], own.values())
    return {**found, **declared}


def source_called(source: Any, csv: CSV | None) -> str:
    """Return the name of a source for messages. The name of a text file identifies a user, so it is never shown."""
    if isinstance(source, SQL):
        return RESULT
    files = local_files(source, other=csv is not None and csv.given)
    if not files and source_of(source) is FILES:
        return THE_FILE if any(map(is_remote, [source] if isinstance(source, str) else source)) else "the input"
    if not files:
        return THE_TABLE
    return "a text file" if suffix_of(files[0]) == TEXT_FILE else files[0].name


def _declares_types(source: Any, files: Sequence[Path]) -> bool:
    """Return whether a source declares the types of all its columns, so that no string is an undeclared value."""
    if files:
        return all(suffix_of(file) in (".parquet", ".arrow", ".feather") for file in files)
    return tables.kind_of_source(source).startswith(("polars.", "pyarrow."))


def _schema(source: Any, csv: CSV, types: Mapping[str, Any]) -> dict[str, pa.DataType] | None:
    kind = tables.kind_of_source(source)
    if isinstance(source, SQL):
        return columns_of_query(source)
    if is_spark(source):
        from voxpop.engine.spark.reading import arrow_schema

        return arrow_schema(source)
    if kind == "polars.LazyFrame":
        source = source.head(0).collect()
    if kind in ("polars.DataFrame", "polars.LazyFrame", "pandas.DataFrame") or isinstance(source, Mapping):
        names = source if isinstance(source, Mapping) else source.columns
        return {str(name): tables.array_of_column(source[name][:0], Column(str(name))).type for name in names}
    if isinstance(schema := getattr(source, "schema", None), pa.Schema):
        parts = tables.columns_of_folders(source).names
        own = pa.schema([each for each in schema if each.name not in parts])
        files = [each.physical_schema for each in source.get_fragments()] if hasattr(source, "get_fragments") else []
        unite([("the dataset", dict(zip(each.names, each.types, strict=True))) for each in (own, *files)], types)
        return dict(zip(schema.names, schema.types, strict=True))
    found = [(file.name, declared_by(file, csv, UNDECLARED)) for file in local_files(source, other=csv.given)]
    columns = [(name, each) for name, each in found if each is not None]
    return unite(columns, types) if columns and len(columns) == len(found) else None
