"""Which rows of a table have a released key; every verb on tables asks here.

Keys are compared as `voxpop.spelling` spells them, lists as grams, and null is never released.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.arrow import array_of, joined
from voxpop.errors import ColumnError, InputError
from voxpop.keys import WORDS
from voxpop.objects import array_of_objects
from voxpop.spelling import family, spelled

if TYPE_CHECKING:
    from voxpop.release.released import Released

ENGINES = {
    "duckdb.DuckDBPyRelation": "duckdb",
    "_duckdb.DuckDBPyRelation": "duckdb",
    "pyspark.DataFrame": "spark",
    "polars.DataFrame": "polars",
    "polars.LazyFrame": "polars",
    "pandas.DataFrame": "pandas",
}
"""Which library holds a table, by package and class: each verb on tables goes its way."""
Columns = str | Sequence[str] | None


def not_a_table(verb: str, table: Any) -> InputError:
    """Return the refusal of what no verb takes."""
    return InputError(
        f"`{verb}` takes a polars, pandas or pyarrow table, a DuckDB relation or a Spark table, got "
        f"{type(table).__name__}. Whatever else speaks Arrow becomes one by pyarrow.table(...)."
    )


def engine_of(table: Any) -> str:
    """Return which of the libraries that verbs know holds a table, "" for none."""
    return "arrow" if isinstance(table, pa.Table | pa.RecordBatch) else ENGINES.get(kind_of(table), "")


def row_mask(release: "Released", table: Any, names: list[str]) -> Any:
    """Say of each row of a table in memory whether its key was released, as its library says so."""
    return MASKS[engine_of(table)](release, table, names)


def kind_of(table: Any) -> str:
    """Return package and class of a table, without importing the package."""
    return f"{type(table).__module__.partition('.')[0]}.{type(table).__name__}"


def key_names(release: "Released", columns: Columns) -> list[str]:
    """Return the columns that hold keys.

    Raises:
        InputError: where neither the call nor the release names them, or there are too few or too many.
    """
    ours = [] if release.keys is None else release.keys.names
    names = [columns] if isinstance(columns, str) else list(columns or ours)
    if not names:
        raise InputError("this release holds words or grams, not the keys of a table: name the column to compare.")
    if len(names) != max(1, len(ours)):
        raise InputError(f"the keys of this release have {max(1, len(ours))} columns, got {len(names)} names.")
    return names


def released_rows(release: "Released", keys: Sequence[Any], names: Sequence[str]) -> Any:
    """Say of each key whether it was released.

    Args:
        release: what was released.
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


def wanted_types(release: "Released") -> list[Any]:
    """Return the type of each column of a key; strings for words, and null where nothing was released."""
    if not len(release):
        return [pa.null()] * max(1, 0 if release.keys is None else len(release.keys.columns))
    if release.keys is None or not release.keys.columns:
        return [pa.string()]
    return [each.type for each in release.keys.columns]


def check_type(kind: Any, wanted: Any, name: str) -> None:
    """Refuse to compare what is spelled alike and is not the same; strings may stand for any type."""
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


def released_items(release: "Released") -> Any:
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
            raise ColumnError(f'the table has no column "{name}"; it has {listed}.')


def arrow_mask(release: "Released", table: Any, names: list[str]) -> Any:
    """Say of each row of a pyarrow table whether its key was released."""
    check_columns_exist(names, table.schema.names)
    return released_rows(release, [table.column(name) for name in names], names)


def pandas_mask(release: "Released", table: Any, names: list[str]) -> Any:
    """Say of each row of a pandas table whether its key was released."""
    check_columns_exist(names, list(table.columns))
    return released_rows(release, [_from_pandas(table[name], name) for name in names], names).to_numpy(False)


def polars_mask(release: "Released", table: Any, names: list[str]) -> Any:
    """Return a polars expression that says of each row whether its key was released."""
    import polars as pl

    check_columns_exist(names, table.collect_schema().names())

    def released(keys: pl.Series) -> pl.Series:
        columns = [keys.struct.field(name).to_arrow() for name in names]
        return pl.Series(values=released_rows(release, columns, names), dtype=pl.Boolean)

    return pl.struct(names).map_batches(_on_some(released), return_dtype=pl.Boolean)


MASKS = {"arrow": arrow_mask, "pandas": pandas_mask, "polars": polars_mask}


def column_type(kind: str, types: Mapping[str, pa.DataType], whole: Collection[str]) -> pa.DataType:
    """Return the Arrow type that stands for a column of a database; one without a spelling for those that it has not.

    Args:
        kind: the database's words for a type; what follows in brackets counts for nothing.
        types: Arrow's by the database's words.
        whole: words for whole numbers.
    """
    base = kind.split("(")[0]
    return pa.int64() if base in whole else types.get(base, pa.float64())


def _on_some(released: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Leave out the question where there are no rows: a lazy table asks with none to learn the type."""
    import polars as pl

    return lambda keys: released(keys) if len(keys) else pl.Series(values=[], dtype=pl.Boolean)


def _from_pandas(keys: Any, column: str) -> Any:
    if keys.dtype.kind == "f" and bool((keys.isna() | (keys == keys.round())).all()):
        keys = keys.astype("Int64")  # pandas makes whole numbers with gaps floating
    if keys.dtype == object:
        return array_of_objects(keys.to_numpy(), column)
    return pa.array(keys, from_pandas=True)


def _released_lists(release: "Released", keys: Any, column: str) -> Any:
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
