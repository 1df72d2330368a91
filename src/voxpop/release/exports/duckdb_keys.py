"""Released keys in DuckDB: a join that DuckDB runs itself, so that its rows are never read here.

Keys are compared in the column's own type where they have it, and as strings where one side is of strings.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from voxpop.release.exports.keys import check_columns_exist, check_type, column_type, released_items, wanted_types
from voxpop.spelling import family

if TYPE_CHECKING:
    from voxpop.release.released import Released

ROW, KEYS, MARK = "voxpop_row", "voxpop_keys", "voxpop_released"
TYPES = {
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
WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"}
WHOLE |= {f"U{name}" for name in WHOLE}


def joined_rows(release: "Released", table: Any, names: list[str]) -> Any:
    """Return a relation of the rows whose key was released, on the relation's own connection."""
    condition, keys = _condition(release, table, names)  # noqa: RUF059  # DuckDB finds the table by its name, here
    return table.query(ROW, f"SELECT {ROW}.* FROM {ROW} SEMI JOIN keys {KEYS} ON {condition}")


def rows_or_other(release: "Released", table: Any, names: list[str], others: Sequence[Any]) -> Any:
    """Return a relation of all rows in which keys that were not released are others."""
    condition, keys = _condition(release, table, names)  # noqa: RUF059  # as above
    kinds = dict(zip(table.columns, map(str, table.types), strict=True))
    swaps = ", ".join(
        f"CASE WHEN {KEYS}.{MARK} THEN {ROW}.{_quoted(name)} ELSE CAST({_literal(other)} AS {kinds[name]}) END "
        f"AS {_quoted(name)}"
        for name, other in zip(names, others, strict=True)
    )
    marked = f"(SELECT *, true AS {MARK} FROM keys) {KEYS}"
    listed = f"{ROW}.* REPLACE ({swaps})"
    return table.query(ROW, f"SELECT {listed} FROM {ROW} LEFT JOIN {marked} ON {condition}")


def _condition(release: "Released", table: Any, names: list[str]) -> tuple[str, pa.Table]:
    """Return when a row has a released key, and the table of keys."""
    check_columns_exist(names, table.columns)
    kinds = dict(zip(table.columns, map(str, table.types), strict=True))
    if kinds[names[0]].endswith("]"):
        check_type(column_type(kinds[names[0]].split("[")[0], TYPES, WHOLE), pa.string(), names[0])
        return f"CAST({ROW}.{_quoted(names[0])} AS VARCHAR[]) = {KEYS}.key0", pa.table({"key0": release.grams["gram"]})
    wanted = wanted_types(release)
    if release.keys is not None and release.keys.columns:
        keys = release.keys.table(released_items(release)).rename_columns([f"key{n}" for n in range(len(names))])
    else:
        keys = pa.table({"key0": released_items(release)})
    parts = []
    for number, (name, kind) in enumerate(zip(names, wanted, strict=True)):
        mine = column_type(kinds[name], TYPES, WHOLE)
        check_type(mine, kind, name)
        left, right = f"{ROW}.{_quoted(name)}", f"{KEYS}.key{number}"
        same = family(mine) == family(kind) and kinds[name] != "UUID"
        parts.append(f"{left} = {right}" if same else f"CAST({left} AS VARCHAR) = CAST({right} AS VARCHAR)")
    return " AND ".join(parts), keys


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return "'" + str(value).replace("'", "''") + "'"
