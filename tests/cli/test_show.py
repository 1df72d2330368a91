"""Tests of `voxpop show` and `voxpop plan`."""

import polars as pl
import pyarrow as pa
import pytest

import voxpop as vp
from voxpop.mechanisms.counts.mechanism import CountsMechanism, TopMechanism
from voxpop.release.result import StoredPlan
from voxpop.release.table import SCHEMA

PLAN, GUARANTEE = StoredPlan({"mechanism": "items", "sigma": 1.5}), vp.Guarantee(4, 1e-7)


@pytest.fixture
def saved(tmp_path):
    items = pa.array([f"word{number:03}" for number in range(100)])
    vp.Release.from_items(items, PLAN, GUARANTEE).save(tmp_path / "words")
    return tmp_path / "words"


def test_a_result_is_shown_as_text(voxpop, saved):
    """The text output contains the number of items, the first items, the explained guarantee, and the plan."""
    code, out, err = voxpop("show", saved)
    assert (code, err) == (0, "")
    assert "100 items" in out
    assert "word019\n" in out
    assert "word020" not in out
    assert "(4, 1e-07)-DP" in out
    assert "factor of 54.6" in out
    assert "sigma: 1.5" in out
    assert out.endswith("Not verified. Run `voxpop verify` to check that these numbers follow from the settings.\n")


def test_the_first_rows_are_shown(voxpop, saved):
    """`--first` determines the number of items shown."""
    assert voxpop("show", saved, "--first", 3).out.count("word") == 3
    assert voxpop("show", saved, "--first", 0).out.count("word") == 0
    assert len(voxpop("show", saved, "--first", 1000, "--json").json["first"]) == 100


def test_a_result_is_shown_as_json(voxpop, saved):
    """The JSON output is one object with the same content as the text output."""
    assert voxpop("show", saved, "--first", 2, "--json").json == {
        "released": 100,
        "statement": "(4, 1e-07)-DP, one user added or removed",
        "guarantee": GUARANTEE.to_dict(),
        "plan": PLAN.to_dict(),
        "folder": str(saved),
        "verified": False,
        "first": [["word000"], ["word001"]],
        "total": {"adaptive": GUARANTEE.to_dict(), "fixed": GUARANTEE.to_dict()},
    }


def test_show_marks_a_seeded_release(voxpop, saved):
    """The output marks a release made with a seed as not private."""
    release = vp.load(saved)
    vp.Release(release.grams, PLAN, vp.Guarantee(4, 1e-7, private=False)).save(saved, overwrite=True)
    out = voxpop("show", saved).out
    assert "NOT PRIVATE" in out
    assert "factor of 54.6" not in out
    assert voxpop("show", saved, "--json").json["guarantee"]["private"] is False


def test_longer_grams_are_shown_with_escapes(voxpop, tmp_path):
    """Grams are shown token by token, with terminal control characters escaped."""
    rows = pa.table({"gram": [["a\x1b[2J"], ["a", "b"]], "length": [1, 2]}, schema=SCHEMA)
    vp.Release(rows, PLAN, GUARANTEE).save(tmp_path / "words")
    out = voxpop("show", "words").out
    assert "2 grams of up to 2 tokens" in out
    assert "  a\\x1b[2J\n  a b\n" in out
    assert "\x1b" not in out


def test_a_model_is_shown(voxpop, tmp_path):
    """A saved model is shown like a release, and includes its noisy counts."""
    visits = pl.DataFrame({"who": range(900), "pages": [["home", "news"], ["home"], ["news"]] * 300})
    corpus = vp.read(visits, user="who", sequence="pages")
    model = vp.Sequences(max_length=3, max_gram=2, alphabet=["home", "news"]).release(corpus, vp.Budget(1))
    model.save(tmp_path / "model")
    assert vp.load(tmp_path / "model") == model
    shown = voxpop("show", "model", "--first", 2)
    assert shown.code == 0
    assert f"A model of {len(model)} grams" in shown.out
    assert "home\n" in shown.out
    assert "Guarantee: (1, 0)-DP" in shown.out
    content = voxpop("show", "model", "--json").json
    assert content["released"] == len(model)
    assert content["first"][0]["gram"] == ["home"]
    assert pl.DataFrame(model).equals(model.to_polars())


def test_an_empty_result_is_shown(voxpop, tmp_path):
    """An empty release is shown as 0 items."""
    vp.Release.from_items(pa.array([], pa.string()), PLAN, GUARANTEE).save(tmp_path / "words")
    assert "0 items" in voxpop("show", "words").out


def test_plans_are_printed_as_text(voxpop):
    """The text output equals `str(plan)`."""
    expected = vp.Items(max_items_per_user=7, min_users=20).plan(vp.Budget(4, 1e-6))
    arguments = ["--max-items-per-user", 7, "--min-users", 20]
    assert voxpop("plan", "items", "--epsilon", 4, "--delta", "1e-6", *arguments) == (0, f"{expected}\n", "")


def test_plans_are_printed_as_json(voxpop):
    """The JSON output contains the plan's values and the guarantee."""
    expected = vp.Items(max_items_per_user=7, min_users=20).plan(vp.Budget(4, 1e-6))
    budget = ("--epsilon", 4, "--delta", 1e-6)
    content = voxpop("plan", "items", *budget, "--max-items-per-user", 7, "--min-users", 20, "--json").json
    assert content["plan"] == expected.to_dict()
    assert content["guarantee"] == expected.guarantee.to_dict()


def test_every_mechanism_has_a_plan(voxpop, tmp_path):
    """The output equals `str(plan)`, and the options are those of the mechanism's own command."""
    budget = vp.Budget(1, 1e-8)
    spend = ["--epsilon", 1, "--delta", "1e-8"]
    plan = vp.HeavyHitters(max_length=7, unit=2).plan(budget)
    call = ["--max-length", 7, "--unit", 2]
    assert voxpop("plan", "heavy-hitters", *spend, *call) == (0, f"{plan}\n", "")
    plan = vp.Sequences(alphabet=["tea", "milk"], max_gram=2).plan(vp.Budget(1))
    call = ["--alphabet", "tea,milk", "--max-gram", 2]
    assert voxpop("plan", "sequences", "--epsilon", 1, *call) == (0, f"{plan}\n", "")
    words = vp.Release.from_items(pa.array(["milk", "tea"], pa.string()), PLAN, GUARANTEE)
    words.save(tmp_path / "words")
    plan = CountsMechanism(counted_in_full=5).plan(budget, words)
    assert voxpop("plan", "count", "words", *spend, "--counted-in-full", 5) == (0, f"{plan}\n", "")
    plan = TopMechanism(k=1).plan(budget, words)
    assert voxpop("plan", "top", "words", *spend, "--k", 1) == (0, f"{plan}\n", "")
