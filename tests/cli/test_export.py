"""Tests of `voxpop export`."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import voxpop as vp
from voxpop.release.counts import Top
from voxpop.release.result import StoredPlan
from voxpop.release.table import SCHEMA

pytestmark = pytest.mark.usefixtures("fixed_secrets")

GRAMS = [["tea"], ["with"], ["tea", "with"]]


@pytest.fixture
def phrases():
    """Return a release of two words and their phrase."""
    table = pa.table({"gram": GRAMS, "length": [1, 1, 2]}, schema=SCHEMA)
    return vp.Release(table, StoredPlan({}), vp.Guarantee(4, 1e-7))


def test_the_command_writes_the_result(voxpop, phrases, tmp_path):
    """The format is determined by `--format` or by the suffix of the file."""
    phrases.save(tmp_path / "words")
    assert voxpop("export", "words", "-o", "a.txt").out == "Wrote 3 grams to a.txt\n"
    assert voxpop("export", "words", "-o", "b", "--format", "text").code == 0
    assert (tmp_path / "a.txt").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_counts_of_a_folder_are_exported(voxpop, phrases, tmp_path):
    """Tables contain the noisy numbers of users, and `--of` selects another result of the folder."""
    phrases.save(tmp_path / "words")
    vp.Counts(phrases, np.array([5, 30, -2]), 1.0, StoredPlan({"error": 1.0}), phrases.guarantee).save("words")
    Top(phrases, np.array([1]), phrases.plan, phrases.guarantee).save("words")
    assert "with noisy numbers of users" in voxpop("export", "words", "-o", "a.csv").out
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert lines == ['"gram","length","users"', '"with",1,30', '"tea",1,5', '"tea with",2,-2']
    assert voxpop("export", "words", "-o", "b.csv", "--of", "release").out == "Wrote 3 grams to b.csv\n"
    assert (tmp_path / "b.csv").read_text().splitlines()[0] == '"gram","length"'
    assert "with their places" in voxpop("export", "words", "-o", "c.csv", "--of", "top").out
    assert (tmp_path / "c.csv").read_text().splitlines() == ['"gram","length","place"', '"with",1,1']
    assert voxpop("export", "words", "-o", "a.txt").code == 0


def test_nothing_is_replaced_without_overwrite(voxpop, phrases, tmp_path):
    """Existing files are replaced only with `--overwrite`."""
    phrases.save(tmp_path / "words")
    (tmp_path / "a.txt").write_text("mine")
    assert "already exists" in voxpop("export", "words", "-o", "a.txt").complaint
    assert (tmp_path / "a.txt").read_text() == "mine"
    assert voxpop("export", "words", "-o", "a.txt", "--overwrite").code == 0


def test_releasing_over_a_release_spends_nothing(voxpop, phrases, tmp_path):
    """The call is rejected before the data is read, but runs with `--overwrite`."""
    pl.DataFrame({"who": range(500), "what": ["tea"] * 500}).write_parquet(tmp_path / "t.parquet")
    phrases.save(tmp_path / "words")
    call = ["items", "--user", "who", "--items", "what", "--epsilon", 4, "--delta", 1e-6, "-o", "words"]
    assert "already contains a release" in voxpop(*call, "nowhere.parquet").complaint
    assert voxpop(*call, "t.parquet", "--overwrite").code == 0
    assert vp.load(tmp_path / "words").to_list() == ["tea"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["words", "-o", "a"], "is not the suffix of a format"),
        (["words", "-o", "a.txt", "--format", "word"], "`format` must be"),
        (["nowhere", "-o", "a.txt"], "nowhere does not exist"),
        (["words"], "--output"),
        (["words", "-o", "a", "--format", "tokenizer", "--tokenizer", "x"], "`tokenizer` must be"),
    ],
)
def test_wrong_calls_give_advice(voxpop, phrases, tmp_path, arguments, words):
    """The command prints a one-line error, exits with code 2 and writes nothing."""
    phrases.save(tmp_path / "words")
    if "tokenizer" in arguments:
        pytest.importorskip("tokenizers", reason="tokenizers is not installed: make exports")
    assert words in voxpop("export", *arguments).complaint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["words"]
