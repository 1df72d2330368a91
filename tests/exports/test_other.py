"""Tests that `exports.with_other` puts all other rows into one group in every kind of table."""

import datetime as dt

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import voxpop as vp
from voxpop.errors import ColumnError, InputError
from voxpop.reading.keys import KeyColumn, Keys, plain_type
from voxpop.release.result import StoredPlan

DAY = dt.date(2026, 11, 22)
FRAME = pl.DataFrame(
    {
        "word": ["tea", "secret", None, "oat"],
        "shop": [7, 4711, 7, None],
        "day": [DAY, DAY, dt.date(1999, 1, 1), DAY],
        "row": [0, 1, 2, 3],
    }
)
KINDS = {
    "polars": lambda: FRAME,
    "lazy": FRAME.lazy,
    "pandas": lambda: pd.DataFrame(FRAME.to_dict(as_series=False)).astype({"shop": "Int64"}),
    "arrow": FRAME.to_arrow,
    "batch": lambda: FRAME.to_arrow().combine_chunks().to_batches()[0],
}


@pytest.fixture
def words(released):
    release = released([("oat",), ("tea",)])
    return vp.Release(release.grams, release.plan, release.guarantee, keys=Keys())


def pair_keys():
    table = pa.table({"shop": [7], "day": [DAY]})
    keys = Keys(tuple(KeyColumn(each.name, str(plain_type(each.type))) for each in table.schema))
    items = keys.spell([column.chunk(0) for column in table.columns]).cast(pa.string())
    return vp.Release.from_items(items, StoredPlan({}), vp.Guarantee(4, 1e-7), "items", keys)


def column_of(table, name):
    if isinstance(table, pl.LazyFrame):
        table = table.collect()
    if isinstance(table, pd.DataFrame):
        return [None if value is None or value is pd.NA else value for value in table[name]]
    column = table[name]
    return column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_unreleased_keys_become_other(words, kind):
    """Unreleased keys and nulls become "other". The other rows, their order and the kind of table do not change."""
    table = KINDS[kind]()
    found = vp.exports.with_other(words, table, "word")
    assert type(found) is type(table)
    assert column_of(found, "word") == ["tea", "other", "other", "oat"]
    assert column_of(found, "row") == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_several_columns_of_any_type_are_replaced(kind):
    """The argument `other` has one value per column, which is None or has the type of the column."""
    found = vp.exports.with_other(pair_keys(), KINDS[kind](), other=(-1, None))
    assert column_of(found, "shop") == [7, -1, -1, -1]
    assert str(column_of(found, "day")[0])[:10] == "2026-11-22"
    assert [day is None or day is pd.NaT for day in column_of(found, "day")] == [False, True, True, True]


def test_invalid_requests_are_rejected(words):
    """The cases are a released word as `other`, a value of another type, and an object that is not a table."""
    with pytest.raises(InputError, match="itself a released key"):
        vp.exports.with_other(words, FRAME, "word", "tea")
    with pytest.raises(ColumnError, match="does not fit"):
        vp.exports.with_other(pair_keys(), FRAME)
    with pytest.raises(InputError, match="2 values"):
        vp.exports.with_other(pair_keys(), FRAME, other=(1, 2, 3))
    with pytest.raises(InputError, match="polars, pandas or pyarrow"):
        vp.exports.with_other(words, [1], "word")
