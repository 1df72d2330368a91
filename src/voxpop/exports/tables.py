"""Functions that keep only the table rows with released keys, or put all other rows into one group.

The result is of the same kind as the table (polars, pandas or pyarrow). Keys are compared in the spelling of
`voxpop.reading.keys`, lists are compared as grams, and null is never released. For databases, `to_sql` writes a
condition. Spark tables are joined with the released keys.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.errors import ColumnError, InputError
from voxpop.exports.sql import Columns, key_names, key_types, released_items
from voxpop.kernels.threads import require_polars
from voxpop.reading.arrow import array_of, joined
from voxpop.reading.columns import check_columns
from voxpop.reading.keys import NO_KEYS, family, is_list, spelled, unspelled, value_type
from voxpop.reading.sources import is_spark
from voxpop.reading.types import Column, array_of_objects
from voxpop.release.release import Release

if TYPE_CHECKING:
    from voxpop.release.counts import Addition

_SPARK_DIGITS = 38
"""The maximum number of digits of decimals in Spark. A comparison rounds decimals that would need more digits."""


def filter(release: Release, table: Any, columns: Columns = None) -> Any:
    """Keep the rows that have a released key.

    The selection of rows reveals nothing beyond the release. Statistics of the remaining groups need a separate budget.

    Args:
        release: A release of items or grams.
        table: A polars table (possibly lazy), a pandas or pyarrow table, or a Spark DataFrame, which Spark joins.
        columns: The key columns. The default is the columns of the release. For words, name a column of strings. For
            grams, name a column of lists.

    Returns:
        A table of the same kind, with its rows in the same order.

    Raises:
        ColumnError: If a column is missing or has the wrong type.
        InputError: If the table has an unsupported type, or the columns are unknown.

    Example:
        >>> import polars as pl
        >>> import pyarrow as pa
        >>> import voxpop as vp
        >>> from voxpop.release.result import StoredPlan
        >>> words = vp.Release.from_items(pa.array(["tea"]), StoredPlan({}), vp.Guarantee(4, 1e-7))
        >>> filter(words, pl.DataFrame({"word": ["tea", "oat", "tea"]}), "word")["word"].to_list()
        ['tea', 'tea']
    """
    if is_spark(table):
        return _filtered_on_spark(release, table, columns)
    names, library = key_names(release, columns), _library_of(table)
    mask = _MASKS[library](release, table, names)
    return table[mask] if library == "pandas" else table.filter(mask)


def with_other(release: Release, table: Any, columns: Columns = None, other: Any = "other") -> Any:
    """Give one common key to all rows without a released key.

    Args:
        release: A release of items.
        table: A table, as for `filter`.
        columns: The key columns, as for `filter`, but not columns of lists.
        other: The common key, which must have the type of the columns. "other" fits columns of strings, and None fits
            all types. A tuple contains one value for each column. Rows with a null key get the common key too.

    Returns:
        A table of the same kind with all rows.

    Raises:
        ColumnError: If a column is missing or has the wrong type.
        InputError: If `other` is a released key or has the wrong type, or the table has an unsupported type.
    """
    names, library = key_names(release, columns), _library_of(table)
    others = _others(release, names, other)
    return _SWAPS[library](table, _MASKS[library](release, table, names), names, others)


def to_spark(release: "Release | Addition", session: Any, columns: Columns = None) -> Any:
    """Return the released keys, or the table of counts or a ranking, as a Spark DataFrame for joins.

    A left semi join, `table.join(keys, "shop", "left_semi")`, keeps the rows with a released key, as `filter` does.

    Args:
        release: A release of items or grams, or its counts or its ranking.
        session: The Spark session.
        columns: Names of the columns. The default is the columns of the release. For words, the default is "word". For
            grams, the default is "gram", a column of lists.

    Returns:
        A DataFrame that contains only the key columns, or, for counts and rankings, the columns of `to_arrow`.
    """
    table = release.to_arrow()
    if not isinstance(release, Release):
        if columns is not None:
            raise InputError(
                "`columns` applies only to a release, not to counts or rankings. Rename the columns of counts in Spark."
            )
        return session.createDataFrame(table)
    if release.keys is None:
        table = table.select(["gram"])
    names = key_names(release, columns or table.column_names)
    return session.createDataFrame(_in_microseconds(table.rename_columns(names)))


def _in_microseconds(table: pa.Table) -> pa.Table:
    """Return a table with times in microseconds, because Spark truncates smaller units.

    Raises:
        InputError: A time is not a whole number of microseconds.
    """
    fields = [
        each.with_type(pa.timestamp("us", each.type.tz)) if pa.types.is_timestamp(each.type) else each
        for each in table.schema
    ]
    try:
        return table.cast(pa.schema(fields))
    except pa.ArrowInvalid:
        raise InputError(
            "the released times have nanoseconds, which Spark truncates, so other times would be equal to them. "
            "Cast the column to microseconds before the release."
        ) from None


def _filtered_on_spark(release: Release, table: Any, columns: Columns) -> Any:
    """Keep the rows of a Spark DataFrame that have a released key. Null is never equal to a key."""
    from voxpop.engine.spark.reading import arrow_schema, has_collation

    names = key_names(release, columns)
    check_columns(names, list(table.columns), "the table")
    kinds = arrow_schema(table)
    for name, wanted in zip(names, key_types(release), strict=True):
        kind = table.schema[name].dataType
        if has_collation(getattr(kind, "elementType", kind)) or not _compares_exactly(kinds[name], wanted):
            raise ColumnError(
                f'the column "{name}" contains {kind.simpleString()}, and released keys are {family(wanted)} '
                f"({wanted}). Spark would also join other values. Cast the column to the released type, and strings "
                "with a collation to collate(column, 'UTF8_BINARY')."
            )
    named: Columns = names[0] if len(names) == 1 else names
    return table.join(to_spark(release, table.sparkSession, named), names, "left_semi")


def _compares_exactly(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether Spark neither casts nor rounds values in a comparison, so that no other values are equal."""
    if family(kind) != family(wanted) or not pa.types.is_decimal(kind):
        return family(kind) == family(wanted)
    whole = max(each.precision - each.scale for each in (kind, wanted))
    return bool(whole + max(kind.scale, wanted.scale) <= _SPARK_DIGITS)


def _library_of(table: Any) -> str:
    """Return the library of a table.

    Raises:
        InputError: If the table is of an unsupported type.
    """
    if isinstance(table, pa.Table | pa.RecordBatch):
        return "pyarrow"
    kind = f"{type(table).__module__.partition('.')[0]}.{type(table).__name__}"
    if kind in ("polars.DataFrame", "polars.LazyFrame", "pandas.DataFrame"):
        return kind.partition(".")[0]
    raise InputError(
        f"the table must be one of polars, pandas or pyarrow, got {type(table).__name__}. Convert other tables with an "
        "Arrow interface with pyarrow.table(...); for a database use `to_sql`, and on Spark join with `to_spark` "
        "(docs/guides/exports.md)."
    )


def released_rows(release: Release, keys: Sequence[Any], names: Sequence[str]) -> Any:
    """Return, for each key, whether it was released.

    Args:
        release: The released keys.
        keys: Pyarrow arrays, one for each column of a key.
        names: The names of the columns, for messages.

    Returns:
        A pyarrow array of booleans, which is false for null.

    Raises:
        ColumnError: If the keys have the wrong type.
    """
    plain = [joined(each) for each in keys]
    kind = plain[0].type
    if is_list(kind):
        check_type(kind.value_type, pa.string(), names[0])
        grams = set(release.each_gram())
        lists = (None if each is None or None in each else tuple(map(str, each)) for each in plain[0].to_pylist())
        return pa.array([each in grams for each in lists], pa.bool_())
    if not len(release):
        return array_of(np.zeros(len(plain[0]), np.bool_))
    kinds = key_types(release)
    for each, name, wanted in zip(plain, names, kinds, strict=True):
        check_type(each.type, wanted, name)
    plain = [_as_released(each, wanted, name) for each, wanted, name in zip(plain, kinds, names, strict=True)]
    items = spelled(plain[0], names[0]) if len(plain) == 1 else (release.keys or NO_KEYS).spell(plain)
    return pc.is_in(items, value_set=released_items(release))


def _as_released(values: pa.Array, wanted: pa.DataType, name: str) -> pa.Array:
    """Return strings as values of the released type, as `types=` of `voxpop.read` does. Other values remain unchanged.

    Raises:
        ColumnError: If a string does not spell a value of this type.
    """
    if family(value_type(values.type)) != "strings" or family(wanted) == "strings":
        return values
    texts = values.cast(pa.large_string())
    try:
        return unspelled(texts, wanted)
    except (ValueError, ArithmeticError, pa.ArrowException):
        raise ColumnError(
            f'the column "{name}" contains a value that does not spell one of the released {family(wanted)}. Cast the '
            f"column to {wanted}, or correct this value."
        ) from None


def check_type(kind: Any, wanted: Any, name: str) -> None:
    """Raise an error if different values could have the same spelling.

    Strings are accepted for every released type, because they may be the spellings of its values. If the released
    values are strings, whole numbers and UUIDs are also accepted.
    """
    kind = value_type(kind)
    if pa.types.is_null(kind):
        return
    mine, theirs = family(kind), family(wanted)
    by_spelling = (mine == "strings", theirs == "strings" and mine in ("whole numbers", "UUIDs"))
    if mine is None or (mine != theirs and not any(by_spelling)):
        raise ColumnError(
            f'the column "{name}" contains {kind}, and released keys are {theirs}, or lists of them for grams. '
            "Cast it to the released type."
        )


def _check_columns_exist(names: Sequence[str], existing: Sequence[Any]) -> None:
    for name in names:
        if name not in existing:
            check_columns([name], [str(each) for each in existing], "the table")


def _arrow_mask(release: Release, table: Any, names: list[str]) -> Any:
    _check_columns_exist(names, table.schema.names)
    return released_rows(release, [table.column(name) for name in names], names)


def _pandas_mask(release: Release, table: Any, names: list[str]) -> Any:
    _check_columns_exist(names, list(table.columns))
    return released_rows(release, [_from_pandas(table[name], name) for name in names], names).to_numpy(False)


def _polars_mask(release: Release, table: Any, names: list[str]) -> Any:
    import polars as pl

    require_polars()
    _check_columns_exist(names, table.collect_schema().names())

    def released(keys: pl.Series) -> pl.Series:
        columns = [keys.struct.field(name).to_arrow() for name in names]
        # A lazy table has no rows, so its type cannot be determined from rows.
        return pl.Series(values=released_rows(release, columns, names) if len(keys) else [], dtype=pl.Boolean)

    return pl.struct(names).map_batches(released, return_dtype=pl.Boolean)


_MASKS = {"pyarrow": _arrow_mask, "pandas": _pandas_mask, "polars": _polars_mask}


def _from_pandas(keys: Any, column: str) -> Any:
    if keys.dtype.kind == "f" and bool((keys.isna() | (keys == keys.round())).all()):
        keys = keys.astype("Int64")  # pandas stores integers with missing values as floats.
    if keys.dtype == object:
        # Objects declare no type, so they are spelled as in `voxpop.read`.
        lists = any(isinstance(each, list | tuple | np.ndarray) for each in keys)
        return array_of_objects(keys, Column(column, lists=lists), "the table", 0)
    return pa.array(keys, from_pandas=True)


def _others(release: Release, names: Sequence[str], other: Any) -> list[Any]:
    """Return the common key of each column. Raise an error if the key was released."""
    others = list(other) if isinstance(other, tuple) else [other] * len(names)
    if len(others) != len(names):
        raise InputError(f"`other` must be one value, or {len(names)} values with one for each column.")
    if None not in others and (others[0] if len(others) == 1 else tuple(others)) in release:
        raise InputError("`other` is itself a released key, so the two groups would be the same; choose another value.")
    return others


def _in_polars(table: Any, mask: Any, names: list[str], others: list[Any]) -> Any:
    import polars as pl

    require_polars()
    schema = table.collect_schema()
    swaps = []
    for name, other in zip(names, others, strict=True):
        kind = pl.String if isinstance(schema[name], pl.Enum) else schema[name]
        _check_fits(other, pl.Series(values=[], dtype=kind).to_arrow().type, name)
        swaps.append(pl.when("voxpop_released").then(pl.col(name)).otherwise(pl.lit(other).cast(kind)).alias(name))
    return table.with_columns(mask.alias("voxpop_released")).with_columns(swaps).drop("voxpop_released")


def _in_pandas(table: Any, mask: Any, names: list[str], others: list[Any]) -> Any:
    import pandas as pd

    swapped = table.copy()
    for name, other in zip(names, others, strict=True):
        column = table[name].astype(object) if isinstance(table[name].dtype, pd.CategoricalDtype) else table[name]
        if other is not None and column.dtype != object:
            _check_fits(other, pa.array(column, from_pandas=True).type, name)
        swapped[name] = column.where(mask, other)
    return swapped


def _in_arrow(table: Any, mask: Any, names: list[str], others: list[Any]) -> Any:
    for name, other in zip(names, others, strict=True):
        column = joined(table.column(name))
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        _check_fits(other, column.type, name)
        swapped = pc.if_else(mask, column, pa.scalar(other, column.type))
        table = table.set_column(table.schema.get_field_index(name), name, swapped)
    return table


_SWAPS = {"pyarrow": _in_arrow, "pandas": _in_pandas, "polars": _in_polars}


def _check_fits(other: Any, kind: pa.DataType, name: str) -> None:
    """Raise an error if a column cannot contain its part of the common key."""
    kind = value_type(kind)
    try:
        pa.scalar(other, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise ColumnError(
            f'`other` does not fit the column "{name}", which contains {kind}. Give a value of that type that is not a '
            "released key, or None."
        ) from None
