"""Release keys as SQL in any dialect; sqlglot quotes names and values.

Keys contain text that users wrote, which might attempt an injection. Every statement is therefore parsed again in its
dialect before it is returned, and must contain the same keys and columns.

Joins of a DuckDB relation or a Spark table with released keys run in the engine of the table. Keys are compared in the
type of the column, and as strings where one side is a string.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from voxpop.errors import ColumnError, InputError
from voxpop.exports.libraries import missing
from voxpop.reading.arrow import joined
from voxpop.reading.choices import Form
from voxpop.reading.keys import family

if TYPE_CHECKING:
    from voxpop.release.release import Release

Columns = str | Sequence[str] | None


def key_names(release: "Release", columns: Columns) -> list[str]:
    """Return the columns that hold keys.

    Raises:
        InputError: where neither the call nor the release names them, or there are too few or too many.
    """
    ours = [] if release.keys is None else release.keys.names
    names = [columns] if isinstance(columns, str) else list(columns or ours)
    if not names:
        raise InputError("this release holds words or grams, not the keys of a table: name the column to compare.")
    if len(names) != max(1, len(ours)):
        raise InputError(
            f"the keys of this release have {max(1, len(ours))} columns, "
            f"so this many names must be given; got {len(names)}."
        )
    return names


def wanted_types(release: "Release") -> list[Any]:
    """Return the type of each column of a key; strings for words, and null where nothing was released."""
    if not len(release):
        return [pa.null()] * max(1, 0 if release.keys is None else len(release.keys.columns))
    if release.keys is None or not release.keys.columns:
        return [pa.string()]
    return [each.type for each in release.keys.columns]


def check_type(kind: Any, wanted: Any, name: str) -> None:
    """Refuse to compare values that are spelled alike and are not the same; strings may stand for any type."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_null(kind) or pa.types.is_null(wanted):
        return
    mine, theirs = family(kind), family(wanted)
    by_spelling = (mine == "strings", theirs == "strings" and mine in ("whole numbers", "UUIDs"))
    if mine is None or (mine != theirs and not any(by_spelling)):
        raise ColumnError(
            f'the column "{name}" holds {kind}, and released keys are {theirs}, or lists of them for grams. Cast it to '
            "what was released."
        )


def released_items(release: "Release") -> Any:
    """Return the released grams of length 1 as strings."""
    single = release.grams.filter(pc.equal(release.grams["length"], 1))["gram"]
    return joined(pc.list_flatten(single)).cast(pa.large_string())


def check_columns_exist(names: Sequence[str], existing: Sequence[Any]) -> None:
    """Refuse columns that a table does not have.

    Raises:
        ColumnError: naming those that it has.
    """
    for name in names:
        if name not in existing:
            listed = ", ".join(f'"{each}"' for each in existing)
            raise ColumnError(f'the table has no column "{name}". Choose one of its columns: {listed}.')


def column_type(kind: str, types: Mapping[str, pa.DataType], whole: Collection[str]) -> pa.DataType:
    """Return the Arrow type that stands for a column of a database; one without a spelling for those that it has not.

    Args:
        kind: the database's words for a type; text in brackets is ignored.
        types: Arrow's by the database's words.
        whole: words for whole numbers.
    """
    base = kind.split("(")[0]
    return pa.int64() if base in whole else types.get(base, pa.float64())


FORMS = ("where", "select")
TYPES = {
    "truth values": "boolean",
    "dates": "date",
    "times of day": "time",
    "times": "timestamp",
    "times with a zone": "timestamptz",
}


def to_sql(release: "Release", dialect: str = "duckdb", form: Form = "where", columns: Columns = None) -> str:
    """Return SQL that keeps the rows whose key was released; needs sqlglot (`pip install voxpop[sql]`).

    Args:
        release: a release of items.
        dialect: "duckdb", "postgres", "bigquery", "snowflake", "sqlite", "spark" or another one that sqlglot writes.
        form: "where" for a condition of a WHERE, "select" for a query that returns the keys as a table, to join with or
            to save as a model of dbt.
        columns: as for `filter`.

    Raises:
        InputError: If the release contains grams, the dialect is unknown, or a key does not fit the dialect.
    """
    sqlglot = _sqlglot()
    if form not in FORMS:
        raise InputError(f"`form` must be one of {', '.join(FORMS)}, got {form!r}.")
    if dialect not in sqlglot.Dialects._value2member_map_ or not dialect:
        raise InputError(f"`dialect` must be one that sqlglot writes, such as duckdb or postgres; got {dialect!r}.")
    if release.keys is None:
        raise InputError("SQL compares items; this release holds grams, which are lists. Write Parquet or Arrow.")
    names, rows, kinds = key_names(release, columns), _rows(release), _kinds(release)
    if any("\0" in value for row in rows for value in row):
        raise InputError("a released key holds a zero byte, which no database takes in a string. Write Parquet.")
    tree = _where(names, rows, kinds) if form == "where" else _select(names, rows, kinds)
    try:
        text: str = tree.sql(dialect=dialect, pretty=form == "select", unsupported_level=sqlglot.ErrorLevel.RAISE)
    except sqlglot.UnsupportedError:
        raise InputError(f'{dialect} has no such query; write a condition (form="where"), Parquet or Arrow.') from None
    _check_round_trip(text, dialect, [_token(*pair) for row in rows for pair in zip(row, kinds, strict=True)], names)
    return text


def _sqlglot() -> Any:
    try:
        import sqlglot
    except ImportError:
        raise missing("sqlglot", "voxpop[sql]") from None
    return sqlglot


def _rows(release: "Release") -> list[tuple[str, ...]]:
    """Return the keys as strings, column by column."""
    items = released_items(release)
    if release.keys is None or not release.keys.columns:
        return [(item,) for item in items.to_pylist()]
    from voxpop.reading.keys import spelled

    texts = [spelled(column.combine_chunks(), "key").to_pylist() for column in release.keys.table(items).columns]
    return list(zip(*texts, strict=True))


def _kinds(release: "Release") -> list[pa.DataType]:
    columns = release.keys.columns if release.keys is not None else ()
    return [each.type for each in columns] or [pa.string()]


def _value(text: str, kind: pa.DataType) -> Any:
    """Return a literal of SQL."""
    from sqlglot import exp

    name = family(kind)
    if name in ("whole numbers", "decimals"):
        number = exp.Literal.number(text.removeprefix("-"))
        return exp.Neg(this=number) if text.startswith("-") else number
    if name == "truth values":
        return exp.Boolean(this=text == "true")
    if name == "bytes":
        raise InputError("dialects write bytes in ways of their own. Write Parquet or Arrow.")
    literal = exp.Literal.string(text)
    return literal if name == "strings" else exp.cast(literal, TYPES[str(name)])


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
    """Return a query that gives the keys as a table."""
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


def _token(text: str, kind: pa.DataType) -> str:
    """Return the tokens of a value for a parser; truth values are SQL keywords, and signs are separate tokens."""
    name = family(kind)
    return "" if name == "truth values" else text if name == "strings" else text.removeprefix("-")


def _check_round_trip(text: str, dialect: str, values: Sequence[str], names: Sequence[str]) -> None:
    """Read the SQL as its dialect does, and find the same keys and columns in it."""
    import sqlglot
    from sqlglot.tokens import TokenType

    read: dict[Any, list[str]] = {TokenType.STRING: [], TokenType.NUMBER: [], TokenType.IDENTIFIER: []}
    for token in sqlglot.tokenize(text, read=dialect):
        read.get(token.token_type, []).append(token.text)
    wanted = sorted(filter(None, values))
    found = sorted(filter(None, read[TokenType.STRING] + read[TokenType.NUMBER]))
    if values and (found != wanted or not set(names) <= set(read[TokenType.IDENTIFIER])):
        raise InputError(
            f"these keys cannot be written as such SQL of {dialect} safely. Write another form, Parquet or Arrow."
        )


ROW, KEYS, KEY, MARK = "voxpop_row", "voxpop_keys", "voxpop_key", "voxpop_released"
DUCKDB_TYPES = {
    "VARCHAR": pa.string(),
    "ENUM": pa.string(),
    "UUID": pa.string(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIME": pa.time64("us"),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP_S": pa.timestamp("s"),
    "TIMESTAMP_MS": pa.timestamp("ms"),
    "TIMESTAMP_NS": pa.timestamp("ns"),
    "TIMESTAMP WITH TIME ZONE": pa.timestamp("us", "UTC"),
    "DECIMAL": pa.decimal128(38, 0),
    "BLOB": pa.binary(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
}
DUCKDB_WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"}
DUCKDB_WHOLE |= {f"U{name}" for name in DUCKDB_WHOLE}

SPARK_TYPES = {
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "binary": pa.binary(),
    "decimal": pa.decimal128(38, 0),
    "time": pa.time64("us"),
} | dict.fromkeys(("string", "varchar", "char"), pa.string())
SPARK_WHOLE = ("tinyint", "smallint", "int", "bigint")


def duckdb_rows(release: "Release", table: Any, names: list[str]) -> Any:
    """Return a relation of the rows whose key was released, on the relation's own connection."""
    condition, keys = _duckdb_condition(release, table, names)  # noqa: RUF059  # DuckDB finds the table by its name, here
    return table.query(ROW, f"SELECT {ROW}.* FROM {ROW} SEMI JOIN keys {KEYS} ON {condition}")


def duckdb_rows_or_other(release: "Release", table: Any, names: list[str], others: Sequence[Any]) -> Any:
    """Return a relation of all rows in which keys that were not released are others."""
    condition, keys = _duckdb_condition(release, table, names)  # noqa: RUF059  # as above
    kinds = dict(zip(table.columns, map(str, table.types), strict=True))
    swaps = ", ".join(
        f"CASE WHEN {KEYS}.{MARK} THEN {ROW}.{_duckdb_name(name)} "
        f"ELSE CAST({_duckdb_literal(other)} AS {kinds[name]}) END "
        f"AS {_duckdb_name(name)}"
        for name, other in zip(names, others, strict=True)
    )
    marked = f"(SELECT *, true AS {MARK} FROM keys) {KEYS}"
    listed = f"{ROW}.* REPLACE ({swaps})"
    return table.query(ROW, f"SELECT {listed} FROM {ROW} LEFT JOIN {marked} ON {condition}")


def _duckdb_condition(release: "Release", table: Any, names: list[str]) -> tuple[str, pa.Table]:
    """Return when a row has a released key, and the table of keys."""
    check_columns_exist(names, table.columns)
    kinds = dict(zip(table.columns, map(str, table.types), strict=True))
    if kinds[names[0]].endswith("]"):
        check_type(column_type(kinds[names[0]].split("[")[0], DUCKDB_TYPES, DUCKDB_WHOLE), pa.string(), names[0])
        return f"CAST({ROW}.{_duckdb_name(names[0])} AS VARCHAR[]) = {KEYS}.key0", pa.table(
            {"key0": release.grams["gram"]}
        )
    wanted = wanted_types(release)
    if release.keys is not None and release.keys.columns:
        keys = release.keys.table(released_items(release)).rename_columns([f"key{n}" for n in range(len(names))])
    else:
        keys = pa.table({"key0": released_items(release)})
    parts = []
    for number, (name, kind) in enumerate(zip(names, wanted, strict=True)):
        mine = column_type(kinds[name], DUCKDB_TYPES, DUCKDB_WHOLE)
        check_type(mine, kind, name)
        left, right = f"{ROW}.{_duckdb_name(name)}", f"{KEYS}.key{number}"
        same = family(mine) == family(kind) and kinds[name] != "UUID"
        parts.append(f"{left} = {right}" if same else f"CAST({left} AS VARCHAR) = CAST({right} AS VARCHAR)")
    return " AND ".join(parts), keys


def _duckdb_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _duckdb_literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return "'" + str(value).replace("'", "''") + "'"


def spark_rows(release: "Release", table: Any, names: list[str]) -> Any:
    """Return the rows whose key was released."""
    condition, keys = _spark_condition(release, table, names)
    return table.join(keys.hint("broadcast"), condition, "left_semi")


def spark_rows_or_other(release: "Release", table: Any, names: list[str], others: Sequence[Any]) -> Any:
    """Return all rows, in which keys that were not released are others."""
    condition, keys = _spark_condition(release, table, names, marked=True)
    whole = table.join(keys.hint("broadcast"), condition, "left")
    kinds, swapped = dict(table.dtypes), dict(zip(names, others, strict=True))
    return whole.selectExpr(
        *(
            f"CASE WHEN {MARK} THEN {_spark_name(name)} "
            f"ELSE CAST({_spark_literal(swapped[name])} AS {kinds[name]}) END "
            f"AS {_spark_name(name)}"
            if name in swapped
            else _spark_name(name)
            for name in table.columns
        )
    )


def _spark_condition(release: "Release", table: Any, names: list[str], *, marked: bool = False) -> tuple[Any, Any]:
    """Return when a row has a released key, and the table of keys."""
    check_columns_exist(names, table.columns)
    kinds = dict(table.dtypes)
    session = table.sparkSession
    mark = f", {MARK} boolean" if marked else ""
    if kinds[names[0]].startswith("array<"):
        check_type(column_type(kinds[names[0]][6:-1], SPARK_TYPES, SPARK_WHOLE), pa.string(), names[0])
        keys = session.createDataFrame([(list(gram),) for gram in release.each_gram()], f"{KEY}0 array<string>")
        return table[names[0]].cast("array<string>") == keys[f"{KEY}0"], keys
    wanted = wanted_types(release)
    columns = [released_items(release)]
    if release.keys is not None and release.keys.columns:
        columns = release.keys.table(columns[0]).columns
    fields = ", ".join(f"{KEY}{number} {_spark_type(kind)}" for number, kind in enumerate(wanted))
    values = [column.to_pylist() for column in columns]
    rows = [(*row, True)[: len(names) + marked] for row in zip(*values, strict=True)]
    keys = session.createDataFrame(rows, fields + mark)
    condition = None
    for number, (name, kind) in enumerate(zip(names, wanted, strict=True)):
        check_type(column_type(kinds[name], SPARK_TYPES, SPARK_WHOLE), kind, name)
        left = table[name].cast("string") if kind in (pa.string(), pa.null()) else table[name]
        equal = left == keys[f"{KEY}{number}"]
        condition = equal if condition is None else condition & equal
    return condition, keys


def _spark_type(kind: pa.DataType) -> str:
    """Return the type of Spark that holds the values of an Arrow type."""
    if pa.types.is_null(kind):
        return "string"
    names = {"strings": "string", "truth values": "boolean", "dates": "date", "times": "timestamp_ntz"}
    names |= {"times with a zone": "timestamp", "bytes": "binary", "times of day": "time(6)"}
    if family(kind) == "whole numbers":
        return "decimal(20, 0)" if kind == pa.uint64() else "bigint"
    return f"decimal({kind.precision}, {kind.scale})" if family(kind) == "decimals" else names[str(family(kind))]


def _spark_name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _spark_literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
