"""Joins of a DuckDB relation or a Spark table with released keys, which the engine of the table runs itself.

Keys are compared in the type of the column, and as strings where one side is a string.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from voxpop.exports.keys import check_columns_exist, check_type, column_type, released_items, wanted_types
from voxpop.reading.keys import family

if TYPE_CHECKING:
    from voxpop.release.release import Release

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
