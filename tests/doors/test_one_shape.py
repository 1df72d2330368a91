"""Tests that all tables of a source must have the same types, and that dictionaries change no value."""

import datetime as dt
from decimal import Decimal
from itertools import permutations
from uuid import UUID

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import voxpop as vp
from support.look import read_engine, user_items
from voxpop.errors import ColumnError, SourceError, VoxpopError


def table(what, who=None, at=None):
    """Return a table of users, contents and times."""
    who = pa.array(range(len(what)), pa.int64()) if who is None else who
    return pa.table({"who": who, "what": what, "at": pa.array(range(len(what))) if at is None else at})


def as_iterator(tables, _):
    return iter(tables)


def as_folder(tables, folder):
    for number, each in enumerate(tables):
        pq.write_table(each, folder / f"{number}.parquet")
    return folder


def as_paths(tables, folder):
    paths = [folder / f"{number}.feather" for number, _ in enumerate(tables)]
    for path, each in zip(paths, tables, strict=True):
        pyarrow.feather.write_feather(each, path)
    return paths


def as_dataset(tables, folder):
    # The data set has the types of the first file.
    return pyarrow.dataset.dataset(as_folder(tables, folder))


SEVERAL = [as_iterator, as_folder, as_paths, as_dataset]
TYPES = {
    "decimals": (pa.array([Decimal("19.99")]), pa.array([Decimal("1234567.125")])),
    "widths": (pa.array([7], pa.int32()), pa.array([7], pa.int64())),
    "signs": (pa.array([7], pa.int64()), pa.array([7], pa.uint64())),
    "units": (pa.array([7], pa.timestamp("us")), pa.array([7], pa.timestamp("ns"))),
    "zones": (pa.array([7], pa.timestamp("us", "UTC")), pa.array([7], pa.timestamp("us", "Europe/Amsterdam"))),
    "numbers and strings": (pa.array([7], pa.int64()), pa.array(["7"])),
    "dates and strings": (pa.array([dt.date(2026, 1, 1)]), pa.array(["2026-01-01"])),
    "bytes and strings": (pa.array([b"a"]), pa.array(["61"])),
}


@pytest.mark.parametrize("several", SEVERAL)
@pytest.mark.parametrize("kinds", TYPES)
@pytest.mark.parametrize("memory", [None, "1GiB"])
def test_two_types_in_one_column_are_rejected(tmp_path, several, kinds, memory):
    """The error contains the next step and is raised before a charge.

    The test covers both orders of the tables, with and without a dictionary.
    """
    options = vp.ReadOptions(memory=memory)
    for number, (one, other) in enumerate(permutations(TYPES[kinds])):
        for name, made in (("plain", other), ("dictionary", other.dictionary_encode())):
            if (kinds, name) == ("zones", "dictionary"):
                continue  # Parquet stores such dictionaries in UTC
            folder = tmp_path / f"{number} {name}"
            folder.mkdir()
            with pytest.raises((ColumnError, SourceError), match="must have one type"):
                read_engine(several([table(one), table(made)], folder), user="who", items="what", options=options)


@pytest.mark.parametrize("several", SEVERAL[:3])
def test_tables_of_different_types_are_joined_by_a_declared_type(tmp_path, several):
    """Values are cast within a family of types. A value that would change is rejected and not quoted."""
    for number, order in enumerate(permutations([pa.int32(), pa.int64(), pa.uint8()])):
        folder = tmp_path / str(number)
        folder.mkdir()
        tables = [table(pa.array([7], kind), pa.array([place])) for place, kind in enumerate(order)]
        corpus = read_engine(several(tables, folder), user="who", items="what", types={"what": "int64"})
        assert [each.kind for each in corpus.keys.columns] == ["int64"]
        assert user_items(corpus) == [["7"]] * 3
    both = [table(pa.array([Decimal("19.99")])), table(pa.array([Decimal("1234567.125")]), pa.array([9]))]
    corpus = read_engine(iter(both), user="who", items="what", types={"what": "decimal(12, 3)"})
    assert corpus.vocabulary.to_pylist() == ["1234567.125", "19.99"]
    with pytest.raises(SourceError, match="does not fit decimal128") as caught:
        read_engine(iter(both), user="who", items="what", types={"what": "decimal(12, 2)"})
    assert "1234567" not in str(caught.value)


@pytest.mark.parametrize("several", SEVERAL[:3])
@pytest.mark.parametrize("way", ["items", "tokens", "sequence"])
def test_nulls_and_dictionaries_do_not_change_the_type(tmp_path, several, way):
    """A column of nulls, strings of any width, and dictionaries of strings have the same type."""
    texts = [pa.array(["a", None]), pa.array(["a", None], pa.large_string()), pa.array(["a", None]).dictionary_encode()]
    texts += [pa.nulls(2)] if way == "items" else []
    if way != "items":
        texts = [pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), each) for each in texts]
    for number, order in enumerate(permutations(texts)):
        folder = tmp_path / str(number)
        folder.mkdir()
        tables = [table(each, pa.array([place] * len(each))) for place, each in enumerate(order)]
        corpus = read_engine(several(tables, folder), user="who", **{way: "what"})
        assert corpus.vocabulary.to_pylist() == ["a"]
        assert corpus.user_key.size == 3 if way != "items" else 4


@pytest.mark.parametrize("kinds", ["numbers and strings", "dates and strings", "bytes and strings", "truth", "UUIDs"])
@pytest.mark.parametrize("users", ["who", ["who", "at"]])
def test_ids_of_two_types_are_rejected(kinds, users):
    """Equal spellings of ids of two types would become one user, so two people would share a privacy unit."""
    uuid = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([UUID(int=5).bytes], pa.binary(16)))
    more = {"truth": (pa.array([True]), pa.array(["true"])), "UUIDs": (uuid, pa.array([str(UUID(int=5))]))}
    for pair in permutations({**TYPES, **more}[kinds]):
        with pytest.raises(ColumnError, match="must have one type"):
            read_engine(iter([table(["a"], each) for each in pair]), user=users, items="what")


def test_times_of_two_types_are_rejected():
    """Times with different units, zones or kinds would have no common order."""
    kinds = [pa.int64(), pa.float64(), pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("us", "UTC")]
    for one, other in permutations(kinds, 2):
        tables = [table(["a"], at=pa.array([5]).cast(kind)) for kind in (one, other)]
        with pytest.raises(ColumnError, match="must have one type"):
            read_engine(iter(tables), user="who", sequence="what", order="at")


def with_nulls(values):
    """Return a dictionary that has null, two equal values and a value that no row uses."""
    plain = pa.array(values)
    distinct = pa.concat_arrays([plain.unique(), pa.nulls(1, plain.type), plain.unique()])
    places = [values.index(each) if each is not None else len(set(values) - {None}) for each in values]
    return pa.DictionaryArray.from_arrays(pa.array(places), distinct)


@pytest.mark.parametrize("values", [["x", None, "y"], [5, None, 6], [dt.date(2026, 1, 1), None, dt.date(2026, 1, 2)]])
@pytest.mark.parametrize("way", ["items", "list of items", "composite", "user", "tokens", "text", "events", "profile"])
def test_a_dictionary_column_is_read_as_its_values(values, way):
    """In every role and within lists, a null in a dictionary is not an item, and equal values are one item."""
    values = sorted(values, key=str) if way == "user" else [values[0], values[2], None]
    values = [each for each in values if each is not None] if way == "user" else values
    found = []
    for column in (pa.array(values), with_nulls(values)):
        rows = pa.table({"who": pa.array(range(len(column))), "what": column, "at": pa.array(range(len(column)))})
        if way == "list of items" or way == "tokens":
            lists = pa.ListArray.from_arrays(pa.array(range(len(column) + 1), pa.int32()), column)
            rows = rows.set_column(1, "what", lists)
        how = {
            "items": {"items": "what"},
            "list of items": {"items": "what"},
            "composite": {"items": ["what", "at"]},
            "user": {"user": "what", "items": "at"},
            "tokens": {"tokens": "what"},
            "text": {"text": "what"},
            "events": {"sequence": "what", "order": "at"},
        }
        try:
            if way == "profile":
                found.append(vp.profile(rows, user="who", budget=vp.Budget(5, 1e-7), seed=1).columns["what"].to_list())
                continue
            corpus = read_engine(rows, **{"user": "who", **how[way]})
        except VoxpopError as error:
            found.append(str(error).replace("dictionary", ""))
            continue
        words = corpus.vocabulary.to_pylist()
        found.append((words, corpus.tokens.tolist(), corpus.user_start.tolist(), corpus.keys))
    assert found[0] == found[1]


def test_values_that_no_row_uses_have_no_effect():
    """A dictionary may have invalid text and years that have no spelling, as long as no row uses them."""
    invalid = pa.StringArray.from_buffers(2, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pa.py_buffer(b"a\xff"))
    years = pa.array([0, 10**9], pa.int32()).cast(pa.date32())
    for values, wanted in ((invalid, "a"), (years, "1970-01-01")):
        column = pa.DictionaryArray.from_arrays(pa.array([0, 0]), values)
        assert read_engine(table(column), user="who", items="what").vocabulary.to_pylist() == [wanted]
        lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), column)
        assert read_engine(table(lists), user="who", items="what").vocabulary.to_pylist() == [wanted]


def test_a_table_without_rows_declares_its_types(tmp_path):
    """The types of a release are the same whether or not the table has a row."""
    empty, one = table(pa.array([], pa.int16())), table(pa.array([7], pa.int16()))
    for several in SEVERAL:
        found = []
        for name, rows in (("empty", empty), ("one", one)):
            folder = tmp_path / f"{several.__name__} {name}"
            folder.mkdir()
            corpus = read_engine(several([rows], folder), user="who", items="what")
            found.append((corpus.keys, corpus.families))
        assert found[0] == found[1]
    for make in (lambda rows: rows, lambda rows: rows.to_reader(), pl.DataFrame, lambda rows: rows.to_pandas()):
        kinds = [read_engine(make(rows), user="who", items="what").keys for rows in (empty, one)]
        assert kinds[0] == kinds[1]


@pytest.mark.parametrize("memory", [None, "1GiB"])
def test_chunks_with_different_inferred_types_are_rejected(memory):
    """Pandas and polars infer the types of a chunk from its values."""
    for make in (pd.DataFrame, pl.DataFrame):
        chunks = [make({"who": [1], "what": [7]}), make({"who": [2], "what": ["tea"]})]
        with pytest.raises(ColumnError, match=r"whole numbers in one table and strings in another|int64 .* string"):
            read_engine(iter(chunks), user="who", items="what", options=vp.ReadOptions(memory=memory))


def test_files_with_other_columns_are_rejected_for_a_profile(tmp_path):
    """All files must have the columns of the first file, in the same order and with the same types."""
    rows = pa.table({"who": [1, 2], "city": ["a", "b"], "age": [1, 2]})
    others = [
        rows.drop_columns("age"),
        rows.append_column("more", pa.array([1, 2])),
        rows.select(["who", "age", "city"]),
        rows.set_column(2, "age", pa.array([1, 2], pa.int8())),
    ]
    budget = vp.Budget(1, 1e-7)
    for number, other in enumerate(others):
        for order in permutations([rows, other]):
            for several in SEVERAL[1:]:
                folder = tmp_path / f"{number} {several.__name__} {order[0] is rows}"
                folder.mkdir()
                with pytest.raises(VoxpopError, match=r"must have the same columns|must have one type"):
                    vp.profile(several(order, folder), user="who", budget=budget)
    (tmp_path / "csv").mkdir()
    for name, head in (("a", "who,city"), ("b", "who,city,age")):
        (tmp_path / "csv" / f"{name}.csv").write_text(f"{head}\n")
    with pytest.raises(VoxpopError, match="must have the same columns"):
        vp.profile(tmp_path / "csv", user="who", budget=budget)
