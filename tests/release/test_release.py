"""Tests of `Release`, which contains only a set of grams in canonical order."""

import dataclasses

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import voxpop as vp
from voxpop.errors import InternalError
from voxpop.privacy.guarantee import Guarantee
from voxpop.reading.keys import Keys
from voxpop.release.release import Release
from voxpop.release.result import StoredPlan
from voxpop.release.table import SCHEMA, from_parquet, to_parquet

PLAN, GUARANTEE = StoredPlan({"sigma": 1.0}), Guarantee(4, 1e-7)
tokens = st.text(st.characters(codec="utf-8"), max_size=3)
grams = st.lists(tokens, min_size=1, max_size=3).map(tuple)


def canonical(members):
    return sorted(members, key=lambda gram: (len(gram), [token.encode() for token in gram]))


def table_of(rows):
    return pa.table({"gram": [list(row) for row in rows], "length": [len(row) for row in rows]}, schema=SCHEMA)


def test_iteration_yields_words_in_order(words):
    """Words are in the order of their bytes.

    `each_gram` yields tuples of one word.
    """
    assert list(words) == words.to_list() == ["Zoo", "milk", "tea", "été", "𝔘nicode"]
    assert list(words.each_gram()) == [(word,) for word in words]
    assert len(words) == 5


def test_a_release_of_grams_yields_tuples():
    """The values are tuples even if all grams have length 1, so the type does not depend on the data."""
    assert list(Release(table_of([("a",)]), PLAN, GUARANTEE)) == [("a",)]


def test_a_release_supports_the_arrow_protocol(words):
    """Libraries that accept an Arrow stream accept a release."""
    assert pl.DataFrame(words).equals(words.to_polars())
    assert pa.table(words).equals(words.to_arrow())


@pytest.mark.parametrize("gram", ["tea", ("tea",), ["tea"]])
def test_a_release_contains_the_released_items(words, gram):
    """A released gram can be given as a token, a tuple or a list."""
    assert gram in words


@pytest.mark.parametrize("gram", ["te", ("tea", "milk"), (), 3, None])
def test_a_release_contains_only_released_values(words, gram):
    """Values of any type that were not released are not in the release."""
    assert gram not in words


def test_tables_have_the_documented_columns(words):
    """The three kinds of tables have the same columns, types and rows. Words are a single column of strings."""
    frame = words.to_polars()
    assert frame.schema == {"word": pl.String}
    assert frame["word"].to_list() == words.to_pandas()["word"].tolist() == words.to_list()
    phrases = Release(words.grams, PLAN, GUARANTEE)
    frame, pandas = phrases.to_polars(), phrases.to_pandas()
    assert frame.schema == {"gram": pl.List(pl.String), "length": pl.Int32}
    assert phrases.to_arrow().schema.equals(SCHEMA)
    assert pandas["length"].dtype == np.int32
    assert frame["gram"].to_list() == pandas["gram"].tolist() == [[word] for word in words]


@pytest.mark.parametrize("name", ["gram", "length", "word", "users", "place", "noisy"])
def test_a_key_column_can_have_any_name(name, tmp_path):
    """Tables of keys, counts and rankings have a key column and one column of results, even if their names collide."""
    rows = pl.DataFrame({"who": range(6000), name: [7] * 4000 + [5] * 2000})
    corpus, budget = vp.read(rows, user="who", items=name), vp.Budget(4, 1e-7)
    keys = vp.Items(max_items_per_user=1).release(corpus, budget)
    assert keys.to_polars().to_dict(as_series=False) == {name: [5, 7]}
    counts, ranking = keys.count(corpus, budget), keys.top(corpus, budget, k=2)
    assert counts.to_polars().columns == [name, "noisy_users" if name == "users" else "users"]
    assert ranking.to_polars().columns == [name, "noisy_place" if name == "place" else "place"]
    assert counts.to_polars()[name].to_list() == ranking.to_polars()[name].to_list() == [7, 5]
    keys.save(tmp_path / "keys")
    assert pl.read_parquet(tmp_path / "keys" / "release.parquet").equals(keys.to_polars())
    assert vp.load(tmp_path / "keys") == keys


def test_columns_of_results_do_not_hide_key_columns():
    """Key columns can have both the usual and the alternative name of a column of results."""
    for name in ("users", "place"):
        names = [name, f"noisy_{name}"]
        rows = pl.DataFrame({"who": range(400), **dict.fromkeys(names, [1, 2] * 200)})
        corpus, budget = vp.read(rows, user="who", items=names), vp.Budget(4, 1e-7)
        keys = vp.Items(max_items_per_user=1).release(corpus, budget)
        found = keys.count(corpus, budget) if name == "users" else keys.top(corpus, budget, k=1)
        for table in (found.to_polars(), found.to_pandas()):
            assert list(table.columns) == [*names, f"noisy_noisy_{name}"]
    profile = vp.profile(
        rows.rename({"place": "users", "noisy_place": "noisy_users"}),
        user="who",
        budget=budget,
        joint=[("users", "noisy_users")],
    )
    counted = profile.counts("users", "noisy_users")
    assert counted.column_names == ["users", "noisy_users", "noisy_noisy_users", "low", "high"]


def test_saved_tables_equal_the_tables_of_results(words, tmp_path):
    """A file with other columns is rejected."""
    phrases = Release(words.grams, words.plan, words.guarantee)
    for number, each in enumerate((words, phrases)):
        folder = tmp_path / str(number)
        each.save(folder)
        assert pl.read_parquet(folder / "release.parquet").equals(each.to_polars())
        assert vp.load(folder) == each
    with pytest.raises(ValueError, match="other columns"):
        from_parquet(to_parquet(words.grams, None), Keys())


def test_a_release_is_frozen(words):
    """Assigning a field of a release raises an error."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        words.plan = None


def test_repr_contains_the_size_and_the_guarantee(words, release_of):
    """The representation shows the size and the guarantee, but no grams."""
    assert repr(words) == "Release(5 items, (4, 1e-07)-DP, one user added or removed)"
    assert repr(release_of("tea")).startswith("Release(1 item,")


def test_repr_marks_a_seeded_release(release_of):
    """The representation of a release made with a seed contains NOT PRIVATE."""
    assert "NOT PRIVATE" in repr(release_of("tea", private=False))


def test_equal_releases_have_the_same_grams_plan_and_guarantee(words, release_of):
    """Releases are unequal if their grams, plans or guarantees differ."""
    assert words == Release.from_items(pa.array(words.to_list()), StoredPlan(words.plan.to_dict()), words.guarantee)
    assert words != Release(words.grams, words.plan, words.guarantee)
    assert words != release_of("tea")
    assert words != Release(words.grams, PLAN, words.guarantee)
    assert words != Release(words.grams, words.plan, Guarantee(4, 1e-8))
    assert words != list(words)


def test_an_empty_release_has_no_rows(release_of):
    """An empty release has length 0, empty tables and no members."""
    empty = release_of()
    assert (len(empty), list(empty), "tea" in empty) == (0, [], False)
    assert empty.to_polars().schema == {"word": pl.String}


@given(st.sets(grams, max_size=12))
def test_canonical_order_is_accepted(members):
    """A release of distinct grams, sorted by length and bytes, yields exactly these grams."""
    rows = canonical(members)
    assert list(Release(table_of(rows), PLAN, GUARANTEE)) == rows


@given(st.lists(grams, min_size=2, max_size=8))
def test_any_other_order_is_rejected(rows):
    """A table that is unsorted or has a duplicate gram raises `InternalError`."""
    if rows == canonical(set(rows)):
        rows = [*rows, rows[-1]]
    with pytest.raises(InternalError, match="canonical order"):
        Release(table_of(rows), PLAN, GUARANTEE)


def test_unsorted_items_are_rejected():
    """Unsorted, duplicate or null items raise `InternalError`."""
    for items in (["b", "a"], ["a", "a"], ["a", None]):
        with pytest.raises(InternalError):
            Release.from_items(pa.array(items, pa.large_string()), PLAN, GUARANTEE)


@pytest.mark.parametrize(
    ("gram", "length"), [([["a"]], [2]), ([[]], [0]), ([None], [1]), ([["a"]], [None]), ([[None]], [1])]
)
def test_malformed_rows_are_rejected(gram, length):
    """A wrong length, an empty gram and nulls raise `InternalError`."""
    with pytest.raises(InternalError):
        Release(pa.table({"gram": gram, "length": length}, schema=SCHEMA), PLAN, GUARANTEE)


def test_other_columns_are_rejected(words):
    """A table with another column, such as a count, raises `InternalError`."""
    with pytest.raises(InternalError, match="schema"):
        Release(words.grams.append_column("count", pa.array(range(5))), PLAN, GUARANTEE)


def test_a_table_with_schema_metadata_is_rejected(words):
    """Metadata could contain private numbers, such as the number of users, so it raises `InternalError`."""
    with pytest.raises(InternalError, match="schema"):
        Release(words.grams.replace_schema_metadata({"users": "17"}), PLAN, GUARANTEE)


@given(st.sets(grams, max_size=12), st.data())
def test_bytes_depend_only_on_the_rows(members, data):
    """The bytes of the file do not depend on the chunks and slices of the table."""
    rows = canonical(members)
    cut = data.draw(st.integers(0, len(rows)))
    pieces = pa.concat_tables([table_of([("x",), *rows[:cut]]).slice(1), table_of(rows[cut:])])
    assert to_parquet(pieces) == to_parquet(table_of(rows))
    assert from_parquet(to_parquet(pieces)).equals(table_of(rows))
