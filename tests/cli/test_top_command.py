"""Tests that `voxpop top` prints, in order, the grams of a saved release with the largest numbers of users."""

import json

import polars as pl
import pytest

import voxpop as vp

pytestmark = pytest.mark.usefixtures("fixed_secrets")

SPEND = ["--epsilon", 2, "--delta", "1e-8"]
READ = ["posts.parquet", "--user", "author", "--text", "body"]


@pytest.fixture
def words(tmp_path):
    """Save a release of three words, in descending order of their numbers of users."""
    said = ["tea"] * 6000 + ["tea milk"] * 3000 + ["tea milk oat"] * 1500
    pl.DataFrame({"author": range(len(said)), "body": said}).write_parquet(tmp_path / "posts.parquet")
    corpus = vp.read(tmp_path / "posts.parquet", user="author", text="body")
    vp.Items().release(corpus, vp.Budget(2, 1e-8)).save(tmp_path / "words")
    return tmp_path / "words"


def test_grams_are_in_order_and_have_the_guarantee(voxpop, words):
    """The output contains the guarantee of the ranking and the guarantee of both results together.

    The numbers of users differ by thousands (false alarm below 1e-9).
    """
    code, out, err = voxpop("top", words, *READ, *SPEND, "--k", 3)
    assert (code, err) == (0, "")
    assert [line.split() for line in out.splitlines()[:3]] == [["1", "tea"], ["2", "milk"], ["3", "oat"]]
    assert "(2, 1e-08)-DP" in out
    assert "All results together, if they are from the same users: (4, 2e-08)-DP" in out
    assert "if all budgets were fixed in advance: (3." in out


def test_the_result_is_saved_in_the_folder_of_the_release_and_shown(voxpop, words):
    """The output shows both guarantees.

    A saved ranking is replaced only with `--overwrite`. With `--no-save`, no ranking is saved.
    """
    out = voxpop("top", words, *READ, *SPEND, "--k", 2).out
    assert f"Saved to {words}" in out
    ranking = vp.load(words, vp.Top)
    assert ranking.to_list() == ["tea", "milk"]
    shown = voxpop("show", words).out
    assert "The 2 grams with the most users, in order, (2, 1e-08)-DP" in shown
    assert "\n     1  tea\n     2  milk\n" in shown
    assert "All results together, if they are from the same users: (4, 2e-08)-DP" in shown
    assert "     2  milk" not in voxpop("show", words, "--first", 1).out
    assert voxpop("show", words, "--json").json["top"]["grams"] == [["tea"], ["milk"]]
    assert "already contains rankings" in voxpop("top", words, *READ, *SPEND, "--k", 1).complaint
    assert "Saved" not in voxpop("top", words, *READ, *SPEND, "--k", 1, "--no-save").out
    assert vp.load(words, vp.Top).to_list() == ["tea", "milk"]
    assert voxpop("top", words, *READ, *SPEND, "--k", 1, "--overwrite").code == 0
    assert vp.load(words, vp.Top).to_list() == ["tea"]


def test_documents_describe_all_results_of_the_folder(voxpop, words, tmp_path):
    """The documents that operators sign include the ranking."""
    voxpop("top", words, *READ, *SPEND, "--k", 2)
    for name in ("registry", "checklist"):
        assert voxpop("export", words, "-o", name, "--format", name).code == 0
        assert "(4, 2e-08)-DP" in (tmp_path / name).read_text()


def test_a_budget_that_is_too_small_is_rejected(voxpop, words):
    """For a tiny epsilon, no ranking is possible within the budget."""
    assert "ranked" in voxpop("top", words, *READ, "--epsilon", 1e-9, "--delta", "1e-8").complaint


def test_the_output_is_one_json_object(voxpop, words):
    """The object contains the content of the text output and the plan."""
    code, out, _ = voxpop("top", words, *READ, *SPEND, "--k", 2, "--json")
    shown = json.loads(out)
    assert code == 0
    assert shown["grams"] == [["tea"], ["milk"]]
    assert shown["plan"]["passes"][0]["picks"] == 2
    assert shown["folder"] == str(words)
    assert shown["total"]["adaptive"]["epsilon"] == 4


def test_a_ledger_is_charged_once(voxpop, words, tmp_path):
    """A call that exceeds the budget is rejected before anything is read."""
    vp.Ledger(tmp_path / "team.ledger").open("posts", vp.Budget(2.5, 1e-7), create=True)
    call = ["top", words, *READ, *SPEND, "--ledger", "team.ledger", "--dataset", "posts"]
    assert voxpop(*call, "--no-save")[0] == 0
    assert len(vp.Ledger(tmp_path / "team.ledger").account("posts").entries) == 1
    code, _, err = voxpop(*call)
    assert code == 3
    assert "Not enough budget left" in err


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["--k", 0], "`k`"),
        (["--k", 1, "--k", 2], "--k specified multiple times"),
        (["--user", "nobody"], "nobody"),
        (["--dataset", "posts"], "--ledger"),
        (["--ledger", "team.ledger"], "--dataset"),
    ],
)
def test_wrong_calls_raise_errors(voxpop, words, wrong, said):
    """The one-line error contains the next step."""
    code, _, err = voxpop("top", words, *READ, *SPEND, *wrong)
    assert code == 2
    assert said in err
    assert err.count("\n") == 1
