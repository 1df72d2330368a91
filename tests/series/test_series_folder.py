"""Tests of the folder of a series, including public files, opening the folder, and removing users."""

import datetime
import json
import shutil
import stat
from decimal import Decimal
from uuid import UUID

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

import voxpop as vp
from voxpop.errors import InputError, ReleaseError
from voxpop.ledger.runs import publish
from voxpop.mechanisms.series.series import Series
from voxpop.reading.keys import type_named
from voxpop.release.verifying import verify

BUDGET = vp.Budget(3, 1e-6)


@pytest.mark.parametrize("kind", ["int64", "string", "date32[day]", "declared"])
def test_the_first_night_has_the_same_public_files_with_or_without_an_item(tmp_path, kind):
    """The first night always records the columns and the tokenizer, so the files do not reveal whether it had items."""
    found = set()
    for name, users in (("nobody", []), ("null", [7]), ("one", [7])):
        values = [None if name == "null" else 1 for _ in users]
        if kind == "declared":  # This is a CSV file with types that the caller declares.
            path, options = tmp_path / f"{name}.csv", {"types": {"what": "int64"}}
            path.write_text("who,what\n" + "".join(f"{user},{'' if name == 'null' else 1}\n" for user in users))
        else:
            path, options = tmp_path / f"{name}.parquet", {}
            what = pa.array(values, pa.int32()).cast(type_named(kind))
            pq.write_table(pa.table({"who": pa.array(users, pa.int64()), "what": what}), path)
        series = vp.Items().series(tmp_path / f"{kind}-{name}", BUDGET, nights=5)
        for night in (1, 2):
            series.run(vp.read(path, user="who", items="what", **options), night=night)
        series.release.save(tmp_path / f"{kind}-{name}-saved")
        record = json.loads((tmp_path / f"{kind}-{name}-saved" / "release.json").read_text())
        stored = series._read()[0]
        assert stored.keys == [{"name": "what", "type": kind if kind != "declared" else "int64"}]
        found.add(json.dumps([record["keys"], record["token_source"], stored.keys, stored.token_source]))
    assert len(found) == 1


def sources_of(table, folder):
    """Return the table as every kind of source that declares types."""
    pq.write_table(table, folder / "t.parquet")
    feather.write_feather(table, folder / "t.arrow")
    frame = pl.from_arrow(table)
    return {
        "polars": frame,
        "lazy": frame.lazy(),
        "columns": {name: frame[name] for name in frame.columns},
        "numpy": {name: table[name].to_numpy() for name in table.column_names},
        "pyarrow": table,
        "stream": pa.RecordBatchReader.from_batches(table.schema, table.to_batches()),
        "parquet": folder / "t.parquet",
        "arrow": folder / "t.arrow",
    }


@pytest.mark.parametrize("form", ["polars", "lazy", "columns", "numpy", "pyarrow", "stream", "parquet", "arrow"])
def test_a_table_without_rows_has_the_types_of_its_schema(tmp_path, form):
    """The types of keys are public, so they must not depend on whether the table has a row."""
    found = set()
    for count in (0, 2):
        table = pa.table({"who": pa.array(range(count), pa.int64()), "what": pa.array([5] * count, pa.int16())})
        for memory in (None, "1GiB") if form != "lazy" else (None,):
            source, options = sources_of(table, tmp_path)[form], vp.ReadOptions(memory=memory)
            found.add(str(vp.read(source, user="who", items="what", options=options)._engine.keys))
    (keys,) = found
    assert "int16" in keys


def test_a_night_without_users_determines_how_later_nights_are_read(tmp_path):
    """A later night must be read in the same way, even if the earlier night had no users."""
    series = vp.Items().series(tmp_path / "s", BUDGET, nights=5)
    table = pl.DataFrame({"who": [1], "what": ["tea"]})
    series.run(vp.read(table.clear(), user="who", items="what"))
    record, pools = series._read()
    assert record.started
    assert not pools.keys.size
    with pytest.raises(InputError, match="must be read in the same way"):
        series.run(vp.read(table.clear().cast(pl.Int64), user="who", items="what"))


def test_the_secret_is_not_shown(tmp_path):
    """The representation of the record does not contain the secret that determines all draws."""
    series = vp.Items().series(tmp_path / "s", BUDGET, nights=5)
    record, _ = series._read()
    assert record.secret not in repr(record)
    assert record.secret not in str([record])


def listing(folder):
    """Return the names, modes and contents of all files below a folder, and its own mode."""
    every = [folder, *sorted(folder.rglob("*"))]
    return [(str(each), each.stat().st_mode, each.read_bytes() if each.is_file() else b"") for each in every]


def test_opening_a_wrong_folder_does_not_change_it(tmp_path):
    """Existing folders keep their modes and files, and a mistyped name creates no folder."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o775)
    (shared / "report.csv").write_text("x")
    vp.Ledger(tmp_path / "team.ledger").open("posts", vp.Budget(7, 1e-4), create=True)
    before = listing(tmp_path)
    for call in (
        lambda: Series(shared),
        lambda: Series(tmp_path / "mistyped" / "name"),
        lambda: vp.Items().series(shared, BUDGET, nights=3),
        lambda: vp.load(shared),
        lambda: vp.load_corpus(shared),
        lambda: vp.load_corpus(tmp_path / "mistyped"),
        lambda: verify(shared),
        lambda: vp.Ledger(shared / "team.ledger").names,
        lambda: vp.Ledger(tmp_path / "mistyped" / "team.ledger").account("posts"),
        lambda: vp.Ledger(tmp_path / "mistyped" / "team.ledger").open("posts", BUDGET),
        lambda: vp.Ledger(shared / "report.csv").names,
        lambda: vp.Ledger(shared).names,
        lambda: publish(shared, tmp_path / "new"),
    ):
        with pytest.raises(InputError):
            call()
        assert listing(tmp_path) == before


def test_a_series_without_its_folder_creates_no_new_folder(tmp_path):
    """Every call on a series without its folder raises an error."""
    series = vp.Items().series(tmp_path / "s", BUDGET, nights=5)
    shutil.rmtree(tmp_path / "s")
    for call in (
        lambda: series.night,
        lambda: series.run(vp.read({"who": [1], "what": ["tea"]}, user="who", items="what")),
        lambda: series.remove(1),
    ):
        with pytest.raises(ReleaseError, match="contains no state of a series"):
            call()
    assert not (tmp_path / "s").exists()


def test_only_the_folder_of_the_series_becomes_private(tmp_path):
    """Parent folders have the usual modes, whether they are new or not."""
    tmp_path.chmod(0o755)
    vp.Items().series(tmp_path / "a" / "b" / "s", BUDGET, nights=5)
    assert stat.S_IMODE((tmp_path / "a" / "b" / "s").stat().st_mode) == 0o700
    (tmp_path / "usual").mkdir()
    usual = (tmp_path / "usual").stat().st_mode
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "a" / "b").stat().st_mode == usual
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


IDS = {
    "negative": (pa.array([-5]), -5),
    "smallest": (pa.array([-(2**63)]), -(2**63)),
    "numpy": (pa.array([8]), np.int64(8)),
    "large": (pa.array([2**63 + 5], pa.uint64()), 2**63 + 5),
    "largest": (pa.array([2**64 - 1], pa.uint64()), 2**64 - 1),
    "string": (pa.array(["-5"]), "-5"),
    "date": (pa.array([datetime.date(2026, 11, 22)]), datetime.date(2026, 11, 22)),
    "date as string": (pa.array([datetime.date(2026, 11, 22)]), "2026-11-22"),
    "time": (pa.array([datetime.datetime(2026, 11, 22, 5)], pa.timestamp("ns")), datetime.datetime(2026, 11, 22, 5)),
    "zone": (
        pa.array([datetime.datetime(2026, 11, 22, 5)], pa.timestamp("ms", "Asia/Tokyo")),
        datetime.datetime(2026, 11, 22, 5, tzinfo=datetime.UTC),
    ),
    "decimal": (pa.array([Decimal("1.50")]), Decimal("1.5")),
    "bytes": (pa.array([b"\x00\xff"]), b"\x00\xff"),
    "uuid": (pa.array([UUID(int=7).bytes], pa.uuid()), UUID(int=7)),
    "truth": (pa.array([True]), True),
    "several": ([pa.array(["x|y"]), pa.array([5])], ("x|y", 5)),
    "several as string": ([pa.array(["x"]), pa.array([5])], "x|5"),
}


@pytest.mark.parametrize("name", IDS)
def test_a_user_of_any_type_can_be_removed(tmp_path, name):
    """`remove` returns the user's numbers of items and nights, and None if the user was already removed."""
    ids, user = IDS[name]
    several = isinstance(ids, list)
    columns = {"a": ids[0], "b": ids[1]} if several else {"a": ids}
    series = vp.Items().series(tmp_path / "s", BUDGET, nights=6)
    for what in (["tea", "milk"], ["oat"]):
        table = pa.table({**columns, "what": pa.array([what])})
        series.run(vp.read(table, user=list(columns) if several else "a", items="what"))
    assert series.remove("another") is None
    removed = series.remove(user)
    assert (removed.items, removed.nights) == (3, 2)
    assert series.remove(user) is None
    assert series._read()[1].left.tolist() == [0]


@pytest.mark.parametrize("user", [None, 7.0, {}, (), (None,), [1.5], 2**64, -(2**63) - 1, "\ud800"])
def test_values_that_are_not_ids_are_rejected(tmp_path, user):
    """A value that no user column can have is rejected, and the message does not quote it."""
    series = vp.Items().series(tmp_path / "s", BUDGET, nights=6)
    with pytest.raises(InputError, match=r"must be an id in the form|does not fit into 64 bits"):
        series.remove(user)


def test_parent_folders_of_saved_results_have_the_usual_modes(tmp_path):
    """A team can share the parent folders of a saved result, because their modes are the usual modes."""
    from voxpop.ledger.runs import keep

    (tmp_path / "usual").mkdir()
    modes = []

    def save(new):
        modes.append(stat.S_IMODE(new.parent.stat().st_mode))
        new.mkdir()

    keep(save, tmp_path / "a" / "b" / "words", "key")
    assert modes == [0o700]
    assert (tmp_path / "a" / "b").stat().st_mode == (tmp_path / "usual").stat().st_mode
