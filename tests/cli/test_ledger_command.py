"""Tests of ledgers from the shell, including the remaining budget, the largest epsilon that fits, and repeated runs."""

import re
from typing import get_args

import polars as pl
import pytest

import voxpop as vp
from faults import crashes
from voxpop.cli.ledger import PlannedCommand
from voxpop.ledger.runs import KINDS
from voxpop.release.registry import MECHANISMS

BUDGET = ["--delta", "1e-8"]
COLUMNS = ["--user", "author", "--text", "body"]


@pytest.fixture
def shop(voxpop, tmp_path):
    """Create a ledger for epsilon 7 and a table of posts, and return the first arguments of a call."""
    table = pl.DataFrame({"author": range(3000), "body": ["thank you very much", "see you soon"] * 1500})
    table.write_parquet(tmp_path / "posts.parquet")
    assert voxpop("ledger", "init", "team.ledger", "--dataset", "shop", "--epsilon", 7, "--delta", "1e-6").code == 0
    return ["items", "posts.parquet", *COLUMNS, *BUDGET, "--ledger", "team.ledger", "--dataset", "shop"]


def test_the_command_prints_the_spent_and_the_remaining_budget(voxpop, shop):
    """After two charges of epsilon 3 of 7, epsilon 5.87 fits, because the squares of mu add up.

    Epsilon 5.9 is rejected.
    """
    for name in ("one", "two"):
        assert voxpop(*shop, "--epsilon", 3, "-o", name, "--run-id", name).code == 0
    out = voxpop("ledger", "show", "team.ledger", "--for", "items", "--delta", "1e-8").out
    assert (
        "  total: (7, 1e-06), the budget, which is valid even if each release was chosen after earlier results" in out
    )
    assert re.search(r"  if all budgets were fixed in advance: \(4\.\d+, 2e-08\)", out)
    assert "budget used, by three methods of composition: plain 85.7 %, gaussian " in out
    assert "next release of items at delta 1e-08: at most epsilon 5.87 fits" in out
    (shown,) = voxpop("ledger", "show", "team.ledger", "--for", "items", "--delta", "1e-8", "--json").json["datasets"]
    assert (shown["total"]["adaptive"]["epsilon"], shown["fits"]["epsilon"]) == (7, 5.87)
    assert shown["used"]["plain"]["epsilon"] == 6 / 7
    entries = [(each["label"], each["mechanism"], each["state"]) for each in shown["entries"]]
    assert entries == [("one", "items", "finished"), ("two", "items", "finished")]
    assert [each["release"] for each in shown["entries"]] == [vp.load(name, vp.Release).id for name in ("one", "two")]
    complaint = voxpop(*shop, "--epsilon", 5.9, "-o", "three").complaint
    wanted = 'Not enough budget left in "shop": Gaussian noise: 0.3687 of 1 spent, 0.6313 left, '
    assert wanted in complaint
    assert voxpop("ledger", "show", "team.ledger", "--for", "sequences").out.endswith("at most epsilon 1 fits\n")
    assert "at most epsilon 3.2" in voxpop("ledger", "show", "team.ledger", "--for", "items", "--delta", "9e-7").out
    assert "--delta is missing" in voxpop("ledger", "show", "team.ledger", "--for", "items").complaint


def test_a_repeated_command_is_charged_once(voxpop, shop, tmp_path):
    """A repeated command prints the same output and a note about the repetition, reads no source and adds no entry."""
    call = [*shop, "--epsilon", 1, "-o", "words", "--run-id", "monday"]
    first = voxpop(*call)
    (tmp_path / "posts.parquet").unlink()
    again = voxpop(*call)
    said = "\nThis run had already finished, so no row was read and nothing was charged."
    assert said in again.out
    assert (again.code, again.out.replace(said, "")) == (0, first.out)
    assert 'Ledger: entry 1 of "shop", budget (7, 1e-06), run "monday".' in again.out
    other = voxpop(*call[:-4], "-o", "elsewhere", "--run-id", "monday").complaint
    assert 'Run "monday" of "shop" is finished' in other
    assert len(voxpop("ledger", "show", "team.ledger", "--json").json["datasets"][0]["entries"]) == 1


def test_an_empty_release_is_also_returned_again(voxpop, shop, tmp_path):
    """A saved plan cannot run, so the second output contains no numbers of required users."""
    pl.DataFrame({"author": range(9), "body": [f"word{number}" for number in range(9)]}).write_parquet("posts.parquet")
    call = [*shop, "--max-items-per-user", 1, "--epsilon", 1, "-o", "words", "--run-id", "monday"]
    first, again = (voxpop(*call) for _ in range(2))
    assert (first.code, again.code) == (0, 0)
    assert "epsilon 1: " in first.out
    assert again.out.startswith("Released 0 items.\nNo item had enough users. The budget is spent nonetheless.")


def test_counts_are_also_returned_again(voxpop, shop):
    """Counts and rankings are saved in the folder of the release and charged once."""
    assert voxpop(*shop, "--max-items-per-user", 1, "--epsilon", 1, "-o", "words").code == 0
    for command in ("count", "top"):
        call = [command, "words", *shop[1:], "--epsilon", 1, "--run-id", command]
        first, again = voxpop(*call), voxpop(*call)
        assert (first.code, again.code) == (0, 0)
        assert "had already finished" not in first.out
        assert [line for line in again.out.splitlines() if "had already finished" not in line] == first.out.splitlines()
        assert voxpop(*call, "--json").json["repeated"] is True
    assert len(voxpop("ledger", "show", "team.ledger", "--json").json["datasets"][0]["entries"]) == 3


def test_a_run_needs_a_ledger(voxpop, shop):
    """The option `--run-id` is rejected without a ledger, because the ledger records the run."""
    call = ["items", "posts.parquet", *COLUMNS, *BUDGET, "--epsilon", 1, "-o", "words", "--run-id", "monday"]
    assert "--run-id names an entry of a ledger" in voxpop(*call).complaint


def test_a_folder_that_appears_during_the_save_is_kept(voxpop, shop, tmp_path, monkeypatch):
    """Even without a ledger, the result is kept and `voxpop resume` saves it."""
    from voxpop.ledger import runs

    real = runs.keep

    def slow(save, folder, key):
        kept = real(save, folder, key)
        crashes.release_of("old").save(folder)
        return kept

    monkeypatch.setattr(runs, "keep", slow)
    call = ["items", "posts.parquet", *COLUMNS, *BUDGET, "--epsilon", 1, "-o", "words"]
    complaint = voxpop(*call).complaint
    kept = complaint.split("`voxpop resume ")[1].split(" -o")[0]
    assert "words already contains a release" in complaint
    assert voxpop("resume", kept, "-o", "others").out == "Saved to others\n"
    assert vp.load("words") == crashes.release_of("old") != vp.load("others")
    assert "is not a kept result" in voxpop("resume", kept, "-o", "more").complaint
    assert "is not a kept result" in voxpop("resume", "words", "-o", "more").complaint


def test_lists_of_mechanisms_follow_the_registry():
    """The lists contain all mechanisms of the registry except counts and rankings, which need a release for a plan."""
    alone = tuple(each.command for each in MECHANISMS if each.command not in {"count", "top"})
    assert get_args(PlannedCommand) == alone
    assert set(KINDS) < {each.name for each in MECHANISMS}
