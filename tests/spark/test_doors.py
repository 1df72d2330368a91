"""Events, keys of any type and several columns: on a cluster what they are on one machine."""

import datetime as dt
from decimal import Decimal

import polars as pl
import pytest

import voxpop as vp
from support.look import read_engine
from voxpop.engine.spark.reading import open_frame
from voxpop.errors import ColumnError, InputError
from voxpop.reading.wanted import Wanted

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
def test_events_become_the_same_sequences(spark, partitions):
    """In order of time, cut into sessions: the same phrases for the same seed."""
    frame = spark.createDataFrame(EVENTS.to_pandas())
    ngrams = vp.papers.DPNE(max_length=3, limit=10)
    how = {"user": "who", "sequence": "page", "order": "at", "session": "20min"}
    corpora = read_engine(EVENTS, **how), read_engine(frame, options=vp.ReadOptions(partitions=partitions), **how)
    one, other = (ngrams.release(corpus, BUDGET, seed=3) for corpus in corpora)
    assert len(one) > 3
    assert one.grams.equals(other.grams)
    with pytest.raises(ColumnError, match='no column "when"'):
        read_engine(frame, user="who", sequence="page", order="when")


@ROADS
@pytest.mark.parametrize("items", [["shop", "day"], "day", "price", "open", "shop"])
def test_keys_keep_their_types(spark, items, partitions):
    """The same keys, types and rows; users of two columns."""
    frame = spark.createDataFrame(
        KEYED.rows(), "tenant string, id long, shop long, day date, price decimal(9, 2), open boolean"
    )
    union = vp.SetUnion(limit=3, weighting=vp.weightings.Weighted())
    how = {"user": ["tenant", "id"], "items": items}
    corpora = read_engine(KEYED, **how), read_engine(frame, options=vp.ReadOptions(partitions=partitions), **how)
    one, other = (union.release(corpus, BUDGET, seed=3) for corpus in corpora)
    assert one == other
    assert len(one) > 0


@pytest.mark.parametrize("items", [["shop", "day"], "price", "open"])
def test_a_join_with_released_keys_keeps_the_same_rows(spark, items):
    """As the guide joins them; `filter` keeps the same rows on one machine."""
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = spark.createDataFrame(
        KEYED.rows(), "tenant string, id long, shop long, day date, price decimal(9, 2), open boolean"
    )
    corpus = read_engine(KEYED, user=["tenant", "id"], items=items)
    keys = vp.SetUnion(limit=3, weighting=vp.weightings.Weighted()).release(corpus, BUDGET, seed=3)
    released = spark.createDataFrame(keys.to_pandas()[keys.keys.names])
    assert frame.join(released, keys.keys.names, "left_semi").count() == vp.exports.filter(keys, KEYED).height > 0


@ROADS
def test_files_are_read_as_they_are_written(spark, tmp_path, partitions):
    """CSV with a delimiter and an encoding that are given, and texts of HTML, as on one machine."""
    rows = [f"{number}|<p>caf\xe9</p><p>d{number % 2}</p>" for number in range(1200)]
    path = tmp_path / "posts.csv"
    path.write_bytes("\n".join(["who|what", *rows]).encode("cp1252"))
    union = vp.SetUnion(limit=4, weighting=vp.weightings.Weighted())
    columns = {"user": "who", "text": "what"}
    how = columns | {"tokenizer": vp.Tokenizer(html=True)}
    frame = open_frame(spark, [str(path)], Wanted.of(**columns), "|", "ISO-8859-1")
    one = union.release(read_engine(path, csv=vp.CSV(delimiter="|", encoding="cp1252"), **how), BUDGET, seed=3)
    other = union.release(read_engine(frame, options=vp.ReadOptions(partitions=partitions), **how), BUDGET, seed=3)
    assert one.to_list() == other.to_list() == ["café", "d0", "d1"]
    with pytest.raises(InputError, match="Leave it out"):
        read_engine(frame, csv=vp.CSV(delimiter="|"), **how)
    EVENTS.write_parquet(tmp_path / "events.parquet")
    with pytest.raises(InputError, match="Leave it out"):
        open_frame(spark, [str(tmp_path / "events.parquet")], Wanted.of(**columns), "|")
