"""`voxpop export`."""

import pyarrow as pa
import pytest

import voxpop as vp
from voxpop.release.grams import SCHEMA
from voxpop.release.stored_plan import StoredPlan

GRAMS = [["tea"], ["with"], ["tea", "with"]]


@pytest.fixture
def phrases():
    """A release of two words and a pair."""
    table = pa.table({"gram": GRAMS, "length": [1, 1, 2]}, schema=SCHEMA)
    return vp.Release(table, StoredPlan({}), vp.Guarantee(4, 1e-7))


def test_the_command_writes(voxpop, phrases, tmp_path):
    """By name or by the file's ending."""
    phrases.save(tmp_path / "words")
    assert voxpop("export", "words", "-o", "a.txt").out == "Wrote 3 grams to a.txt\n"
    assert voxpop("export", "words", "-o", "b", "--format", "text").code == 0
    assert (tmp_path / "a.txt").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["words", "-o", "a"], "does not say which format"),
        (["words", "-o", "a.txt", "--format", "word"], "`format` must be"),
        (["nowhere", "-o", "a.txt"], "nowhere does not exist"),
        (["words"], "--output"),
        (["words", "-o", "a", "--format", "tokenizer", "--tokenizer", "x"], "`tokenizer` must be"),
    ],
)
def test_wrong_calls_say_what_to_do(voxpop, phrases, tmp_path, arguments, words):
    """One line, code 2, nothing written."""
    phrases.save(tmp_path / "words")
    if "tokenizer" in arguments:
        pytest.importorskip("tokenizers", reason="tokenizers is not installed: make exports")
    assert words in voxpop("export", *arguments).complaint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["words"]
