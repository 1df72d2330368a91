"""Released keys on Spark: `to_spark`, and joins with tables of Spark."""

import datetime

import polars as pl
import pytest

import voxpop as vp
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
    """The same rows remain as in a polars table, and null is never released."""
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


def test_counts_and_rankings_return_to_spark(spark, sales):
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
    """Words have one column of strings, and grams one column of lists."""
    words = vp.Items(max_items_per_user=9).release(vp.read(sales.drop_nulls(), user="customer", text="shop"), BUDGET)
    frame = vp.exports.to_spark(words, spark)
    assert (frame.columns, frame.filter("word = 'shop'").count()) == (["word"], 1)
    grams = vp.Release(table_of_lists([["a"], ["a", "b"]]), words.plan, words.guarantee, "words")
    assert [row.gram for row in vp.exports.to_spark(grams, spark).collect()] == [["a"], ["a", "b"]]
