"""Rows of a table by released keys: keep them, or put all other rows into one group.

A table of polars, pandas, pyarrow, DuckDB or Spark stays one of its kind. Keys are compared as
`voxpop.reading.keys` spells them, lists are compared as grams, and null is never released.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.errors import ColumnError, InputError
from voxpop.exports.sql import (
    Columns,
    check_columns_exist,
    check_type,
    duckdb_rows,
    duckdb_rows_or_other,
    key_names,
    released_items,
    spark_rows,
    spark_rows_or_other,
    wanted_types,
)
from voxpop.reading.arrow import array_of, joined
from voxpop.reading.keys import WORDS, spelled
from voxpop.reading.objects import array_of_objects

if TYPE_CHECKING:
    from voxpop.release.release import Release

ENGINES = {
    "duckdb.DuckDBPyRelation": "duckdb",
    "_duckdb.DuckDBPyRelation": "duckdb",
    "pyspark.DataFrame": "spark",
    "polars.DataFrame": "polars",
    "polars.LazyFrame": "polars",
    "pandas.DataFrame": "pandas",
}
"""Which library holds a table, by package and class: each verb on tables goes its way."""


def filter(release: "Release", table: Any, columns: Columns = None) -> Any:
    """Keep the rows whose key was released.

    The selection of rows reveals nothing beyond the release. Statistics of the remaining groups need a separate budget.

    Args:
        release: a release of items or grams.
        table: a polars table (also lazy), a pandas or pyarrow table, a DuckDB relation or a Spark table.
        columns: the columns of the keys, by default those that the items came from. For words name a column of
            strings, for grams a column of lists.

    Returns:
        A table of the same kind. Rows keep their order, except in DuckDB and Spark, which promise none.

    Raises:
        ColumnError: If a column is missing or has another type.
        InputError: If the table is of another kind, or the columns are not known.

    Example:
        >>> import polars as pl
        >>> import pyarrow as pa
        >>> import voxpop as vp
        >>> from voxpop.release.result import StoredPlan
        >>> words = vp.Release.from_items(pa.array(["tea"]), StoredPlan({}), vp.Guarantee(4, 1e-7))
        >>> filter(words, pl.DataFrame({"word": ["tea", "oat", "tea"]}), "word")["word"].to_list()
        ['tea', 'tea']
    """
    names, engine = key_names(release, columns), engine_of(table)
    if engine == "duckdb":
        return duckdb_rows(release, table, names)
    if engine == "spark":
        return spark_rows(release, table, names)
    if not engine:
        raise _not_a_table("filter", table)
    mask = MASKS[engine](release, table, names)
    return table[mask] if engine == "pandas" else table.filter(mask)


def with_other(release: "Release", table: Any, columns: Columns = None, other: Any = "other") -> Any:
    """Give all rows whose key was not released one common key.

    Args:
        release: a release of items.
        table: as for `filter`.
        columns: as for `filter`, without lists.
        other: the common key, of the type of the columns: "other" fits strings, None fits all types; a tuple gives one
            value for each column. Rows without a key get it too.

    Returns:
        A table of the same kind with all rows. DuckDB and Spark promise no order.

    Raises:
        ColumnError: If a column is missing or has another type.
        InputError: If `other` is a released key or has another type, or the table is of another kind.
    """
    names, engine = key_names(release, columns), engine_of(table)
    others = _others(release, names, other)
    if engine == "duckdb":
        return duckdb_rows_or_other(release, table, names, others)
    if engine == "spark":
        return spark_rows_or_other(release, table, names, others)
    if isinstance(table, pa.RecordBatch):
        whole = with_other(release, pa.Table.from_batches([table]), columns, other)
        return whole.combine_chunks().to_batches()[0] if whole.num_rows else table
    if not engine:
        raise _not_a_table("with_other", table)
    return _SWAPS[engine](table, MASKS[engine](release, table, names), names, others)


def _not_a_table(verb: str, table: Any) -> InputError:
    """Build the error for a table of an unsupported type."""
    return InputError(
        f"`{verb}` takes a polars, pandas or pyarrow table, a DuckDB relation or a Spark table, got "
        f"{type(table).__name__}. Whatever else speaks Arrow becomes one by pyarrow.table(...)."
    )


def engine_of(table: Any) -> str:
    """Return the supported library that a table belongs to, "" if there is no such library."""
    return (
        "arrow"
        if isinstance(table, pa.Table | pa.RecordBatch)
        else ENGINES.get(f"{type(table).__module__.partition('.')[0]}.{type(table).__name__}", "")
    )


def released_rows(release: "Release", keys: Sequence[Any], names: Sequence[str]) -> Any:
    """Return for each key whether it was released.

    Args:
        release: the released keys.
        keys: pyarrow arrays, one for each column of a key.
        names: of the columns, for messages.

    Returns:
        pyarrow array of truth values; null is not released.

    Raises:
        ColumnError: for keys of another type.
    """
    plain = [joined(each) for each in keys]
    if _is_list(plain[0].type):
        return _released_lists(release, plain[0], names[0])
    if not len(release):
        return _nothing(len(plain[0]))
    for each, name, wanted in zip(plain, names, wanted_types(release), strict=True):
        check_type(each.type, wanted, name)
    items = spelled(plain[0], names[0]) if len(plain) == 1 else (release.keys or WORDS).spell(plain)
    return pc.is_in(items, value_set=released_items(release))


def arrow_mask(release: "Release", table: Any, names: list[str]) -> Any:
    """Return for each row of a pyarrow table whether its key was released."""
    check_columns_exist(names, table.schema.names)
    return released_rows(release, [table.column(name) for name in names], names)


def pandas_mask(release: "Release", table: Any, names: list[str]) -> Any:
    """Return for each row of a pandas table whether its key was released."""
    check_columns_exist(names, list(table.columns))
    return released_rows(release, [_from_pandas(table[name], name) for name in names], names).to_numpy(False)


def polars_mask(release: "Release", table: Any, names: list[str]) -> Any:
    """Return a polars expression that states for each row whether its key was released."""
    import polars as pl

    check_columns_exist(names, table.collect_schema().names())

    def released(keys: pl.Series) -> pl.Series:
        columns = [keys.struct.field(name).to_arrow() for name in names]
        return pl.Series(values=released_rows(release, columns, names), dtype=pl.Boolean)

    return pl.struct(names).map_batches(_on_some(released), return_dtype=pl.Boolean)


MASKS = {"arrow": arrow_mask, "pandas": pandas_mask, "polars": polars_mask}


def _on_some(released: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Leave out the question where there are no rows: a lazy table passes no rows to determine the type."""
    import polars as pl

    return lambda keys: released(keys) if len(keys) else pl.Series(values=[], dtype=pl.Boolean)


def _from_pandas(keys: Any, column: str) -> Any:
    if keys.dtype.kind == "f" and bool((keys.isna() | (keys == keys.round())).all()):
        keys = keys.astype("Int64")  # pandas makes whole numbers with gaps floating
    if keys.dtype == object:
        return array_of_objects(keys.to_numpy(), column)
    return pa.array(keys, from_pandas=True)


def _released_lists(release: "Release", keys: Any, column: str) -> Any:
    """Number the distinct tokens, then compare grams as bytes of their numbers."""
    large = keys.cast(pa.large_list(keys.type.value_type))
    flat = large.flatten()
    check_type(flat.type, pa.string(), column)
    vocabulary = pc.unique(joined(pc.list_flatten(release.grams["gram"])).cast(pa.large_string()))
    numbers = pc.index_in(spelled(flat, column), value_set=vocabulary).fill_null(-1).to_numpy(zero_copy_only=False)
    ends = np.cumsum(pc.list_value_length(large).fill_null(0).to_numpy(zero_copy_only=False))
    place = {token: number for number, token in enumerate(vocabulary.to_pylist())}
    grams = {np.array([place[token] for token in gram], np.int32).tobytes() for gram in release.each_gram()}
    codes = numbers.astype(np.int32)
    starts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
    found = [codes[begin:end].tobytes() in grams for begin, end in zip(starts, ends, strict=True)]
    return pc.and_(pa.array(found, pa.bool_()), keys.is_valid())


def _nothing(rows: int) -> Any:
    return array_of(np.zeros(rows, np.bool_))


def _is_list(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _others(release: "Release", names: Sequence[str], other: Any) -> list[Any]:
    """Return the keys in each column; refuse a key that was itself released."""
    others = list(other) if isinstance(other, tuple) else [other] * len(names)
    if len(others) != len(names):
        raise InputError(f"`other` must be one value or {len(names)} of them, one for each column.")
    if None not in others and (others[0] if len(others) == 1 else tuple(others)) in release:
        raise InputError("`other` is itself a released key, so the two groups would be the same; choose another value.")
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
    """Refuse keys that a column cannot hold."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    try:
        pa.scalar(other, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise ColumnError(
            f'`other` does not fit the column "{name}", which holds {kind}. Give a value of that type that is no key, '
            "or None."
        ) from None
