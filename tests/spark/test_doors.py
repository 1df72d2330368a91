"""Tests that events, keys of any type and keys of several columns give the same results as on one machine."""

import datetime as dt
from decimal import Decimal

import polars as pl
import pytest

import voxpop as vp
from support.look import read_engine
from voxpop.engine.spark.reading import open_frame
from voxpop.errors import ColumnError, InputError, SourceError

START = dt.datetime(2026, 11, 22, 6, 0)
BUDGET = vp.Budget(8, 1e-3)
ROADS = pytest.mark.parametrize("partitions", [2, None], ids=["spread", "handed over"])
EVENTS = pl.DataFrame(
    [(user % 300, "abc"[user * 7 % 3], START + dt.timedelta(minutes=user * 31 % 100)) for user in range(3000)],
    schema=["who", "page", "at"],
    orient="row",
)
KEYED = pl.DataFrame(
    {
        "tenant": ["a", "b"] * 300,
        "id": [number // 2 for number in range(600)],
        "shop": [7, -8, 9] * 200,
        "day": [dt.date(2026, 11, 22), dt.date(1999, 1, 1)] * 300,
        "price": pl.Series([Decimal("1.50"), Decimal("2.25")] * 300, dtype=pl.Decimal(9, 2)),
        "open": [True, None] * 300,
    }
)


@ROADS
def test_events_become_the_same_sequences_on_spark(spark, partitions):
    """Events are sorted by time and divided into sessions. The same seed gives the same phrases."""
    frame = spark.createDataFrame(EVENTS.to_pandas())
    ngrams = vp.papers.DPNE(max_length=3, max_phrases_per_user=10)
    how = {"user": "who", "sequence": "page", "order": "at", "session_gap": "20min"}
    corpora = read_engine(EVENTS, **how), read_engine(frame, options=vp.ReadOptions(partitions=partitions), **how)
    one, other = (ngrams.release(corpus, BUDGET, seed=3) for corpus in corpora)
    assert len(one) > 3
    assert one.grams.equals(other.grams)
    with pytest.raises(ColumnError, match='no column "when"'):
        read_engine(frame, user="who", sequence="page", order="when")


@ROADS
def test_times_of_two_kinds_are_rejected_for_any_partitions(spark, partitions):
    """The error occurs even if each partition has times of only one kind."""
    spelled = [f"2026-11-22 05:56:{number:02}" for number in range(40)]
    zoned = [f"{time}Z" for time in spelled]
    options = vp.ReadOptions(partitions=partitions)
    how = {"user": "who", "sequence": "page", "order": "at", "options": options}
    ngrams = vp.papers.DPNE(max_length=3, max_phrases_per_user=10)

    def release(times):
        rows = [(number % 2, "abc"[number % 3], time) for number, time in enumerate(times)]
        corpus = vp.read(spark.createDataFrame(rows, "who long, page string, at string"), **how)
        return ngrams.release(corpus, BUDGET, seed=3)

    for times in (spelled, zoned, [str(number) for number in range(40)]):
        release(times)
    for other in (zoned, [str(number) for number in range(40)]):
        with pytest.raises(SourceError, match="not of the same kind as the first row"):
            release([pair[place % 2] for place, pair in enumerate(zip(spelled, other, strict=True))])


@ROADS
@pytest.mark.parametrize("items", [["shop", "day"], "day", "price", "open", "shop"])
def test_keys_have_the_same_types_and_rows_on_spark(spark, items, partitions):
    """In this test, two columns identify a user."""
    frame = spark.createDataFrame(
        KEYED.rows(), "tenant string, id long, shop long, day date, price decimal(9, 2), open boolean"
    )
    union = vp.papers.SetUnion(3, "weighted", accounting="joint")
    how = {"user": ["tenant", "id"], "items": items}
    corpora = read_engine(KEYED, **how), read_engine(frame, options=vp.ReadOptions(partitions=partitions), **how)
    one, other = (union.release(corpus, BUDGET, seed=3) for corpus in corpora)
    assert one == other
    assert len(one) > 0


@pytest.mark.parametrize("items", [["shop", "day"], "price", "open"])
def test_a_join_with_released_keys_keeps_the_same_rows(spark, items):
    """A semi-join in Spark keeps the same number of rows as `filter` on one machine."""
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = spark.createDataFrame(
        KEYED.rows(), "tenant string, id long, shop long, day date, price decimal(9, 2), open boolean"
    )
    corpus = read_engine(KEYED, user=["tenant", "id"], items=items)
    keys = vp.papers.SetUnion(3, "weighted", accounting="joint").release(corpus, BUDGET, seed=3)
    released = spark.createDataFrame(keys.to_pandas()[keys.keys.names])
    assert frame.join(released, keys.keys.names, "left_semi").count() == vp.exports.filter(keys, KEYED).height > 0


def test_parquet_files_are_opened_and_other_files_are_rejected(spark, tmp_path):
    """Options for CSV files and for types are also rejected, because they do not apply to Spark tables."""
    EVENTS.write_parquet(tmp_path / "events.parquet")
    frame = open_frame(spark, [str(tmp_path / "events.parquet")])
    assert frame.columns == EVENTS.columns
    for more in ({"csv": vp.CSV(delimiter="|")}, {"types": {"page": "int64"}}):
        with pytest.raises(InputError, match=r"Remove csv=|remove types="):
            read_engine(frame, user="who", items="page", **more)
    for name in ("events.csv", "events.jsonl.gz"):
        with pytest.raises(InputError, match="Convert the files to Parquet"):
            open_frame(spark, [str(tmp_path / name)])
    with pytest.raises(SourceError, match="Check the path"):
        open_frame(spark, [str(tmp_path / "nowhere.parquet")])
