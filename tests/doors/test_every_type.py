"""Tests that values of every type of Arrow, polars and pandas are returned unchanged or rejected before a charge."""

import datetime
import decimal
import traceback
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import voxpop as vp
from support.look import read_engine
from voxpop.errors import ColumnError, InternalError, SourceError, VoxpopError
from voxpop.exports.files import EXPORTS
from voxpop.release.result import StoredPlan
from voxpop.release.table import from_parquet, to_parquet

QUIET = vp.ReadOptions(progress=False)
USERS = 600
MARK = "kanarienvogel"
NUMBER = 470470470470
EXACT = decimal.Context(prec=100)
ZONES = ("UTC", "Europe/Amsterdam", "America/New_York", "Asia/Tokyo", "+05:30", "-00:00", "Nowhere/Land", "Z")
UNITS = ("s", "ms", "us", "ns")
PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
REFUSED = ("text", "vocabulary", "tokenizer", "spacy", "sql")
"""The formats that cannot contain every key. For such keys, an error is raised."""


def numbers(kind: pa.DataType, *values: int) -> pa.Array:
    """Return an array of a type from the integers that it stores. Integers that do not fit the width are skipped."""
    width = pa.int32() if kind.bit_width == 32 else pa.int64()
    most = 2 ** (width.bit_width - 1)
    stored = pa.array([each for each in values if -most <= each < most], width)
    return pa.Array.from_buffers(kind, len(stored), stored.buffers())


def moments(unit: str, zone: str | None) -> pa.Array:
    """Return the first and the last times of the years 1 and 9999, times beyond them, and the limits of 64 bits."""
    first, end, day = -719_162 * PER_DAY[unit], 2_932_897 * PER_DAY[unit], PER_DAY[unit]
    times = [first - 1, first, first + day, end, end - 1, end - day - 1, 0, -1, 1, 1500, NUMBER, 2**63 - 1, 1 - 2**63]
    return numbers(pa.timestamp(unit, zone), *times)


def from_numbers(kind: pa.DataType, stored: list[int]) -> pa.Array:
    """Return decimals of a type from the integers that it stores."""
    content = b"".join(each.to_bytes(kind.bit_width // 8, "little", signed=True) for each in stored)
    return pa.Array.from_buffers(kind, len(stored), [None, pa.py_buffer(content)])


def decimals(make: str, digits: int, scale: int) -> pa.Array:
    """Return decimals of a type, including the smallest and the largest decimal."""
    ends = [0, 1, -1, 10**digits - 1, 1 - 10**digits, 5 * 10 ** (digits - 1)]
    return from_numbers(getattr(pa, make)(digits, scale), ends)


def whole(kind: pa.DataType) -> pa.Array:
    """Return the smallest value of an integer type, 0, 1, and the largest value."""
    ends = np.iinfo(str(kind))
    return pa.array([ends.min, 0, 1, ends.max], kind)


def in_storage(kind: pa.DataType, storage: pa.Array) -> pa.Array:
    """Return an array of an extension type."""
    return pa.ExtensionArray.from_storage(kind, storage)


STRINGS = ["", "|", "\\", "a\\|b", "\n", "\x00", "\U0010ffff", "e\u0301", "\u00e9", "NULL", "nan", "=1+1", "a" * 5000]
BYTES = [b"", b"\x00", b"\xff" * 100, b"|"]
WORDS = pa.array([MARK, "tea", None])
IDS = [uuid.UUID(int=5).bytes, uuid.UUID(int=2**128 - 1).bytes]

TYPES: dict[str, pa.Array] = {
    "null": pa.nulls(3),
    "bool": pa.array([True, False, None]),
    **{str(kind): whole(kind) for kind in map(pa.type_for_alias, ("int8", "int16", "int32", "int64"))},
    **{str(kind): whole(kind) for kind in map(pa.type_for_alias, ("uint8", "uint16", "uint32", "uint64"))},
    **{f"float{width}": pa.array([0.5, 1.0, float("nan")], f"float{width}") for width in (32, 64)},
    "float16": pa.array(np.array([0.5, 1], np.float16)),
    "date32": numbers(pa.date32(), -719_162, 2_932_896, 0),
    "date32, beyond": numbers(pa.date32(), 2_932_897, -719_163, 2**31 - 1),
    "date64": numbers(pa.date64(), -719_162 * 86_400_000, 2_932_896 * 86_400_000),
    "date64 with times": numbers(pa.date64(), 1, 86_399_999, NUMBER),
    "date64, beyond": numbers(pa.date64(), 2**63 - 2**63 % 86_400_000, -(2**62)),
    **{
        f"time{width}[{unit}], {name}": numbers(getattr(pa, f"time{width}")(unit), *values)
        for width, units in ((32, UNITS[:2]), (64, UNITS[2:]))
        for unit in units
        for name, values in {
            "a day": (0, 1000, PER_DAY[unit] - PER_DAY[unit] // 86_400),
            "fractions": (1, 1500, PER_DAY[unit] - 1),
            "24:00": (PER_DAY[unit],),
            "25:10": (PER_DAY[unit] * 151 // 144,),
            "below 0": (-1,),
        }.items()
    },
    **{f"timestamp[{unit}]": moments(unit, None) for unit in UNITS},
    **{f"timestamp[s, tz={zone}]": moments("s", zone) for zone in ZONES},
    **{f"timestamp[{unit}, tz={zone}]": moments(unit, zone) for unit in UNITS for zone in ("UTC", "Asia/Tokyo")},
    **{f"duration[{unit}]": numbers(pa.duration(unit), 0, 2**63 - 1, -(2**63) + 1) for unit in UNITS},
    "interval": pa.array([pa.MonthDayNano([1, 2, 3])]),
    **{
        f"{make}({digits}, {scale})": decimals(make, digits, scale)
        for make, most in (("decimal32", 9), ("decimal64", 18), ("decimal128", 38), ("decimal256", 76))
        if hasattr(pa, make)
        for digits, scale in ((most, 0), (most, 2), (most, most), (4, -3), (3, 5), (most, -2), (1, 0))
    },
    "decimal256, short": pa.array([decimal.Decimal("1.50")], pa.decimal256(60, 2)),
    "decimal256, fine": pa.array([decimal.Decimal(0)], pa.decimal256(60, 50)),
    "string": pa.array(STRINGS),
    "large_string": pa.array(STRINGS, pa.large_string()),
    "string_view": pa.array(STRINGS, pa.string_view()),
    "binary": pa.array(BYTES),
    "large_binary": pa.array(BYTES, pa.large_binary()),
    "binary_view": pa.array(BYTES, pa.binary_view()),
    "fixed_size_binary": pa.array([b"abcd", b"\x00\xff|\n"], pa.binary(4)),
    "list": pa.array([["a", "b"], ["c"], None, []]),
    "large_list": pa.array([[1, 2], [3]], pa.large_list(pa.int8())),
    "fixed_size_list": pa.array([["a", "b"], ["c", "d"]], pa.list_(pa.string(), 2)),
    "list_view": pa.array([[MARK], ["a"]], pa.list_view(pa.string())),
    "large_list_view": pa.array([[MARK], ["a"]], pa.large_list_view(pa.string())),
    "list of decimals": pa.array([[decimal.Decimal("1.5")]], pa.list_(pa.decimal128(4, 2))),
    "list of times": pa.array([[datetime.time(5)]]),
    "list of dates": pa.array([[datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]]),
    "list of lists": pa.array([[["a"]]]),
    "struct": pa.array([{"a": MARK}]),
    "map": pa.array([[(MARK, 1)]], pa.map_(pa.string(), pa.int64())),
    "sparse_union": pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([MARK])]),
    "dense_union": pa.UnionArray.from_dense(pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([MARK])]),
    "run_end_encoded": pa.RunEndEncodedArray.from_arrays([2, 3], [MARK, "a"]),
    "dictionary": WORDS.dictionary_encode(),
    "dictionary of dates": pa.array([datetime.date(1, 1, 1), None]).dictionary_encode(),
    "dictionary of numbers": pa.array([2**63, 0], pa.uint64()).dictionary_encode(),
    "dictionary of decimals": pa.array([decimal.Decimal("1.50")]).dictionary_encode(),
    "dictionary of times": numbers(pa.time32("s"), 5, 90_600).dictionary_encode(),
    "dictionary, damaged": pa.DictionaryArray.from_arrays(pa.array([5]), WORDS, safe=False),
    "uuid": in_storage(pa.uuid(), pa.array(IDS, pa.binary(16))),
    "json": in_storage(pa.json_(), pa.array([f'{{"a": "{MARK}"}}'])),
    "bool8": in_storage(pa.bool8(), pa.array([0, 1], pa.int8())),
    "opaque": in_storage(pa.opaque(pa.binary(), "numeric", "PostgreSQL"), pa.array([MARK.encode()])),
    "tensor": in_storage(pa.fixed_shape_tensor(pa.int8(), [2]), pa.array([[1, 2]], pa.list_(pa.int8(), 2))),
}
"""Arrays of every type, in which each value is one item."""
NEVER = {
    *(name for name in TYPES if name.startswith(("float", "duration", "interval", "list_view", "large_list_view"))),
    *(
        name
        for name in TYPES
        if name.endswith((", 24:00", ", 25:10", ", below 0", ", beyond", " with times", "damaged"))
    ),
    *("time64[ns], fractions", "timestamp[s, tz=Nowhere/Land]", "timestamp[s, tz=Z]", "decimal256, fine"),
    *("decimal256(76, 76)", "list of lists", "struct", "map", "sparse_union", "dense_union", "run_end_encoded"),
    *("json", "bool8", "opaque", "tensor"),
}
"""The types without any readable value. All other types have readable values."""


def test_every_type_of_arrow_is_tried():
    """The list of types is complete, so the test fails if a new version of Arrow has a type that is not listed."""
    ids = {name: number for name, number in vars(pa.lib).items() if name.startswith("Type_")}
    tried = {each.type.id for each in TYPES.values()}
    assert {name for name, number in ids.items() if number not in tried} <= {
        "Type_INTERVAL_MONTHS",  # pyarrow cannot create these two types.
        "Type_INTERVAL_DAY_TIME",
    }


def repeated(array: pa.Array, users: int = USERS) -> pa.Table:
    """Return a table of many users, each of whom has all values."""
    indices = pa.array(list(range(len(array))) * users, pa.int64())
    owners = pa.array(np.repeat(np.arange(users), len(array)))
    if isinstance(array, pa.ExtensionArray):
        column = in_storage(array.type, array.storage.take(indices))
    elif isinstance(array, pa.DictionaryArray):
        column = pa.DictionaryArray.from_arrays(array.indices.take(indices), array.dictionary, safe=False)
    else:
        column = pa.concat_arrays([array] * users)
    return pa.table({"who": owners, "what": column, "other": owners})


def assert_quotes_nothing(error: BaseException) -> None:
    """Check that the error is not chained to a library's exception, and that its traceback contains no marked value."""
    assert isinstance(error, VoxpopError), repr(error)
    assert not isinstance(error, InternalError), repr(error)
    assert error.__cause__ is None
    assert error.__context__ is None
    lines = traceback.format_exception(error)
    said = "".join(line for part in lines for line in part.splitlines() if not line.startswith("    "))
    assert MARK not in said
    assert str(NUMBER) not in said


def values_of(array: pa.Array) -> list[Any]:
    """Return the values that a release of the array should return."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        array = array.dictionary_decode()
    if hasattr(array, "flatten") and pa.types.is_nested(kind):
        array = array.flatten()
    found = [value for value in array.to_pylist() if value is not None]
    return [str(value) if isinstance(value, uuid.UUID) else value for value in found]


def goes_the_whole_way(source: Any, expected: list[Any] | None, folder: Path, **read: Any) -> bool:
    """Read, charge, release, save, load, convert, count and export, and return whether the source was read.

    Args:
        source: The table.
        expected: The expected values of the release, or None if any values are accepted.
        folder: The folder of the ledger and the release.
        read: The columns, as for `voxpop.read`.
    """
    folder.mkdir()
    account = vp.Ledger(folder / "ledger.json").open("data", vp.Budget(20, 1e-4), create=True)
    try:
        data = vp.read(source, user=read.pop("user", "who"), options=QUIET, **read)
    except BaseException as error:
        assert_quotes_nothing(error)
        assert account.entries == []
        return False
    release = vp.Items(max_items_per_user=16).release(
        data, vp.Budget(4, 1e-6), ledger=account.run("a", save_to=folder / "a")
    )
    assert [each.state for each in account.entries] == ["finished"]
    again = vp.load(folder / "a", vp.Release)
    assert again == release
    found = release.to_list()
    assert again.to_list() == found
    if expected is not None:
        assert set(found) == set(expected)
        assert all(value in release for value in found)
    assert len(release.to_polars()) == len(release.to_pandas()) == release.to_arrow().num_rows == len(found)
    assert release.count(data, vp.Budget(4, 1e-6)).to_list()[:1] or not found
    assert release._repr_html_()
    for export in EXPORTS:
        try:
            vp.exports.write(release, folder / export.name, format=export.name)
        except VoxpopError:
            assert export.name in REFUSED or export.counted
    return True


def forms(table: pa.Table, folder: Path) -> dict[str, Any]:
    """Return a function for each source that creates it.

    A library without the type raises an error before voxpop reads it.
    """
    return {
        "table": lambda: table,
        "parquet": lambda: pa.parquet.write_table(table, folder / "t.parquet") or folder / "t.parquet",
        "feather": lambda: pa.feather.write_feather(table, str(folder / "t.feather")) or folder / "t.feather",
        "stream": lambda: table.to_reader(),
        "polars": lambda: pl.from_arrow(table),
        "lazy": lambda: pl.from_arrow(table).lazy(),
        "pandas": lambda: table.to_pandas(),
        "pandas of Arrow": lambda: table.to_pandas(types_mapper=pd.ArrowDtype),
        "rows": lambda: table.to_pylist(),
    }


ROLES: list[dict[str, str]] = [
    {"items": "what"},
    {"sequence": "other", "order": "what"},
    {"user": "what", "items": "other"},
    {"text": "what"},
    {"tokens": "what"},
    {"sequence": "what"},
    {"sequence": "what", "order": "other"},
]


def readable(array: pa.Array) -> list[int]:
    """Return the positions of the values that are read as single values. Other values are rejected and not quoted.

    Single values are not converted for other libraries, because all of these values are converted together.
    """
    ones = [array.slice(place, 1) for place in range(len(array))]
    return [place for place, one in enumerate(ones) if released(repeated(one, 2), items="what") is not None]


def some_of(name: str) -> pa.Array:
    """Return those values of a type that are read."""
    array = TYPES[name]
    held = readable(array)
    assert bool(held) is (name not in NEVER)
    return array.take(pa.array(held)) if 0 < len(held) < len(array) else array.slice(0, len(held))


@pytest.mark.parametrize("name", TYPES)
def test_every_type_is_returned_or_rejected(name):
    """Each extreme value is returned or rejected separately, and all returned values are also returned together."""
    array = some_of(name)
    if len(array):
        assert is_read(repeated(array, 2), values_of(array), items="what")


def test_a_dictionary_column_of_lists_is_read_as_lists():
    """The items are the elements, whether or not the lists are coded in a dictionary."""
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array([["a", "b"], ["c"]]))
    found = read_engine(pa.table({"who": [1, 2, 3], "what": coded}), user="who", items="what")
    assert found.vocabulary.to_pylist() == ["a", "b", "c"]


FULL = (
    "bool",
    "uint64",
    "int8",
    "date32",
    "date64",
    "time32[s], a day",
    "time64[ns], a day",
    "timestamp[ns]",
    "timestamp[s, tz=+05:30]",
    "decimal32(4, -3)",
    "decimal256(76, 2)",
    "string",
    "binary_view",
    "uuid",
)


@pytest.mark.parametrize("name", FULL)
def test_a_type_of_each_family_is_read_and_released(tmp_path, fixed_secrets, name):
    """With a ledger, noise, counts and all file formats, exactly the values that are read are returned."""
    array = some_of(name)
    if len(array):
        assert goes_the_whole_way(repeated(array), values_of(array), tmp_path / "all", items="what")
    everything = repeated(TYPES[name])
    if len(array) < len(TYPES[name]):
        assert not goes_the_whole_way(everything, None, tmp_path / "refused", items="what")


def released(source: Any, **columns: str) -> vp.Release | None:
    """Return all items of a source, or None after checking that the error of the source quotes nothing.

    Items are released without noise, which does not affect how they are returned.
    """
    try:
        data = read_engine(source, user=columns.pop("user", "who"), options=QUIET, **columns)
    except BaseException as error:
        assert_quotes_nothing(error)
        return None
    release = vp.Release.from_items(data.vocabulary, StoredPlan({}), vp.Guarantee(4, 1e-7), keys=data.keys)
    assert len(release.to_list()) == len(release)
    return release


def is_read(source: Any, expected: list[Any] | None = None, **columns: str) -> bool:
    """Check that a source returns all items or that its error quotes nothing, and return whether it is read."""
    release = released(source, **columns)
    if release is None:
        return False
    found = release.to_list()
    assert len(found) == len(release.to_polars()) == len(release.to_pandas())
    assert from_parquet(to_parquet(release.grams, release.keys), release.keys).equals(release.grams)
    if expected is not None:
        assert set(found) == set(expected)
    return True


@pytest.mark.slow
@pytest.mark.parametrize("name", TYPES)
def test_every_type_is_read_or_rejected_from_every_source_in_every_role(tmp_path, name):
    """In each role, a source either releases the values that it reads, or rejects them and quotes nothing."""
    array = TYPES[name]
    for one in (array, array.slice(len(array) - 1, 1)):
        table = repeated(one, 2)
        for columns in ROLES:
            is_read(table, **columns)
        for make in forms(table, tmp_path).values():
            for columns in ROLES[:3]:
                try:
                    source = make()
                except BaseException:  # including panics of Rust
                    break  # The other library has no such type or value.
                is_read(source, **columns)


OF_POLARS: dict[str, Any] = {
    "Int128": lambda: pl.Series([1, 2], dtype=pl.Int128),
    "UInt128": lambda: pl.Series([1, 2], dtype=pl.UInt128),
    "Float16": lambda: pl.Series([1, 2], dtype=pl.Float16),
    "Float32": lambda: pl.Series([1, 2], dtype=pl.Float32),
    "Decimal": lambda: pl.Series([decimal.Decimal("1.5")] * 2, dtype=pl.Decimal(38, 2)),
    "Categorical": lambda: pl.Series([MARK, "a"], dtype=pl.Categorical),
    "Enum": lambda: pl.Series([MARK, "a"], dtype=pl.Enum([MARK, "a"])),
    "Time": lambda: pl.Series([datetime.time(0), datetime.time(23, 59, 59, 999_999)]),
    "Datetime in a zone": lambda: pl.Series([0, NUMBER], dtype=pl.Datetime("ms", "Europe/Amsterdam")),
    "Datetime, beyond": lambda: pl.Series([0, 2**62], dtype=pl.Datetime("ms")),
    "Duration": lambda: pl.Series([0, NUMBER], dtype=pl.Duration("ns")),
    "Object": lambda: pl.Series([object(), MARK], dtype=pl.Object),
    "Struct": lambda: pl.Series([{"a": MARK}, {"a": "b"}]),
    "Array": lambda: pl.Series([[MARK], ["b"]], dtype=pl.Array(pl.String, 1)),
    "List of Int128": lambda: pl.Series([[1], [2]], dtype=pl.List(pl.Int128)),
    "Binary": lambda: pl.Series([b"\xff", b""]),
    "Null": lambda: pl.Series([None, None]),
}
OF_PANDAS: dict[str, Any] = {
    "Period": lambda: pd.period_range("2026", periods=2),
    "Interval": lambda: pd.arrays.IntervalArray.from_breaks([1, NUMBER, NUMBER + 1]),
    "Categorical": lambda: pd.Categorical([MARK, None]),
    "Categorical of times": lambda: pd.Categorical([pd.Timestamp(0), pd.Timestamp.max]),
    "Sparse": lambda: pd.arrays.SparseArray([1, 0]),
    "object": lambda: np.array([MARK, 3.5j], object),
    "object of numbers": lambda: np.array([10**5000, 1], object),
    "object of surrogates": lambda: np.array([MARK + "\ud800", "a"], object),
    "object of decimals": lambda: np.array([decimal.Decimal("sNaN"), decimal.Decimal("1E+999999")], object),
    "string": lambda: pd.array([MARK, None], "string"),
    "Int64": lambda: pd.array([2**63 - 1, None], "Int64"),
    "Float64": lambda: pd.array([1.5, None], "Float64"),
    "boolean": lambda: pd.array([True, None], "boolean"),
    "timedelta": lambda: pd.to_timedelta([1, NUMBER]),
    **{f"datetime64[{unit}]": lambda unit=unit: np.array([0, NUMBER], f"M8[{unit}]") for unit in UNITS},
    "datetimes with offsets": lambda: np.array(
        [datetime.datetime(1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=5))), None], object
    ),
    "dtype of Arrow": lambda: pd.array([datetime.time(5), None], pd.ArrowDtype(pa.time64("us"))),
    "complex": lambda: np.array([1j, 2]),
    "bytes": lambda: np.array([b"ab", b"\xff"]),
    "long doubles": lambda: np.array([1, 2], np.longdouble),
}


@pytest.mark.parametrize(
    "name", [*(f"polars, {each}" for each in OF_POLARS), *(f"pandas, {each}" for each in OF_PANDAS)]
)
def test_every_type_of_other_libraries_is_read(name):
    """Columns of polars, of pandas, of arrays and of Python objects are read or rejected in every role."""
    library, _, kind = name.partition(", ")
    column = (OF_POLARS if library == "polars" else OF_PANDAS)[kind]()
    held = {"who": [1, 2], "what": column, "other": [1, 2]}
    tables: list[Any] = [pl.DataFrame, lambda held: pl.LazyFrame(held), lambda held: pl.DataFrame(held).to_dicts()]
    if library == "pandas":
        tables = [pd.DataFrame, lambda held: pd.DataFrame(held).to_dict("records")]
    for make in (dict, *tables):
        for columns in ROLES:
            try:
                source = make(held)
            except BaseException:  # The library cannot store the value or return it.
                assert make is not dict
                break
            is_read(source, **columns)


def test_duplicate_columns_of_a_file_are_named(tmp_path):
    """A Parquet file with two columns of a requested name is rejected, and the error contains the name."""
    table = pa.table([pa.array([1]), pa.array(["a"]), pa.array(["b"]), pa.array([1])], ["who", "what", "what", "other"])
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    for source in (table, tmp_path / "t.parquet"):
        with pytest.raises(ColumnError, match='has 2 columns called "what"') as caught:
            vp.read(source, user="who", items="what")
        assert_quotes_nothing(caught.value)


whole_numbers = st.integers(-(2**63), 2**63 - 1) | st.integers(-(10**6), 10**6)
stored_kinds = st.sampled_from([each.type for each in TYPES.values() if pa.types.is_temporal(each.type)]).filter(
    lambda kind: not pa.types.is_interval(kind)
)


@given(stored_kinds, st.lists(whole_numbers, min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_generated_times_are_returned_or_rejected(kind, stored):
    """Times of every unit, width and zone, with any stored integer, are returned unchanged or rejected."""
    array = numbers(kind, *stored)
    if len(array):
        is_read(repeated(array, 1), values_or_mark(array), items="what")


def values_or_mark(array: pa.Array) -> list[Any] | None:
    """Return the values as Python objects, or a marked value if Python has no such value and voxpop must reject it."""
    try:
        return values_of(array)
    except (ValueError, OverflowError, KeyError):
        return [MARK]


@given(st.sampled_from(["decimal32", "decimal64", "decimal128", "decimal256"]), st.data())
@settings(max_examples=60, deadline=None)
def test_generated_decimals_are_returned_or_rejected(make, data):
    """Decimals of every width, precision and scale are returned unchanged or rejected."""
    digits = data.draw(st.integers(1, {"decimal32": 9, "decimal64": 18, "decimal128": 38, "decimal256": 76}[make]))
    kind = getattr(pa, make)(digits, data.draw(st.integers(-digits - 3, digits + 3)))
    ends = data.draw(st.lists(st.integers(1 - 10**digits, 10**digits - 1), min_size=1, max_size=4))
    array = from_numbers(kind, ends)
    expected = [EXACT.scaleb(decimal.Decimal(each), -kind.scale) for each in ends]
    is_read(repeated(array, 1), expected, items="what")


class Loud(str):
    """A string that quotes itself when its conversion fails."""

    def __str__(self) -> str:
        raise ValueError(MARK)


def failing(error: BaseException) -> Any:
    """Yield a row and raise an error."""
    yield {"who": 1, "what": "a"}
    raise error


class ToldError(Exception):
    """An exception with a marked text, attribute and note, but without arguments."""

    def __init__(self) -> None:
        self.statement = MARK
        self.add_note(MARK)

    def __str__(self) -> str:
        return MARK


@pytest.mark.parametrize(
    "source",
    [
        lambda: failing(RuntimeError(MARK)),
        lambda: failing(KeyError(MARK)),
        lambda: failing(OSError(MARK)),
        lambda: failing(ToldError()),
        lambda: failing(RecursionError(MARK)),
        lambda: failing(ExceptionGroup(MARK, [ValueError(MARK)])),
        lambda: [{"who": 1, "what": Loud(MARK)}],
        lambda: pl.LazyFrame({"who": [1], "what": [MARK]}).with_columns(pl.col("what").cast(pl.Int64)),
        lambda: pl.LazyFrame({"who": [1], "what": [MARK]}).select(pl.col("who"), pl.col("nowhere")),
    ],
)
def test_errors_of_a_source_do_not_contain_its_text(source):
    """Exceptions of any class become a SourceError without a cause."""
    for columns in ({"items": "what"}, {"text": "what"}):
        with pytest.raises(SourceError) as caught:
            vp.read(source(), user="who", options=QUIET, **columns)
        assert_quotes_nothing(caught.value)


def test_interrupts_and_memory_errors_propagate():
    """A keyboard interrupt propagates. A MemoryError contains advice instead of the text of a library."""
    with pytest.raises(KeyboardInterrupt):
        vp.read(failing(KeyboardInterrupt()), user="who", items="what", options=QUIET)
    with pytest.raises(MemoryError, match="Set a limit") as caught:
        vp.read(failing(pa.ArrowMemoryError(MARK)), user="who", items="what", options=QUIET)
    assert MARK not in "".join(traceback.format_exception(caught.value))


def test_a_fault_of_voxpop_keeps_its_frames_but_no_text(monkeypatch):
    """An exception while rows are converted to a corpus becomes an InternalError.

    Its cause has only a name and frames.
    """

    def fail(*_: object) -> None:
        try:
            raise KeyError(MARK)
        except KeyError:
            raise ToldError from None

    monkeypatch.setattr("voxpop.engine.local.read.merge_words", fail)
    with pytest.raises(InternalError, match="because of ToldError") as caught:
        vp.read([{"who": 1, "what": "a"}], user="who", items="what", options=QUIET)
    said = "".join(traceback.format_exception(caught.value))
    assert MARK not in said
    assert "in fail" in said
    assert caught.value.__context__ is None or isinstance(caught.value.__cause__, Exception)


def test_a_profile_does_not_quote_a_failed_query():
    """The guard against quoting also covers the schema of a query, so a profile does not quote the failure."""
    frame = pl.LazyFrame({"who": [1], "what": [MARK]}).select(pl.col("who"), pl.col(f"{MARK}2"))
    with pytest.raises(SourceError) as caught:
        vp.profile(frame, user="who", budget=vp.Budget(1, 1e-6))
    assert MARK not in str(caught.value)


def test_decimals_beyond_plain_types_are_rejected():
    """For a negative scale, pyarrow multiplies without checking for overflow, so it returned a different number."""
    stored = np.array([99_999_999_998_103_988_508_917_264 % 2**64, 99_999_999_998_103_988_508_917_264 >> 64], np.uint64)
    array = pa.Array.from_buffers(pa.decimal128(26, -22), 1, [None, pa.py_buffer(stored.tobytes())])
    with pytest.raises(ColumnError, match="more than 38 digits"):
        read_engine(pa.table({"who": [0], "what": array}), user="who", items="what")
