"""Tests of methods that all kinds of results have."""

import json
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import voxpop as vp
from support.look import read_engine
from voxpop.release.result import StoredPlan

BUDGET = vp.Budget(4, 1e-7)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return one result of each kind with its folder."""
    table = pl.DataFrame({"who": range(3000), "what": ["tea with milk", "tea"] * 1500})
    corpus = read_engine(table, user="who", text="what")
    words = vp.Items().release(corpus, BUDGET)
    counts, ranking = words.count(corpus, BUDGET), words.top(corpus, BUDGET, k=2)
    visits = read_engine(pl.DataFrame({"who": range(3000), "to": [["a", "b"]] * 3000}), user="who", sequence="to")
    model = vp.Sequences(alphabet=["a", "b"], max_length=3, max_gram=2).release(visits, BUDGET)
    folder = tmp_path_factory.mktemp("results")
    for each in (words, counts, ranking):
        each.save(folder / "words")
    model.save(folder / "model")
    return {
        vp.Release: (words, folder / "words"),
        vp.Counts: (counts, folder / "words"),
        vp.Top: (ranking, folder / "words"),
        vp.SequenceModel: (model, folder / "model"),
    }


KINDS = pytest.mark.parametrize(
    "kind", [vp.Release, vp.Counts, vp.Top, vp.SequenceModel], ids=lambda kind: kind.__name__
)


@KINDS
def test_all_table_formats_have_the_same_rows(results, kind):
    """Arrow and polars tables, pandas frames and lists have the same rows in the same order."""
    result, _ = results[kind]
    table = result.to_arrow()
    assert len(result) == len(result.to_list()) == table.num_rows > 0
    assert result.to_polars().to_dicts() == table.to_pylist() == pl.DataFrame(result).to_dicts()
    assert result.to_pandas().to_dict("records") == table.to_pylist()


@KINDS
def test_load_reads_every_kind(results, kind):
    """A loaded result has the rows, numbers and guarantee of the saved result."""
    result, folder = results[kind]
    again = vp.load(folder, kind)
    assert isinstance(again, kind)
    assert again.to_arrow().equals(result.to_arrow())
    assert (again.guarantee, again.plan.to_dict()) == (result.guarantee, result.plan.to_dict())


def test_load_returns_the_type_of_the_folder(results):
    """If another kind is requested, the error contains the kind in the folder."""
    assert isinstance(vp.load(results[vp.Release][1]), vp.Release)
    assert isinstance(vp.load(results[vp.SequenceModel][1]), vp.SequenceModel)
    with pytest.raises(vp.errors.ReleaseError, match="contains a Release, not a SequenceModel"):
        vp.load(results[vp.Release][1], vp.SequenceModel)


@KINDS
def test_a_report_is_shown_inline_and_saved(results, kind, tmp_path):
    """A report contains the guarantee, is displayed in an iframe, and does not overwrite an existing file."""
    result, _ = results[kind]
    report = result.report()
    stated = result.total.adaptive
    assert str(stated) in report.html
    assert report._repr_html_().startswith("<iframe")
    assert "<script" not in report._repr_html_()  # The page is escaped.
    report.save(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text() == report.html
    with pytest.raises(vp.errors.ReleaseError, match="already exists"):
        report.save(tmp_path / "report.html")
    assert result._repr_html_().startswith("<div")


@KINDS
def test_a_title_is_added_to_a_copy_of_the_result(results, kind):
    """The report contains the given title, and the rows of the result do not change."""
    result, _ = results[kind]
    named = result.with_metadata(title="Our drinks")
    assert "Our drinks" in named.report().html
    assert named.to_arrow().equals(result.to_arrow())
    assert result.metadata.title == ""


def test_missing_pandas_is_reported(results, monkeypatch):
    """Without pandas, the error message contains the installation command."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(vp.errors.InputError, match="pip install pandas"):
        results[vp.Release][0].to_pandas()


def test_counts_belong_to_exactly_one_release(results, tmp_path):
    """Counts cannot be saved to or loaded from a release with the same grams but another guarantee."""
    words, counts = results[vp.Release][0], results[vp.Counts][0]
    other = vp.Release(words.grams, StoredPlan({}), vp.Guarantee(1, 1e-9), words.token_source, words.keys)
    other.save(tmp_path / "other")
    with pytest.raises(vp.errors.ReleaseError, match="another release"):
        counts.save(tmp_path / "other")
    words.save(tmp_path / "words")
    counts.save(tmp_path / "words")
    for name in ("release.json",):
        (tmp_path / "words" / name).write_bytes((tmp_path / "other" / name).read_bytes())
    with pytest.raises(vp.errors.ReleaseError, match="changed after"):
        vp.load(tmp_path / "words", vp.Counts)


def test_counts_have_one_number_for_each_gram(results):
    """Any other number of counts raises `InternalError`."""
    words = results[vp.Release][0]
    with pytest.raises(vp.errors.InternalError):
        vp.Counts(words, np.zeros(len(words) + 1, np.int64), 1.0, words.plan, words.guarantee)


def test_counts_are_bound_to_the_id_of_their_release(results, tmp_path):
    """Counts do not belong to another release with the same grams.

    Two releases of the same plan can have the same grams but different users.
    """
    words, counts, ranking = (results[kind][0] for kind in (vp.Release, vp.Counts, vp.Top))
    other = vp.Release(words.grams, words.plan, words.guarantee, words.token_source, words.keys)
    assert words == other
    assert words.id != other.id
    assert len(words.id) == 32
    other.save(tmp_path / "other")
    for each in (counts, ranking):
        with pytest.raises(vp.errors.ReleaseError, match="another release"):
            each.save(tmp_path / "other")
    words.save(tmp_path / "words")
    counts.save(tmp_path / "words")
    assert vp.load(tmp_path / "words").id == vp.load(tmp_path / "words", vp.Counts).grams.id == words.id
    (tmp_path / "words" / "release.json").write_bytes((tmp_path / "other" / "release.json").read_bytes())
    with pytest.raises(vp.errors.ReleaseError, match="changed after"):
        vp.load(tmp_path / "words", vp.Counts)


def test_a_release_of_an_earlier_version_has_no_id(results, tmp_path):
    """A release without an id can be loaded and saved with counts, which are bound to the whole record."""
    words = replace(results[vp.Release][0], id="")
    words.save(tmp_path / "words")
    assert "id" not in json.loads((tmp_path / "words" / "release.json").read_bytes())
    loaded = vp.load(tmp_path / "words")
    assert loaded.id == ""
    replace(results[vp.Counts][0], grams=loaded).save(tmp_path / "words")
    assert vp.load(tmp_path / "words", vp.Counts).grams == words
