"""Everything else in one group: rows whose key was not released get a key that stands for all of them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from voxpop.errors import ColumnError, InputError
from voxpop.release.exports.keys import Columns, engine_of, key_names, not_a_table, row_mask

if TYPE_CHECKING:
    from voxpop.release.released import Released


def other_instead(release: "Released", table: Any, columns: Columns, other: Any) -> Any:
    """Return all rows, with `other` for keys that were not released; see `Release.with_other`."""
    names, engine = key_names(release, columns), engine_of(table)
    others = _others(release, names, other)
    if engine == "duckdb":
        from voxpop.release.exports.duckdb_keys import rows_or_other

        return rows_or_other(release, table, names, others)
    if engine == "spark":
        from voxpop.release.exports.spark_keys import frame_or_other

        return frame_or_other(release, table, names, others)
    if isinstance(table, pa.RecordBatch):
        whole = other_instead(release, pa.Table.from_batches([table]), columns, other)
        return whole.combine_chunks().to_batches()[0] if whole.num_rows else table
    if not engine:
        raise not_a_table("with_other", table)
    return _SWAPS[engine](table, row_mask(release, table, names), names, others)


def _others(release: "Released", names: Sequence[str], other: Any) -> list[Any]:
    """Return what stands in each column; refuse a key that was itself released."""
    others = list(other) if isinstance(other, tuple) else [other] * len(names)
    if len(others) != len(names):
        raise InputError(f"`other` must be one value or {len(names)} of them, one for each column.")
    if None not in others and (others[0] if len(others) == 1 else tuple(others)) in release:
        raise InputError("`other` is itself a released key, so nobody could tell the two groups apart; name another.")
    return others


def _in_polars(table: Any, mask: Any, names: list[str], others: list[Any]) -> Any:
    import polars as pl

    schema = table.collect_schema()
    for name, other in zip(names, others, strict=True):
        _check_fits(other, pl.Series(values=[], dtype=schema[name]).to_arrow().type, name)
    marked = table.with_columns(mask.alias("voxpop_released"))
    swaps = [
        pl.when("voxpop_released").then(pl.col(name)).otherwise(pl.lit(other).cast(_wide(schema[name]))).alias(name)
        for name, other in zip(names, others, strict=True)
    ]
    return marked.with_columns(swaps).drop("voxpop_released")


def _wide(kind: Any) -> Any:
    import polars as pl

    return pl.String if isinstance(kind, pl.Enum) else kind


def _in_pandas(table: Any, mask: Any, names: list[str], others: list[Any]) -> Any:
    import pandas as pd

    swapped = table.copy()
    for name, other in zip(names, others, strict=True):
        column = table[name].astype(object) if isinstance(table[name].dtype, pd.CategoricalDtype) else table[name]
        if other is not None and column.dtype != object:
            _check_fits(other, pa.array(column, from_pandas=True).type, name)
        swapped[name] = column.where(mask, other)
    return swapped


def _in_arrow(table: pa.Table, mask: Any, names: list[str], others: list[Any]) -> pa.Table:
    for name, other in zip(names, others, strict=True):
        column = table.column(name).combine_chunks()
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        _check_fits(other, column.type, name)
        swapped = pc.if_else(mask, column, pa.scalar(other, column.type))
        table = table.set_column(table.column_names.index(name), name, swapped)
    return table


_SWAPS = {"arrow": _in_arrow, "pandas": _in_pandas, "polars": _in_polars}


def _check_fits(other: Any, kind: pa.DataType, name: str) -> None:
    """Refuse what a column cannot hold."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    try:
        pa.scalar(other, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise ColumnError(
            f'`other` does not fit the column "{name}", which holds {kind}. Give a value of that type that is no key, '
            "or None."
        ) from None
