"""Released keys as SQL in any dialect. The library sqlglot quotes names and values.

Keys contain text that users wrote, and this text might attempt an injection. Therefore every statement is parsed again
in its dialect before it is returned, and must contain the same keys and columns.

A statement may become a dbt model, which first renders it as a Jinja template. Rendering would run text between {{ and
}} as a program and would change line breaks. Therefore strings that Jinja would change are concatenated from parts. No
statement contains the start of a Jinja expression, and rendering changes no statement.
"""

import re
from collections.abc import Sequence
from typing import Any, get_args

import pyarrow as pa
import pyarrow.compute as pc

from voxpop.errors import InputError, required
from voxpop.privacy.budget import check_choice
from voxpop.reading.arrow import joined
from voxpop.reading.choices import Form
from voxpop.reading.keys import family
from voxpop.release.counts import Addition
from voxpop.release.release import Release
from voxpop.release.table import free_name, key_texts

Columns = str | Sequence[str] | None


def key_names(release: Release, columns: Columns) -> list[str]:
    """Return the names of the key columns.

    Raises:
        InputError: If neither the call nor the release names the columns, or their number is wrong.
    """
    ours = [] if release.keys is None else release.keys.names
    names = [columns] if isinstance(columns, str) else list(columns or ours)
    if not names:
        raise InputError("this release contains words or grams, not the keys of a table. Name the column to compare.")
    if len(names) != max(1, len(ours)):
        raise InputError(
            f"the keys of this release have {max(1, len(ours))} columns, "
            f"so this many names must be given; got {len(names)}."
        )
    return names


def key_types(release: Release) -> list[pa.DataType]:
    """Return the type of each column of a key. Words have the type string."""
    columns = release.keys.columns if release.keys is not None else ()
    return [each.type for each in columns] or [pa.string()]


def released_items(release: Release) -> Any:
    """Return the released grams of length 1 as strings."""
    single = release.grams.filter(pc.equal(release.grams["length"], 1))["gram"]
    return joined(pc.list_flatten(single)).cast(pa.large_string())


_POSTGRES = ("materialize", "postgres", "risingwave")
_SPARK = ("databricks", "spark", "spark2")
_TRINO = ("athena", "presto", "trino")
BYTEWISE = frozenset(
    {*_POSTGRES, *_SPARK, *_TRINO, "bigquery", "clickhouse", "duckdb", "hive", "oracle", "snowflake", "sqlite"}
)
"""The dialects in which two strings are equal only if their bytes are equal, unless a column has another collation."""
FRACTION = {
    **dict.fromkeys((*_POSTGRES, *_SPARK, "bigquery", "duckdb", "oracle", "redshift"), 6),
    **dict.fromkeys(_TRINO, 3),
    **{"snowflake": 9, "tsql": 7},
}
"""The digits of a fraction of a second that literals of a dialect keep. Other dialects may cut or round all of them."""
STORES_DOUBLES = frozenset({"clickhouse", "sqlite"})
"""The dialects in which numbers with many digits become doubles."""
TYPES = {
    "truth values": "boolean",
    "dates": "date",
    "times of day": "time",
    "times": "timestamp",
    "times with a zone": "timestamptz",
}


def to_sql(
    release: "Release | Addition", dialect: str = "duckdb", form: Form = "where", columns: Columns = None
) -> str:
    """Return SQL that keeps the rows with a released key. Needs sqlglot (`pip install sqlglot`).

    Args:
        release: A release of items, or its counts or ranking. The query for counts or a ranking also returns the column
            `users` or `place`.
        dialect: "duckdb", "postgres", "bigquery", "snowflake", "sqlite", "spark" or another sqlglot dialect.
        form: "where" for the condition of a WHERE clause, or "select" for a query that returns the keys as a table, for
            a join or a dbt model.
        columns: The key columns, as in `filter`.

    Raises:
        InputError: If the release contains grams, the dialect is unknown, or a key does not fit the dialect. A key does
            not fit if the dialect truncates it, or does not compare strings by their bytes, because then rows with
            other keys would remain.
    """
    sqlglot = required("sqlglot", "SQL", "sqlglot")
    check_choice("form", form, get_args(Form))
    if dialect not in sqlglot.Dialects._value2member_map_ or not dialect:
        raise InputError(f"`dialect` must be one that sqlglot writes, such as duckdb or postgres; got {dialect!r}.")
    addition = release if isinstance(release, Addition) else None
    release = release if isinstance(release, Release) else release.grams
    if release.keys is None:
        raise InputError("SQL compares items; this release contains grams, which are lists. Write Parquet or Arrow.")
    names, kinds = key_names(release, columns), key_types(release)
    rows = list(key_texts(released_items(release), len(names)))
    if addition is not None:
        name, places, numbers = addition._numbered
        rows = [rows[place] for place in places]
        if form == "select":
            names, kinds = [*names, free_name(name, names)], [*kinds, pa.int64()]
            rows = [(*row, str(number)) for row, number in zip(rows, numbers.tolist(), strict=True)]
    if any("\0" in value for row in rows for value in row):
        raise InputError("a released key contains a zero byte, which no database accepts in a string. Write Parquet.")
    if any(TEMPLATE.search(name) for name in names):
        raise InputError(
            "a column name contains {{, {%, {# or a carriage return, which dbt would run or change as a template. Name "
            "another column in `columns`, or write Parquet or Arrow."
        )
    for kind, values in zip(kinds, zip(*rows, strict=True), strict=False):
        _check_exact(dialect, str(family(kind)), values)
    tree = _where(names, rows, kinds) if form == "where" else _select(names, rows, kinds)
    try:
        text: str = tree.sql(dialect=dialect, pretty=form == "select", unsupported_level=sqlglot.ErrorLevel.RAISE)
    except sqlglot.UnsupportedError:
        raise InputError(f'{dialect} has no such query; write a condition (form="where"), Parquet or Arrow.') from None
    pairs = (pair for row in rows for pair in zip(row, kinds, strict=True))
    _check_round_trip(text, dialect, [token for pair in pairs for token in _tokens(*pair)], names)
    return text


def _check_exact(dialect: str, kind: str, values: Sequence[str]) -> None:
    """Check that a dialect compares these values exactly. Otherwise, rows with other keys would remain.

    Raises:
        InputError: The dialect may truncate, round or fold a value.
    """
    if kind == "strings" and dialect not in BYTEWISE:
        raise InputError(
            f"in {dialect}, strings can be equal that differ in case, accents or spaces at the end, so rows with other "
            "keys would remain. Write Parquet or Arrow, and join on a hash of the strings, such as MD5."
        )
    if kind.startswith("times") and max(len(_fraction(each)) for each in values) > FRACTION.get(dialect, 0):
        raise InputError(
            f"the released times have smaller fractions of a second than the literals of {dialect} keep, so rows with "
            "other times would remain. Write Parquet or Arrow, or release times that are truncated."
        )
    if kind in ("whole numbers", "decimals") and dialect in STORES_DOUBLES and not all(map(_fits_a_double, values)):
        raise InputError(
            f"{dialect} stores numbers with so many digits as doubles, so rows with other numbers would remain. Write "
            "Parquet or Arrow, or read the column as strings."
        )


def _fraction(text: str) -> str:
    return text.rstrip("Z").partition(".")[2]


def _fits_a_double(text: str) -> bool:
    """Return whether a number is a 64-bit integer, or differs as a double from all other numbers of 15 digits."""
    return -(2**63) <= int(text) < 2**63 if "." not in text else sum(map(str.isdigit, text)) <= 15


TEMPLATE = re.compile(r"\{[{%#]|\r")
"""The parts of a statement that Jinja changes. These are carriage returns and the beginnings of its expressions."""
RETURN = "13"
"""The code of a carriage return."""


def _parts(text: str) -> list[str]:
    """Return a string in parts that Jinja does not change. Carriage returns are separate parts."""
    return re.split(r"(\r)|(?<=\{)(?=[{%#])", text) if TEMPLATE.search(text) else [text]


def _string(text: str) -> Any:
    from sqlglot import exp

    literals = [
        exp.Chr(expressions=[exp.Literal.number(RETURN)]) if part == "\r" else exp.Literal.string(part)
        for part in _parts(text)
        if part or not text
    ]
    return literals[0] if len(literals) == 1 else exp.Concat(expressions=literals, safe=False, coalesce=False)


def _value(text: str, kind: pa.DataType) -> Any:
    """Return an SQL literal."""
    from sqlglot import exp

    name = family(kind)
    if name in ("whole numbers", "decimals"):
        number = exp.Literal.number(text.removeprefix("-"))
        return exp.Neg(this=number) if text.startswith("-") else number
    if name == "truth values":
        return exp.Boolean(this=text == "true")
    if name == "bytes":
        raise InputError("byte literals differ between dialects. Write Parquet or Arrow.")
    return _string(text) if name == "strings" else exp.cast(exp.Literal.string(text), TYPES[str(name)])


def _where(names: Sequence[str], rows: Sequence[Sequence[str]], kinds: Sequence[pa.DataType]) -> Any:
    from sqlglot import exp

    if not rows:
        return exp.EQ(this=exp.Literal.number(1), expression=exp.Literal.number(0))
    values = [[_value(text, kind) for text, kind in zip(row, kinds, strict=True)] for row in rows]
    columns = [exp.column(exp.to_identifier(name, quoted=True)) for name in names]
    if len(names) == 1:
        return exp.In(this=columns[0], expressions=[value for (value,) in values])
    return exp.In(this=exp.Tuple(expressions=columns), expressions=[exp.Tuple(expressions=row) for row in values])


def _select(names: Sequence[str], rows: Sequence[Sequence[str]], kinds: Sequence[pa.DataType]) -> Any:
    """Return a query that returns the keys as a table."""
    from sqlglot import exp

    identifiers = [exp.to_identifier(name, quoted=True) for name in names]
    if not rows:
        nothing = [exp.cast(exp.Null(), _type(kind)) for kind in kinds]
        parts = [exp.alias_(value, name) for value, name in zip(nothing, identifiers, strict=True)]
        return exp.select(*parts).where(exp.EQ(this=exp.Literal.number(1), expression=exp.Literal.number(0)))
    tuples = [
        exp.Tuple(expressions=[_value(text, kind) for text, kind in zip(row, kinds, strict=True)]) for row in rows
    ]
    alias = exp.TableAlias(this=exp.to_identifier("released"), columns=identifiers)
    return exp.select(*(exp.column(name.copy()) for name in identifiers)).from_(
        exp.Values(expressions=tuples, alias=alias)
    )


def _type(kind: pa.DataType) -> str:
    name = str(family(kind))
    return {"strings": "varchar", "whole numbers": "bigint", "decimals": "decimal"}.get(name) or TYPES[name]


def _tokens(text: str, kind: pa.DataType) -> list[str]:
    """Return the parser's tokens for a value. Booleans are SQL keywords, and signs are separate tokens."""
    name = family(kind)
    if name == "strings":
        return [RETURN if part == "\r" else part for part in _parts(text) if part]
    return [] if name == "truth values" else [text.removeprefix("-")]


def _check_round_trip(text: str, dialect: str, values: Sequence[str], names: Sequence[str]) -> None:
    """Parse the SQL in its dialect, and check that it contains the same keys and columns."""
    import sqlglot
    from sqlglot.tokens import TokenType

    read: dict[Any, list[str]] = {TokenType.STRING: [], TokenType.NUMBER: [], TokenType.IDENTIFIER: []}
    for token in sqlglot.tokenize(text, read=dialect):
        read.get(token.token_type, []).append(token.text)
    wanted = sorted(filter(None, values))
    found = sorted(filter(None, read[TokenType.STRING] + read[TokenType.NUMBER]))
    same = found == wanted and set(names) <= set(read[TokenType.IDENTIFIER])
    if TEMPLATE.search(text) or (values and not same):
        raise InputError(
            f"these keys cannot be written safely in this form of SQL for {dialect}. Write Parquet or Arrow."
        )
