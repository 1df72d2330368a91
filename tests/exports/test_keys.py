"""Tests that `exports.filter` keeps the rows with a released key in every kind of table."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import voxpop as vp
from support.released_keys import keys_of
from voxpop.errors import ColumnError
from voxpop.exports.tables import released_rows
from voxpop.release.result import StoredPlan

SURROGATE = pd.DataFrame({"word": pd.Series(["tea", "\ud800"], dtype=object)})
FRAME = pl.DataFrame(
    {
        "word": ["tea", "coffee", None, "tea", "New York", "7"],
        "number": [7, 8, None, 7, -1, 0],
        "gram": [["tea"], ["New York", "tea"], None, [], ["tea", "New York"], ["New York", None]],
        "numbers": [[7], [7, 7], None, [], [7, 8], [7]],
        "row": [0, 1, 2, 3, 4, 5],
    }
)
KEPT = {"word": [0, 3, 4, 5], "number": [0, 3, 4], "gram": [0, 1], "numbers": [0, 1, 5]}


@pytest.fixture
def keys(released):
    """Return a release of items that look like numbers and words, and of two pairs."""
    return released([("-1",), ("7",), ("07",), ("New York",), ("tea",), ("New York", "tea"), ("7", "7")])


def rows_of(table):
    if isinstance(table, pl.LazyFrame):
        table = table.collect()
    column = table["row"]
    return sorted(column.to_pylist() if hasattr(column, "to_pylist") else column.to_list())


KINDS = {
    "polars": lambda: FRAME,
    "lazy": lambda: FRAME.lazy(),
    "pandas": lambda: pd.DataFrame(FRAME.to_dict(as_series=False)),
    "arrow": lambda: FRAME.to_arrow(),
    "batch": lambda: FRAME.to_arrow().combine_chunks().to_batches()[0],
}


@pytest.mark.parametrize("column", KEPT)
@pytest.mark.parametrize("kind", KINDS)
def test_released_rows_are_kept(keys, kind, column):
    """Rows with released strings, integers or lists of both are kept, but not nulls.

    The result is the same kind of table.
    """
    table = KINDS[kind]()
    kept = vp.exports.filter(keys, table, column)
    assert type(kept) is type(table)
    assert rows_of(kept) == KEPT[column]


def test_the_condition_filters_duckdb_relations():
    """The condition works on the connection of a DuckDB relation, which is not the default connection."""
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: make exports")
    pytest.importorskip("sqlglot", reason="sqlglot is not installed: make exports")
    release = vp.Release.from_items(pa.array(["New York", "tea"]), StoredPlan({}), vp.Guarantee(1, 1e-7))
    connection = duckdb.connect()
    connection.register("shops", FRAME.to_arrow())
    kept = connection.sql("SELECT * FROM shops").filter(vp.exports.to_sql(release, "duckdb", columns="word"))
    assert sorted(row for (row,) in kept.select("row").fetchall()) == [0, 3, 4]


def test_categories_and_slices_are_filtered(keys):
    """Values in categories, enums and sliced tables are compared as plain values."""
    words = FRAME.select("row", word=pl.col("word").cast(pl.Categorical)).slice(1)
    assert rows_of(vp.exports.filter(keys, words, "word")) == [3, 4, 5]
    pandas = pd.DataFrame({"word": pd.Categorical(["tea", "milk", None]), "row": [0, 1, 2]}, index=[5, 6, 7])
    assert vp.exports.filter(keys, pandas, "word").index.tolist() == [5]
    assert rows_of(vp.exports.filter(keys, FRAME.to_arrow().slice(3), "gram")) == []


def test_chunked_tables_are_filtered(keys):
    """Tables of several chunks and of one chunk give the same rows."""
    table = pa.concat_tables([FRAME.to_arrow()] * 2)
    for column, rows in KEPT.items():
        assert rows_of(vp.exports.filter(keys, table, column)) == sorted(2 * rows)


@pytest.mark.parametrize("column", ["half", "day", "truth"])
def test_other_types_are_rejected(keys, column):
    """Columns of fractions, dates or truth values are rejected.

    Objects in pandas, such as its dates, are read as strings.
    """
    import datetime

    frame = pl.DataFrame({"half": [0.5], "day": [datetime.date(2026, 1, 1)], "truth": [True]})
    pandas = [] if column == "day" else [pd.DataFrame(frame.to_dict(as_series=False))]
    for table in (frame.to_arrow(), *pandas):
        with pytest.raises(vp.errors.ColumnError, match=f'"{column}"'):
            vp.exports.filter(keys, table, column)


def test_missing_columns_and_wrong_types_are_reported(keys):
    """A missing column and an object that is not a table raise errors."""
    for table in (FRAME, FRAME.lazy(), FRAME.to_arrow(), pd.DataFrame({"word": ["tea"]})):
        with pytest.raises(vp.errors.ColumnError, match='no column "wrod"'):
            vp.exports.filter(keys, table, "wrod")
    with pytest.raises(vp.errors.InputError, match="polars, pandas or pyarrow"):
        vp.exports.filter(keys, {"word": ["tea"]}, "word")


def test_filtering_by_an_empty_release_removes_all_rows(released):
    """An empty release keeps no rows and raises no error."""
    for column in KEPT:
        assert rows_of(vp.exports.filter(released([]), FRAME, column)) == []


TOKEN = st.sampled_from(["a", "b", "ab", "a b", ""])
GRAM = st.lists(TOKEN, min_size=1, max_size=3)


@given(grams=st.lists(GRAM, max_size=6), rows=st.lists(st.none() | st.lists(st.none() | TOKEN, max_size=3), max_size=8))
def test_lists_are_compared_token_by_token(grams, rows):
    """Lists of tokens are compared like tuples in Python."""
    from voxpop.release.table import SCHEMA

    distinct = sorted({tuple(gram) for gram in grams}, key=lambda gram: (len(gram), gram))
    table = pa.table({"gram": [list(g) for g in distinct], "length": [len(g) for g in distinct]}, schema=SCHEMA)
    release = vp.Release(table, StoredPlan({}), vp.Guarantee(1, 1e-7))
    found = released_rows(release, [pa.array(rows, pa.list_(pa.string()))], ["key"]).to_pylist()
    assert found == [row is not None and tuple(row) in distinct for row in rows]


def test_a_group_by_keeps_only_released_groups(keys):
    """After filtering, grouping the rows gives only released groups."""
    groups = vp.exports.filter(keys, FRAME, "word").group_by("word").len().sort("word")
    assert groups.rows() == [("7", 1), ("New York", 1), ("tea", 2)]
    assert np.isin(groups["word"].to_list(), [gram[0] for gram in keys if len(gram) == 1]).all()


def test_half_of_a_surrogate_pair_is_rejected(keys):
    """A string with half of a surrogate pair is not valid Unicode. The error does not quote the string."""
    with pytest.raises(vp.errors.SourceError, match=r"first 100 rows .*not Unicode"):
        vp.exports.filter(keys, SURROGATE, "word")


DECIMALS = pa.array([Decimal("1.50")], pa.decimal128(9, 2))


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, object, "category"])
def test_strings_are_compared_as_values_of_the_released_type(kind):
    """Every spelling that `types=` reads as a released value is kept. Nulls are never kept."""
    column = ["1.50", "1.5", "2", None]
    polars = isinstance(kind, type) and kind is not object
    table = pl.DataFrame({"price": pl.Series(column, dtype=kind)}) if polars else None
    table = pd.DataFrame({"price": pd.Series(column, dtype=kind)}) if table is None else table
    kept = vp.exports.filter(keys_of(pa.table({"price": DECIMALS})), table)
    assert list(kept["price"]) == ["1.50", "1.5"]


@pytest.mark.parametrize("value", ["x", pd.Timestamp(2020, 1, 1), "2020-01-01 00:00:00"])
def test_values_that_do_not_spell_the_released_type_are_rejected(value):
    """Objects of another type are rejected, because they would silently match no row. The message contains no value."""
    dates = keys_of(pa.table({"day": [dt.date(2020, 1, 1)]}))
    table = pd.DataFrame({"day": pd.Series([dt.date(2020, 1, 1), value], dtype=object)})
    with pytest.raises(
        ColumnError, match=r"does not spell one of the released dates\. Cast the column to date32"
    ) as found:
        vp.exports.filter(dates, table)
    assert "2020" not in str(found.value)
