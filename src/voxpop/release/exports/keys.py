"""The rows of a table whose key was released: what is left of a group-by, so that its groups betray nobody.

Every kind of table keeps its own kind. Keys are compared as `voxpop.read` reads them: whole numbers as their decimal
strings, lists as grams, and null is never released.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.errors import ColumnError, InputError

if TYPE_CHECKING:
    from voxpop.release.release import Release

ROW, KEY = "voxpop_row", "voxpop_key"


def keep_released(release: "Release", table: Any, column: str) -> Any:
    """Return the rows whose key was released; see `Release.keep`."""
    kind = f"{type(table).__module__.partition('.')[0]}.{type(table).__name__}"
    if kind in ("polars.DataFrame", "polars.LazyFrame"):
        return _from_polars(release, table, column)
    if kind == "pandas.DataFrame":
        _check_column(column, list(table.columns))
        return table[released_rows(release, _from_pandas(table[column], column), column).to_numpy(False)]
    if isinstance(table, pa.Table | pa.RecordBatch):
        _check_column(column, table.schema.names)
        return table.filter(released_rows(release, table.column(column), column))
    if kind in ("duckdb.DuckDBPyRelation", "_duckdb.DuckDBPyRelation"):
        return _from_duckdb(release, table, column)
    if kind == "pyspark.DataFrame":
        return _from_spark(release, table, column)
    raise InputError(
        "`keep` takes a polars, pandas or pyarrow table, a DuckDB relation or a Spark table, "
        f"got {type(table).__name__}."
    )


def released_rows(release: "Release", keys: Any, column: str) -> Any:
    """Say of each key whether it was released.

    Args:
        release: what was released.
        keys: pyarrow array of strings, whole numbers, or lists of them.
        column: its name, for messages.

    Returns:
        pyarrow array of truth values; null is not released.

    Raises:
        ColumnError: for keys of any other type.
    """
    keys = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
    if pa.types.is_dictionary(keys.type):
        keys = keys.dictionary_decode()
    if pa.types.is_null(keys.type):
        return pa.array(np.zeros(len(keys), np.bool_))
    if _is_list(keys.type):
        return _released_lists(release, keys, column)
    return pc.is_in(_strings(keys, column), value_set=_items(release).cast(pa.large_string()))


def _released_lists(release: "Release", keys: Any, column: str) -> Any:
    """Number the distinct tokens, then compare grams as bytes of their numbers."""
    large = keys.cast(pa.large_list(keys.type.value_type))
    tokens = _strings(large.flatten(), column)
    vocabulary = pc.unique(pa.concat_arrays([each.cast(pa.large_string()) for each in _chunks(release)]))
    numbers = pc.index_in(tokens, value_set=vocabulary).fill_null(-1).to_numpy(zero_copy_only=False)
    ends = np.cumsum(pc.list_value_length(large).fill_null(0).to_numpy(zero_copy_only=False))
    place = {token: number for number, token in enumerate(vocabulary.to_pylist())}
    grams = {np.array([place[token] for token in gram], np.int32).tobytes() for gram in release}
    flat = numbers.astype(np.int32)
    starts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
    found = [flat[begin:end].tobytes() in grams for begin, end in zip(starts, ends, strict=True)]
    return pc.and_(pa.array(found, pa.bool_()), keys.is_valid())


def _chunks(release: "Release") -> list[Any]:
    return [chunk.flatten() for chunk in release.grams["gram"].chunks] or [pa.array([], pa.string())]


def _items(release: "Release") -> Any:
    """Return the released grams of length 1 as strings."""
    single = release.grams.filter(pc.equal(release.grams["length"], 1))["gram"]
    return pc.list_flatten(single).combine_chunks()


def _strings(values: Any, column: str) -> Any:
    """Return keys as `voxpop.read` spells them."""
    if pa.types.is_integer(values.type) or pa.types.is_null(values.type):
        return values.cast(pa.large_string())
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type) or pa.types.is_string_view(values.type):
        return values.cast(pa.large_string())
    raise ColumnError(
        f'the column "{column}" holds {values.type}; released keys are strings or whole numbers, or lists of them. '
        "Cast it to what was released."
    )


def _is_list(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _check_column(column: str, existing: list[Any]) -> None:
    if column not in existing:
        listed = ", ".join(f'"{each}"' for each in existing)
        raise ColumnError(f'the table has no column "{column}"; it has {listed}.')


def _from_polars(release: "Release", table: Any, column: str) -> Any:
    import polars as pl

    _check_column(column, table.collect_schema().names())

    def released(keys: pl.Series) -> pl.Series:
        return pl.Series(values=released_rows(release, keys.to_arrow(), column), dtype=pl.Boolean)

    return table.filter(pl.col(column).map_batches(released, return_dtype=pl.Boolean))


def _from_pandas(keys: Any, column: str) -> Any:
    if keys.dtype.kind == "f" and bool((keys.isna() | (keys == keys.round())).all()):
        keys = keys.astype("Int64")  # pandas makes whole numbers with gaps floating
    values = keys.to_numpy()
    if keys.dtype == object and any(isinstance(value, list | tuple | np.ndarray) for value in values):
        keys = [None if value is None or value is np.nan else list(value) for value in values]
    try:
        return pa.array(keys, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError):
        raise ColumnError(f'the column "{column}" mixes types; make its keys of one type.') from None


def _from_duckdb(release: "Release", table: Any, column: str) -> Any:
    """Let DuckDB join: its relation is never read here, and stays with its own connection."""
    _check_column(column, table.columns)
    kind = str(dict(zip(table.columns, map(str, table.types), strict=True))[column])
    name = '"' + column.replace('"', '""') + '"'
    keys = _keys_table(release, as_lists=kind.endswith("]"))  # noqa: F841  # DuckDB finds it by its name, here
    _check_words(kind, _DUCKDB, column)
    cast = "VARCHAR[]" if kind.endswith("]") else "VARCHAR"
    query = f"SELECT {ROW}.* FROM {ROW} SEMI JOIN keys ON CAST({ROW}.{name} AS {cast}) = keys.{KEY}"
    return table.query(ROW, query)


def _from_spark(release: "Release", table: Any, column: str) -> Any:
    """Let Spark join with a copy of the keys on every executor."""
    _check_column(column, table.columns)
    kind = dict(table.dtypes)[column]
    as_lists = kind.startswith("array<")
    _check_words(kind.removeprefix("array<").removesuffix(">"), _SPARK, column)
    rows = [(list(gram),) for gram in release] if as_lists else [(gram[0],) for gram in release if len(gram) == 1]
    cast = "array<string>" if as_lists else "string"
    keys = table.sparkSession.createDataFrame(rows, f"{KEY} {cast}").hint("broadcast")
    return table.join(keys, table[column].cast(cast) == keys[KEY], "left_semi")


_DUCKDB = ("VARCHAR", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER")
_SPARK = ("string", "tinyint", "smallint", "int", "bigint")


def _check_words(kind: str, known: tuple[str, ...], column: str) -> None:
    base = kind.split("[")[0].split("(")[0]
    if base not in (*known, "UBIGINT", "UHUGEINT", "ENUM", "varchar", "char"):
        raise ColumnError(
            f'the column "{column}" holds {kind}; released keys are strings or whole numbers, or lists of them. '
            "Cast it to what was released."
        )


def _keys_table(release: "Release", *, as_lists: bool) -> pa.Table:
    return pa.table({KEY: release.grams["gram"]}) if as_lists else pa.table({KEY: _items(release)})
