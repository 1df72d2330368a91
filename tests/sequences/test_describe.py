"""Tests of the charts of sessions in the report."""

import numpy as np
import polars as pl
import pytest

import voxpop as vp
from support.look import read_engine
from voxpop.mechanisms.sequences.describe import MOST_ROWS, charts_of

pytestmark = pytest.mark.usefixtures("few_sessions")  # the tests compare numbers from the same draws

PAGES = ["home", "news", "sport", "weather"]
END = "⟨end⟩"


@pytest.fixture(scope="module")
def model(visits):
    """Return a model with contexts from the fixture `visits`."""
    return vp.Sequences(max_length=8, max_gram=3, alphabet=PAGES).release(visits, vp.Budget(4), seed=1)


def test_charts_contain_the_results_of_queries(model):
    """Charts and queries have the same numbers, so the page and the command line agree."""
    drawn = charts_of(model, END)
    starts = {row["symbol"]: row for row in model.starting().to_dicts()}
    for bar in drawn["starts"]:
        assert bar["share"] == pytest.approx(starts[bar["name"]]["share"], abs=1e-5)
        assert bar["low"] <= bar["share"] <= bar["high"]
    assert [bar["name"] for bar in drawn["lengths"]] == ["1", "2", "3", "4", "5", "6", "7", "8+"]
    assert sum(bar["share"] for bar in drawn["lengths"]) == pytest.approx(1, abs=1e-3)
    paths = [" → ".join(path) for path in model.paths(3, 12)["path"]]
    assert [bar["name"] for bar in drawn["paths"]] == paths[: len(drawn["paths"])]
    assert drawn["memory"] == 2
    assert not drawn["alone"]


def test_the_report_states_whether_only_single_symbols_were_counted(model, symbols_alone, tmp_path):
    """If only single symbols were counted, the page states that no number shows how sequences continue."""
    for name, each in (("contexts", model), ("alone", symbols_alone)):
        each.save(tmp_path / name)
        page = (tmp_path / name / "report.html").read_text()
        assert ("Only single symbols were counted" in page) == (name == "alone")


def test_the_table_of_transitions_agrees_with_the_query(model):
    """If every symbol has a row, the cells are rounded shares, and there is no column for other symbols."""
    table = charts_of(model, END)["transitions"]
    assert set(table["columns"]) == {*PAGES, END}
    shares = {(row["from"], row["symbol"] or END): row["share"] for row in model.transitions().to_dicts()}
    for row in table["rows"]:
        for name, cell in zip(table["columns"], row["cells"], strict=True):
            share = shares[row["name"], name]
            assert cell["text"] == (f"{100 * share:.0f}" if share >= 0.005 else "")
            assert cell["shade"] == round(10 * share**0.5)


def test_symbols_without_a_row_share_one_column(model):
    """The shares of these symbols are summed, so each row adds up to 1."""
    share, low, high = model._queries.transitions_among([0, 2], 0.9)
    whole = model._queries.transitions_among([0, 1, 2, 3], 0.9)[0]
    np.testing.assert_allclose(share[:, :2], whole[[0, 2]][:, [0, 2]])
    np.testing.assert_allclose(share[:, 2], whole[[0, 2]][:, [1, 3]].sum(axis=1))
    np.testing.assert_allclose(share[:, 3], whole[[0, 2]][:, 5])
    np.testing.assert_allclose(share.sum(axis=1), 1)
    assert (low <= share).all()
    assert (share <= high).all()


@pytest.mark.jit
def test_many_and_unusual_symbols_are_displayed():
    """Symbols after the first twenty share one column.

    Invisible characters are replaced, and long names are shortened.
    """
    symbols = [f"page{number}" for number in range(28)] + ["turn\u202ed", "x" * 60]
    rows = pl.DataFrame({"who": range(900), "pages": [[symbols[i % 30], symbols[(i * 7) % 30]] for i in range(900)]})
    corpus = read_engine(rows, user="who", sequence="pages")
    model = vp.Sequences(max_length=3, max_gram=2, alphabet=symbols).release(corpus, vp.Budget(50), seed=1)
    drawn = charts_of(model, END)
    assert len(drawn["transitions"]["rows"]) == MOST_ROWS
    assert drawn["transitions"]["columns"][-2:] == ["others", END]
    assert len(drawn["starts"]) <= 12
    names = [row["name"] for row in drawn["transitions"]["rows"] + drawn["starts"]]
    assert all(len(name) <= 24 and name.isprintable() for name in names)


def test_a_model_with_many_counts_has_no_charts(model, monkeypatch):
    """Such charts would take longer to draw than the release takes."""
    monkeypatch.setattr("voxpop.mechanisms.sequences.describe.MOST_COUNTS", model.tree.counts.size - 1)
    assert charts_of(model, END) == {}


@pytest.mark.jit
def test_the_report_of_a_loaded_model_is_the_same(model, tmp_path):
    """If a model is saved, loaded and saved again, the bytes of the page are the same."""
    model.save(tmp_path / "one")
    vp.load(tmp_path / "one", vp.SequenceModel).save(tmp_path / "two")
    pages = [(tmp_path / name / "report.html").read_bytes() for name in ("one", "two")]
    assert pages[0] == pages[1]
    assert b'id="sessions"' in pages[0]
    assert b"Transitions, in percent" in pages[0]
