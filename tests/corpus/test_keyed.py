"""Tests of users and items of any type or of several columns, and of converting their values to strings and back."""

import datetime as dt
from decimal import Decimal
from uuid import UUID

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import voxpop as vp
from support.look import load_engine, read_engine
from voxpop.errors import ColumnError, InputError
from voxpop.reading.keys import KeyColumn, Keys, plain_type, spelled, type_named, unspelled

BUDGET = vp.Budget(20, 1e-3)
DAY, MOMENT = dt.date(2026, 11, 22), dt.datetime(2026, 11, 22, 5, 56, 10, 250_000)
ZONED = MOMENT.replace(tzinfo=dt.UTC)
COLUMNS = {
    "string": pa.array(["tea", "a|b", ""]),
    "int8": pa.array([7, -8, 0], pa.int8()),
    "uint64": pa.array([7, 2**64 - 1, 0], pa.uint64()),
    "bool": pa.array([True, False, True]),
    "date": pa.array([DAY, dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    "time": pa.array([dt.time(5, 56, 10, 250_000), dt.time(0), dt.time(23, 59, 59, 999_999)]),
    "seconds": pa.array([1, 0, 86_399], pa.int32()).cast(pa.time32("s")),
    "moment": pa.array([MOMENT, dt.datetime(1970, 1, 1), dt.datetime(1, 1, 1)]),
    "zoned": pa.array([ZONED, ZONED, ZONED], pa.timestamp("us", "Europe/Amsterdam")),
    "decimal": pa.array([Decimal("1.50"), Decimal("-0.01"), Decimal("100.00")], pa.decimal128(9, 2)),
    "bytes": pa.array([b"\0\xff", b"", b"tea"]),
    "coded": pa.array(["tea", "tea", "oat"]).dictionary_encode(),
}
VALUES = {
    pa.string(): st.text(st.characters(codec="utf-8"), max_size=4),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(),
    pa.time64("us"): st.times(),
    pa.timestamp("us"): st.datetimes(),
    pa.timestamp("us", "UTC"): st.datetimes(timezones=st.just(dt.UTC)),
    pa.decimal128(12, 4): st.decimals(-(10**7), 10**7, places=4),
    pa.binary(): st.binary(max_size=4),
}


@pytest.mark.parametrize("kind", VALUES, ids=str)
@given(data=st.data())
def test_each_value_has_one_spelling_and_can_be_restored(kind, data):
    """Values are equal if and only if their spellings are equal. The name of a type identifies the type."""
    values = data.draw(st.lists(VALUES[kind], max_size=6))
    texts = spelled(pa.array(values, kind), "key")
    assert len(set(texts.to_pylist())) == len(set(values))
    assert unspelled(texts, type_named(str(kind))).to_pylist() == values


@given(rows=st.lists(st.tuples(st.text("a|\\", max_size=3), st.text("a|\\", max_size=3)), max_size=6))
def test_values_of_several_columns_are_one_item_and_can_be_restored(rows):
    """The values of composite items may contain vertical bars and backslashes."""
    keys = Keys((KeyColumn("a", "string"), KeyColumn("b", "string")))
    items = keys.spell([pa.array([a for a, _ in rows], pa.string()), pa.array([b for _, b in rows], pa.string())])
    assert len(set(items.to_pylist())) == len(set(rows))
    assert keys.values(items) == rows
    assert [keys.item(row) for row in rows] == items.to_pylist()


@pytest.fixture(scope="module")
def plan():
    """Return a plan that allows one key per user."""
    return vp.Items(max_items_per_user=1).plan(BUDGET)


@pytest.mark.parametrize("name", COLUMNS)
def test_releases_restore_columns_and_types(name, plan, tmp_path):
    """Items, tables and saved releases keep the column's type, and `in` accepts the column's own values."""
    column = COLUMNS[name]
    table = pa.table({"who": range(600), "key": pa.chunked_array([column] * 200)})
    keys = plan.release(read_engine(table, user="who", items="key"))
    wanted = column.unique().to_pylist()
    assert sorted(map(str, keys)) == sorted(map(str, wanted))
    assert all(value in keys for value in wanted)
    assert keys.to_arrow()["key"].type == plain_type(column.type)
    keys.save(tmp_path / "keys")
    assert vp.load(tmp_path / "keys") == keys
    stored = pa.parquet.read_table(tmp_path / "keys" / "release.parquet")["key"].type
    assert stored == (pa.time32("ms") if name == "seconds" else plain_type(column.type))  # Parquet has no seconds
    assert vp.exports.filter(keys, table).num_rows == 600


def test_released_whole_numbers_remain_numbers():
    """The release contains 7, but neither "7" nor 7.0 nor True."""
    table = pl.DataFrame({"who": range(400), "shop": [7, 1] * 200})
    keys = vp.Items(max_items_per_user=1).release(read_engine(table, user="who", items="shop"), BUDGET)
    assert keys.to_list() == [1, 7]
    assert [each in keys for each in (7, "7", 7.0, True, None, (7,), [7], 8, 2**70)] == [True] + [False] * 4 + [
        True,
        True,
        False,
        False,
    ]
    assert table.join(keys.to_polars(), on="shop", how="semi").height == 400


def test_keys_of_several_columns_keep_their_types(tmp_path):
    """Items are tuples, and each column keeps its type. A row with a null in any column contains no item."""
    table = pl.DataFrame(
        {"who": range(600), "country": ["NL", "DE", None] * 200, "day": [DAY, DAY, DAY] * 200, "n": range(600)}
    )
    corpus = read_engine(table, user="who", items=["country", "day"])
    keys = vp.Items(max_items_per_user=1).release(corpus, BUDGET)
    assert keys.to_list() == [("DE", DAY), ("NL", DAY)]
    assert ("NL", DAY) in keys
    assert ("NL", "2026-11-22") not in keys
    assert keys.to_polars().columns == ["country", "day"]
    assert vp.exports.filter(keys, table).height == 400
    corpus.save(tmp_path / "corpus")
    again = vp.Items(max_items_per_user=1).release(load_engine(tmp_path / "corpus"), BUDGET, seed=1)
    assert again == vp.Items(max_items_per_user=1).release(corpus, BUDGET, seed=1)


def test_lists_of_typed_items_are_read():
    """The values in lists are items. Nulls in lists are ignored."""
    table = pl.DataFrame({"who": range(300), "days": [[DAY, None], None, [DAY, DAY]] * 100})
    keys = vp.Items(max_items_per_user=1).release(read_engine(table, user="who", items="days"), BUDGET)
    assert keys.to_list() == [DAY]


def test_counts_are_queried_with_keys():
    """Iteration and lookup use the original values of the column."""
    table = pl.DataFrame({"who": range(400), "shop": [7, 1] * 200})
    corpus = read_engine(table, user="who", items="shop")
    counts = vp.Items(max_items_per_user=1).release(corpus, BUDGET).count(corpus, BUDGET, counted_in_full=1)
    assert {shop for shop, _ in counts} == {1, 7}
    assert abs(counts[7] - 200) < 50
    assert counts.to_polars().columns == ["shop", "users"]


@pytest.mark.parametrize("name", ["date", "zoned", "decimal", "bool", "time", "bytes"])
def test_users_may_have_any_type_with_equality(name):
    """The number of users equals the number of distinct values in the column."""
    column = COLUMNS[name]
    corpus = read_engine(pa.table({"who": column, "what": ["a", "b", "c"]}), user="who", items="what")
    assert corpus.user_key.size == len(column.unique())


def test_users_may_be_several_columns_or_uuids():
    """Two rows belong to the same user only if all user columns agree.

    Equal concatenations of the values are not enough.
    """
    who = pa.array([UUID(int=1).bytes, UUID(int=1).bytes, UUID(int=2).bytes], pa.binary(16))
    table = pa.table({"a": ["x|", "x", "x|"], "b": ["y", "|y", "y"], "who": who, "what": ["a", "b", "c"]})
    assert read_engine(table, user=["a", "b"], items="what").user_key.size == 2
    assert read_engine(table, user="who", items="what").user_key.size == 2


def test_times_are_the_same_in_every_unit():
    """A time in seconds and the same time in nanoseconds identify one user or one item."""
    tables = [pa.table({"who": pa.array([MOMENT.replace(microsecond=0)], pa.timestamp(unit))}) for unit in ("s", "ns")]
    reader = pa.concat_tables([tables[0], tables[1].cast(tables[0].schema)])
    assert len({spelled(each["who"].chunk(0), "who")[0].as_py() for each in tables}) == 1
    assert read_engine(reader.append_column("what", pa.array(["a", "a"])), user="who", items="what").user_key.size == 1


def test_floats_and_values_of_different_types_are_rejected(tmp_path):
    """Floats, values of two types, and one column for both users and items are rejected."""
    with pytest.raises(ColumnError, match=r"Floats.*Int64"):
        read_engine(pl.DataFrame({"who": [1], "key": [0.5]}), user="who", items="key")
    pl.DataFrame({"who": [1], "key": [7]}).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame({"who": [1], "key": ["7"]}).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(ColumnError, match="whole numbers in one table and strings in another"):
        read_engine(tmp_path, user="who", items="key")
    tables = [pa.table({"who": [number], "key": key}) for number, key in enumerate(([7], [0.5]))]
    for pair, found in ((tables, "int64 in one table and double"), (tables[::-1], "Floats")):
        with pytest.raises(ColumnError, match=found):
            read_engine(iter(pair), user="who", items="key")
    with pytest.raises(InputError, match="both for users and for their items"):
        read_engine(pl.DataFrame({"who": [1]}), user="who", items="who")
    with pytest.raises(ColumnError, match="years"):
        read_engine(
            pa.table({"who": [1], "key": pa.array([10**7], pa.int32()).cast(pa.date32())}), user="who", items="key"
        )


def test_an_empty_release_has_no_types(tmp_path):
    """An empty release is the same with and without the only row that determines the type of a column."""
    plan = vp.Items(max_items_per_user=1).plan(vp.Budget(1, 1e-8))
    rows = [{"who": number, "day": None} for number in range(9)]
    one, other = (
        plan.release(read_engine(each, user="who", items="day"), seed=1)
        for each in ([*rows, {"who": 9, "day": DAY}], rows)
    )
    assert len(one) == 0
    assert one == other
    for number, release in enumerate((one, other)):
        release.save(tmp_path / str(number))
    first, second = ((tmp_path / number / "release.json").read_bytes() for number in "01")
    assert first == second
    assert vp.exports.filter(one, pl.DataFrame({"day": [DAY]})).height == 0
    assert vp.exports.with_other(one, pl.DataFrame({"day": [DAY]}), other=None)["day"].to_list() == [None]
