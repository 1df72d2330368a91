"""Tests of the files to which results are exported."""

import csv
import datetime as dt
import json
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pytest

import voxpop as vp
from voxpop.release.counts import Top


def test_a_release_is_exported_as_text(phrases, tmp_path):
    """A text file has one gram per line, in canonical order, in UTF-8."""
    vp.exports.write(phrases, tmp_path / "words.txt")
    assert (tmp_path / "words.txt").read_text(encoding="utf-8").splitlines() == [" ".join(gram) for gram in phrases]


def test_a_json_file_contains_grams_as_lists_and_the_guarantee(phrases, tmp_path):
    """A JSON file contains grams as lists, with the guarantee."""
    vp.exports.write(phrases, tmp_path / "words.json")
    content = json.loads((tmp_path / "words.json").read_text(encoding="utf-8"))
    assert [tuple(gram) for gram in content["grams"]] == list(phrases)
    assert content["statement"] == "(4, 1e-07)-DP, one user added or removed"


def test_commas_and_quotes_are_quoted_in_csv_files(released, tmp_path):
    """Grams with commas and quotes are quoted in CSV files."""
    release = released([('a,"b"',), ("c",), ("c", "c")])
    vp.exports.write(release, tmp_path / "words.csv")
    with open(tmp_path / "words.csv", newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [["gram", "length"], ['a,"b"', "1"], ["c", "1"], ["c c", "2"]]


def test_files_of_keys_contain_their_columns(tmp_path):
    """Files of keys have typed columns in Parquet and Arrow, and the spelling of the keys in CSV."""
    table = pl.DataFrame({"who": range(600), "shop": [-7, 8] * 300, "day": [dt.date(2026, 11, 22)] * 600})
    corpus = vp.read(table, user="who", items=["shop", "day"])
    keys = vp.Items(max_items_per_user=1).release(corpus, vp.Budget(20, 1e-3))
    for name in ("keys.csv", "keys.parquet", "keys.arrow"):
        vp.exports.write(keys, tmp_path / name)
    assert (tmp_path / "keys.csv").read_text().splitlines()[1] == '-7,"2026-11-22"'
    assert pl.read_parquet(tmp_path / "keys.parquet").schema["day"] == pl.Date
    assert pl.read_ipc(tmp_path / "keys.arrow").equals(keys.to_polars())


def test_files_are_not_replaced_without_the_option(phrases, tmp_path):
    """A file is replaced only with `overwrite=True`."""
    vp.exports.write(phrases, tmp_path / "words.txt")
    with pytest.raises(vp.errors.ReleaseError, match="already exists"):
        vp.exports.write(phrases, tmp_path / "words.txt")
    vp.exports.write(phrases, tmp_path / "words.txt", overwrite=True)


GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "exports.md"
NEEDS = {"sql": "sqlglot", **dict.fromkeys(("tokenizer", "bpe", "wordpiece", "unigram"), "tokenizers")}
"""The libraries of formats that need one."""


@pytest.mark.parametrize("export", vp.exports.EXPORTS, ids=lambda export: export.name)
def test_every_format_is_written_and_documented(export, released, tmp_path):
    """The guide has a row for each format.

    Each format writes a file or raises an error that names the missing library or result.
    """
    rows = [line.split("|")[1:-1] for line in GUIDE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    (row,) = (row for row in rows if f"`{export.name}`" in row[0])
    assert len(row) == 3
    assert all(cell.strip() for cell in row)
    if library := NEEDS.get(export.name):
        pytest.importorskip(library, reason=f"{library} is not installed: make exports")
    grams = (
        [("tea",), ("with",)] if export.name in ("sql", "bpe", "wordpiece", "unigram") else [("tea",), ("tea", "with")]
    )
    release = released(grams)
    if export.name == "sql":
        release = vp.Release.from_items(pa.array(["tea", "with"]), release.plan, release.guarantee)
    counts = vp.Counts(release, np.array([5, 3]), 1.0, release.plan, release.guarantee)
    result, other = (counts, release) if export.counted else (release, counts)
    vp.exports.write(result, tmp_path / "file", export.name, size=512)
    assert (tmp_path / "file").stat().st_size
    if export.general:
        vp.exports.write(other, tmp_path / "other", export.name)
        return
    if export.table:
        vp.exports.write(other, tmp_path / "other", export.name)
        assert (tmp_path / "other").read_bytes() != (tmp_path / "file").read_bytes()
        return
    with pytest.raises(vp.errors.InputError, match=r"counts|releases"):
        vp.exports.write(other, tmp_path / "other", export.name)


@pytest.mark.parametrize("name", ["words.arrow", "words.feather", "words.parquet"])
def test_tables_are_exported(phrases, tmp_path, name):
    """Tables can be read back by polars and pyarrow."""
    vp.exports.write(phrases, tmp_path / name)
    frame = pl.read_parquet(tmp_path / name) if name.endswith("t") else pl.read_ipc(tmp_path / name)
    assert frame.equals(phrases.to_polars())
    if not name.endswith("t"):
        assert feather.read_table(tmp_path / name).equals(phrases.to_arrow())


def test_a_vocabulary_is_accepted_by_scikit_learn(phrases, tmp_path):
    """The vocabulary maps grams to numbers, in the form that `CountVectorizer(vocabulary=...)` accepts."""
    vp.exports.write(phrases, tmp_path / "vocabulary", format="vocabulary")
    assert json.loads((tmp_path / "vocabulary").read_text(encoding="utf-8"))["thank you very"] == len(phrases) - 1


@pytest.mark.parametrize(
    ("grams", "name", "words"),
    [
        ([("a\nb",)], "x.txt", "line breaks"),
        ([("a b",), ("a",), ("b",), ("a", "b")], "x.txt", "two grams would become one"),
        ([("a b",), ("a",), ("b",), ("a", "b")], "x.csv", "two grams would become one"),
        ([("a",)], "x.doc", "is not the suffix of a format"),
    ],
)
def test_unwritable_values_are_rejected(released, tmp_path, grams, name, words):
    """No file is written if it would be read back as another set of grams, or if its format is unknown."""
    with pytest.raises(vp.errors.InputError, match=words):
        vp.exports.write(released(grams), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_folder_is_reported(phrases, tmp_path):
    """A path that is a folder or has a file as its parent raises `ReleaseError`."""
    (tmp_path / "file").write_text("")
    with pytest.raises(vp.errors.ReleaseError, match="is a folder"):
        vp.exports.write(phrases, tmp_path, format="text")
    with pytest.raises(vp.errors.ReleaseError, match="could not be written"):
        vp.exports.write(phrases, tmp_path / "file" / "words.txt")


def test_frequencies_are_written_in_descending_order(released, tmp_path):
    """Grams with the largest numbers of users are first.

    A tab separates the gram from the number, which is at least 1.
    """
    release = released([("tea",), ("milk",), ("tea", "time")])
    counts = vp.Counts(release, np.array([5, 30, -2]), 1.0, release.plan, release.guarantee)  # milk, tea, tea time
    vp.exports.write(counts, tmp_path / "words.tsv", "frequencies")
    assert (tmp_path / "words.tsv").read_text(encoding="utf-8") == "tea\t30\nmilk\t5\ntea time\t1\n"
    broken = vp.Counts(released([("a\nb",)]), np.array([5]), 1.0, release.plan, release.guarantee)
    with pytest.raises(vp.errors.InputError, match="line breaks"):
        vp.exports.write(broken, tmp_path / "broken.tsv", "frequencies")


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.arrow"])
def test_counts_and_rankings_are_written_as_tables(released, tmp_path, name):
    """The table has the columns of `to_arrow` in the same order, and CSV follows the rules for spreadsheets."""
    release = released([("=1+1",), ("tea",), ("tea", "time")])
    counts = vp.Counts(release, np.array([5, 30, -2]), 1.0, release.plan, release.guarantee)
    ranking = Top(release, np.array([2, 0]), release.plan, release.guarantee)
    read = {"t.csv": pl.read_csv, "t.parquet": pl.read_parquet, "t.arrow": pl.read_ipc}[name]
    for result, column, numbers in ((counts, "users", [30, 5, -2]), (ranking, "place", [1, 2])):
        vp.exports.write(result, tmp_path / name, overwrite=True)
        found, wanted = read(tmp_path / name), pl.DataFrame(result.to_arrow())
        assert found.columns == wanted.columns == ["gram", "length", column]
        assert found[column].to_list() == numbers
        if name == "t.csv":
            texts = [" ".join(gram).replace("=1+1", "'=1+1") for gram in wanted["gram"]]
            assert found["gram"].to_list() == texts
        else:
            assert found.equals(wanted)


def test_counts_of_keys_are_written_as_a_query(tmp_path):
    """The query returns the keys with their counts. The column of counts has a name that no key column has."""
    sqlglot = pytest.importorskip("sqlglot", reason="sqlglot is not installed: make exports")
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: make exports")
    table = pl.DataFrame({"who": range(600), "users": ["a", "b's"] * 300})
    keys = vp.Items(max_items_per_user=1).release(vp.read(table, user="who", items=["users"]), vp.Budget(20, 1e-3))
    counts = vp.Counts(keys, np.array([-4, 7]), 1.0, keys.plan, keys.guarantee)
    vp.exports.write(counts, tmp_path / "t.sql")
    query = (tmp_path / "t.sql").read_text(encoding="utf-8")
    assert sqlglot.parse_one(query, read="duckdb").named_selects == ["users", "noisy_users"]
    assert duckdb.sql(query).fetchall() == [("b's", 7), ("a", -4)]
    condition = vp.exports.to_sql(counts)
    assert duckdb.from_arrow(table.to_arrow()).filter(condition).aggregate("count(*)").fetchall() == [(600,)]


def test_profiles_are_written_as_tables(tmp_path):
    """A profile is written with the columns of its flat table, and cannot be written as a query."""
    table = pl.DataFrame({"who": range(600), "shop": ["a", "b"] * 300})
    profile = vp.profile(table, user="who", budget=vp.Budget(20, 1e-3))
    vp.exports.write(profile, tmp_path / "t.parquet")
    assert pl.read_parquet(tmp_path / "t.parquet").equals(pl.DataFrame(profile.to_arrow()))
    with pytest.raises(vp.errors.InputError, match="format for releases"):
        vp.exports.write(profile, tmp_path / "t.sql")
