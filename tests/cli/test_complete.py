"""Tests of `voxpop complete`."""

import pyarrow as pa
import pytest

import voxpop as vp
from voxpop.release.result import StoredPlan
from voxpop.release.table import SCHEMA


@pytest.fixture
def saved(tmp_path):
    rows = [["thank"], ["y\x1bou"], ["you"], ["thank", "y\x1bou"], ["thank", "you"]]
    table = pa.table({"gram": rows, "length": [len(row) for row in rows]}, schema=SCHEMA)
    vp.Release(table, StoredPlan({}), vp.Guarantee(4, 1e-7), "words").save(tmp_path / "phrases")
    return tmp_path / "phrases"


def test_completions_are_printed_as_text(voxpop, saved):
    """Each line shows one phrase, with terminal control characters escaped."""
    assert voxpop("complete", saved, "Thank") == (0, "  thank y\\x1bou\n  thank you\n", "")
    assert voxpop("complete", saved, "--first", 1).out == "  thank\n"


def test_completions_are_printed_as_json(voxpop, saved):
    """The JSON object contains the context and the number of phrases."""
    assert voxpop("complete", saved, "thank you", "--json").json["completions"] == [
        {"token": "you", "context": ["thank"], "phrases": 1}
    ]


def test_a_text_without_continuation_is_reported(voxpop, saved):
    """The command reports that no phrase continues the text and exits with code 0."""
    assert voxpop("complete", saved, "zebra") == (0, "No released phrase continues this text.\n", "")
    assert voxpop("complete", saved, "zebra", "--json").json["completions"] == []


def test_wrong_calls_raise_errors(voxpop, saved):
    """A missing folder and a limit of 0 each cause a one-line error."""
    assert "does not exist" in voxpop("complete", "nowhere", "thank").complaint
    assert "`first` must be a whole number" in voxpop("complete", saved, "thank", "--first", 0).complaint
