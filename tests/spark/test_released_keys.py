"""Tests of released keys on Spark, including `to_spark` and joins with Spark tables."""

import datetime
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pytest

import voxpop as vp
from support.released_keys import keys_of
from voxpop.errors import ColumnError, InputError
from voxpop.release.table import table_of_lists

BUDGET = vp.Budget(4, 1e-7)
DAY = datetime.date(2026, 11, 22)


@pytest.fixture(scope="module")
def sales():
    """Return rows with a shop and a day that only one customer has, and rows without a shop."""
    rows = [(user, f"shop {user % 3}", DAY) for user in range(3000)]
    rows += [(1, "clinic", DAY), (2, None, DAY)]
    return pl.DataFrame(rows, schema=["customer", "shop", "day"], orient="row")


def test_a_table_is_joined_with_released_keys(spark, sales):
    """The join keeps as many rows as the join of a polars table, and null is never released."""
    keys = vp.Items(max_items_per_user=1).release(vp.read(sales, user="customer", items=["shop", "day"]), BUDGET)
    frame = spark.createDataFrame(sales.to_arrow())
    kept = vp.exports.filter(keys, frame)
    assert kept.columns == ["shop", "day", "customer"]
    assert kept.count() == vp.exports.filter(keys, sales).height == 3000
    names = vp.exports.to_spark(keys, spark)
    assert sorted(map(tuple, names.collect())) == [(f"shop {number}", DAY) for number in range(3)]
    renamed = vp.exports.to_spark(keys, spark, ["place", "when"])
    assert renamed.columns == ["place", "when"]
    with pytest.raises(ColumnError, match="place"):
        vp.exports.filter(keys, frame, ["place", "day"])


def test_counts_and_rankings_are_converted_to_spark(spark, sales):
    """The tables of counts and rankings have the columns and rows of `to_arrow`. Columns can be renamed in Spark."""
    corpus = vp.read(sales, user="customer", items=["shop", "day"])
    keys = vp.Items(max_items_per_user=1).release(corpus, BUDGET)
    for result in (keys.count(corpus, BUDGET), keys.top(corpus, BUDGET, k=2)):
        frame = vp.exports.to_spark(result, spark)
        assert frame.columns == result.to_arrow().column_names
        assert [tuple(row) for row in frame.collect()] == result.to_polars().rows()
        with pytest.raises(InputError, match="Rename the columns of counts in Spark"):
            vp.exports.to_spark(result, spark, ["place", "when"])


def test_words_and_grams_have_their_columns(spark, sales):
    """Words have one column of strings, and grams have one column of lists."""
    words = vp.Items(max_items_per_user=9).release(vp.read(sales.drop_nulls(), user="customer", text="shop"), BUDGET)
    frame = vp.exports.to_spark(words, spark)
    assert (frame.columns, frame.filter("word = 'shop'").count()) == (["word"], 1)
    grams = vp.Release(table_of_lists([["a"], ["a", "b"]]), words.plan, words.guarantee, "words")
    assert [row.gram for row in vp.exports.to_spark(grams, spark).collect()] == [["a"], ["a", "b"]]


def test_only_equal_values_are_joined(spark):
    """Spark joins convert, truncate and round values, so columns of other types or with finer times are rejected."""

    def kept(key, column):
        return vp.exports.filter(keys_of(pa.table({"key": key})), spark.sql(f"select {column} as key")).count()

    number, price = pa.array([5], pa.int64()), pa.array([Decimal("1.50")], pa.decimal128(9, 2))
    assert kept(number, "cast(5 as smallint)") == kept(price, "cast(1.5 as decimal(12, 4))") == kept(["a"], "'a'") == 1
    for key, column in (
        (number, "'05'"),
        (["5"], "5"),
        (price, "cast(1.5 as decimal(38, 36))"),
        (["a"], "collate('A', 'UTF8_LCASE')"),
        ([DAY], "timestamp_ntz'2026-11-22 00:00:01'"),
    ):
        with pytest.raises(ColumnError, match=r'"key" contains .* Cast the column to the released type'):
            kept(key, column)
    with pytest.raises(InputError, match="nanoseconds, which Spark truncates"):
        kept(pa.array([1], pa.timestamp("ns")), "timestamp_ntz'1970-01-01 00:00:00'")
    assert kept(pa.array([10**9], pa.timestamp("ns")), "timestamp_ntz'1970-01-01 00:00:01'") == 1
