"""Tests that series on Spark give the same releases as local series on every night."""

import numpy as np
import polars as pl
import pytest
from framed import framed

import voxpop as vp
from voxpop.errors import InputError, LedgerError, ReleaseError
from voxpop.mechanisms.series.series import Series
from voxpop.privacy.gate.nights import NightsGate

BUDGET, NIGHTS = vp.Budget(3, 1e-6), 3


def table(night):
    """Return the rows of a night. Some of the 900 users join on later nights, and words have many or few users."""
    pairs = [
        (f"u{user}", f"w{(user * 7 + each * each) % (3 + 2 * night)}")
        for user in range(900)
        for each in range(1 + user % 4)
        if user % 5 < 2 + night
    ]
    return pl.DataFrame(
        [*pairs, (f"u{night}", f"rare{night}")], schema={"who": pl.String, "what": pl.String}, orient="row"
    )


def read(spark, where, night, tmp_path, partitions=1):
    """Return the rows of a night in memory, within a memory limit, or on Spark."""
    columns = {"user": "who", "items": "what"}
    if where == "spark":
        return vp.read(framed(spark, table(night)), options=vp.ReadOptions(partitions=partitions), **columns)
    path = tmp_path / f"rows{night}.parquet"
    table(night).write_parquet(path)
    return vp.read(path, options=vp.ReadOptions(memory="1GiB" if where == "limited" else None), **columns)


@pytest.mark.parametrize("known", [None, [*(f"w{number}" for number in range(0, 9, 2)), "nobody"]])
def test_every_night_is_the_same_on_every_engine(spark, tmp_path, known):
    """New items, scores, pools and budgets agree in memory, within a memory limit and on Spark. Night 2 is skipped."""
    found = {}
    for where in ("memory", "limited", "spark"):
        series = vp.Items(max_items_per_user=5, known=known).series(tmp_path / where, BUDGET, nights=NIGHTS, seed=5)
        nights = [series.run(read(spark, where, night, tmp_path), night=night).to_list() for night in (1, 3)]
        marks = series.release.known
        found[where] = nights, series.counts, series.released.to_pydict(), None if known is None else marks.tolist()
    assert found["memory"] == found["limited"] == found["spark"]
    assert sum(found["memory"][1]) > 5
    assert sum(found["memory"][1]) > found["memory"][1][0] > 0
    items = pl.read_parquet(tmp_path / "spark" / "frames-*" / "items" / "*.parquet")
    users = pl.read_parquet(tmp_path / "spark" / "frames-*" / "users" / "*" / "*.parquet")
    _, pools = Series(tmp_path / "memory")._read()
    scores = dict(zip(pools.words.to_pylist(), pools.scores.tolist(), strict=True))
    assert {word.decode(): score for word, score in zip(items["word"], items["score"], strict=True)} == scores
    for column, values in {"level": pools.levels, "decided": pools.decided, "released": pools.released}.items():
        mine = dict(zip(pools.words.to_pylist(), values.tolist(), strict=True))
        assert {word.decode(): value for word, value in zip(items["word"], items[column], strict=True)} == mine
    left = dict(zip(pools.keys.view("int64").tolist(), pools.left.tolist(), strict=True))
    assert dict(zip(users["key"], users["remaining"], strict=True)) == left
    assert users["items"].list.len().max() == 5


def test_items_that_are_released_on_a_skipped_night_join_no_pool(spark, tmp_path):
    """Pools are the same if noise releases items on a night without rows, before the files contain these items.

    The delta is so large that noise releases many items that have only one user.
    """
    found = {}
    for where in ("memory", "spark"):
        series = vp.Items(max_items_per_user=2).series(tmp_path / where, vp.Budget(1, 0.5), nights=3, seed=5)
        for night in (1, 3):
            rows = pl.DataFrame(
                {"who": [f"u{night} {user}" for user in range(3000)], "what": [f"w{user}" for user in range(3000)]}
            )
            source = framed(spark, rows) if where == "spark" else rows
            options = vp.ReadOptions(partitions=1) if where == "spark" else vp.ReadOptions()
            series.run(vp.read(source, user="who", items="what", options=options), night=night)
        found[where] = series.counts
    assert found["memory"] == found["spark"]
    assert found["memory"][1] > 5
    users = pl.read_parquet(tmp_path / "spark" / "frames-*" / "users" / "*" / "*.parquet")
    _, pools = Series(tmp_path / "memory")._read()
    sizes = dict(zip(pools.keys.view("int64").tolist(), np.diff(pools.starts).tolist(), strict=True))
    assert dict(zip(users["key"], users["items"].list.len(), strict=True)) == sizes
    assert sum(sizes.values()) < 6000


def test_a_stopped_night_on_spark_is_completed(spark, tmp_path, monkeypatch):
    """A night in two groups stops after users have paid, and is completed from its files, even with other rows.

    An older state is rejected.
    """
    account = vp.Ledger(tmp_path / "team.ledger").open("posts", vp.Budget(8, 1e-5), create=True)
    series = vp.Items().series(tmp_path / "s", BUDGET, nights=NIGHTS, ledger=account)
    with monkeypatch.context() as patched:
        patched.setattr(NightsGate, "complete", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            series.run(read(spark, "spark", 1, tmp_path, partitions=3), night=1)
    state = (tmp_path / "s" / "state.voxpop").read_bytes()
    first = series.run(read(spark, "spark", 4, tmp_path, partitions=3), night=1)
    assert set(first.to_list()) <= set(table(1)["what"])
    assert series.run(read(spark, "spark", 2, tmp_path), night=1) == first
    assert len(list((tmp_path / "s").glob("frames-*"))) == 1
    assert len(list((tmp_path / "s").glob("frames-*/users/place=*"))) == 2
    with pytest.raises(InputError, match="is on Spark"):
        series.run(read(spark, "memory", 2, tmp_path))
    assert series.remove("u5")
    assert not series.remove("nobody")
    users = pl.read_parquet(tmp_path / "s" / "frames-*" / "users" / "*" / "*.parquet")
    assert users.filter((pl.col("remaining") == 0) & (pl.col("items").list.len() == 0)).height == 1
    (tmp_path / "s" / "state.voxpop").write_bytes(state)
    with pytest.raises(LedgerError, match="restored or copied"):
        series.run(read(spark, "spark", 2, tmp_path))


def test_unsupported_series_are_rejected_on_spark(spark, tmp_path):
    """A series that began on the local engine and a series with a key are rejected before the night begins."""
    here = vp.Items().series(tmp_path / "here", BUDGET, nights=NIGHTS)
    here.run(read(spark, "memory", 1, tmp_path))
    with pytest.raises(InputError, match="is on this machine"):
        here.run(read(spark, "spark", 2, tmp_path))
    sealed = vp.Items().series(tmp_path / "sealed", BUDGET, nights=NIGHTS, key=bytes(32))
    with pytest.raises(ReleaseError, match="cannot be encrypted"):
        sealed.run(read(spark, "spark", 1, tmp_path))
    assert (here.night, sealed.night) == (1, 0)


def test_other_user_columns_are_rejected_on_later_nights_on_spark(spark, tmp_path):
    """The state contains the names of the user columns, on Spark and in memory."""
    rows = pl.DataFrame({"tenant": [f"t{user % 5}" for user in range(900)], "id": [f"c{user}" for user in range(900)]})
    frame = framed(spark, rows.with_columns(what=pl.lit("tea")))
    for partitions in (2, None):
        options = vp.ReadOptions(partitions=partitions)
        series = vp.Items().series(tmp_path / str(partitions), BUDGET, nights=NIGHTS)
        series.run(vp.read(frame, user=["tenant", "id"], items="what", options=options), night=1)
        with pytest.raises(InputError, match="user columns are id, tenant on this night"):
            series.run(vp.read(frame, user=["id", "tenant"], items="what", options=options), night=2)
        series.run(vp.read(frame, user=["tenant", "id"], items="what", options=options), night=2)
