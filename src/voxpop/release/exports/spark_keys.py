"""Released keys in Spark: a join with a copy of the keys on every executor."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from voxpop.release.exports.keys import check_columns_exist, check_type, column_type, released_items, wanted_types
from voxpop.spelling import family

if TYPE_CHECKING:
    from voxpop.release.released import Released

KEY, MARK = "voxpop_key", "voxpop_released"
TYPES = {
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "binary": pa.binary(),
    "decimal": pa.decimal128(38, 0),
    "time": pa.time64("us"),
} | dict.fromkeys(("string", "varchar", "char"), pa.string())
WHOLE = ("tinyint", "smallint", "int", "bigint")


def joined_frame(release: "Released", table: Any, names: list[str]) -> Any:
    """Return the rows whose key was released."""
    condition, keys = _condition(release, table, names)
    return table.join(keys.hint("broadcast"), condition, "left_semi")


def frame_or_other(release: "Released", table: Any, names: list[str], others: Sequence[Any]) -> Any:
    """Return all rows, in which keys that were not released are others."""
    condition, keys = _condition(release, table, names, marked=True)
    whole = table.join(keys.hint("broadcast"), condition, "left")
    kinds, swapped = dict(table.dtypes), dict(zip(names, others, strict=True))
    return whole.selectExpr(
        *(
            f"CASE WHEN {MARK} THEN {_quoted(name)} ELSE CAST({_literal(swapped[name])} AS {kinds[name]}) END "
            f"AS {_quoted(name)}"
            if name in swapped
            else _quoted(name)
            for name in table.columns
        )
    )


def _condition(release: "Released", table: Any, names: list[str], *, marked: bool = False) -> tuple[Any, Any]:
    """Return when a row has a released key, and the table of keys."""
    check_columns_exist(names, table.columns)
    kinds = dict(table.dtypes)
    session = table.sparkSession
    mark = f", {MARK} boolean" if marked else ""
    if kinds[names[0]].startswith("array<"):
        check_type(column_type(kinds[names[0]][6:-1], TYPES, WHOLE), pa.string(), names[0])
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
        check_type(column_type(kinds[name], TYPES, WHOLE), kind, name)
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


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
