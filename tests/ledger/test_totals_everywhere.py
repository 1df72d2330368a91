"""Tests that the total of a charged result is the budget of its ledger, with the same numbers in every output."""

import json
from dataclasses import replace

import polars as pl
import pytest

import voxpop as vp
from voxpop.cli import main
from voxpop.exports.records import checklist, registry_record
from voxpop.privacy.composition import total_of
from voxpop.release.verifying import verify

BUDGET = vp.Budget(3, 1e-6)
STATED = "(3, 1e-06)-DP"


@pytest.fixture
def table(tmp_path):
    found = pl.DataFrame({"who": range(2000), "what": ["tea", "milk"] * 1000})
    found.write_parquet(tmp_path / "t.parquet")
    return found


@pytest.fixture
def account(tmp_path):
    return vp.Ledger(tmp_path / "team.ledger").open("drinks", BUDGET, create=True)


@pytest.fixture
def corpus(table):
    return vp.read(table, user="who", items="what")


def told(capsys, *call):
    """Return the output of a command."""
    assert main([str(each) for each in call]) == 0
    return capsys.readouterr().out


def test_every_output_of_a_release_has_the_same_total(account, corpus, tmp_path, capsys):
    words = vp.Items(max_items_per_user=1).release(corpus, vp.Budget(1, 1e-8), ledger=account)
    folder = tmp_path / "words"
    words.save(folder)
    total = words.total
    assert (total.adaptive.epsilon, total.adaptive.delta) == (3, 1e-6)
    assert total == account.spent == vp.load(folder).total
    assert total.fixed.epsilon == 1
    pages = [
        told(capsys, "verify", folder),
        told(capsys, "show", folder),
        told(capsys, "ledger", "show", account.path).replace("(3, 1e-06)", STATED),
        (folder / "report.html").read_text(),
        checklist(vp.load(folder)),
        str(words.total),
    ]
    for page in pages:
        first, second = page.index(STATED), page.lower().index("if all budgets were fixed in advance")
        assert first < second
    assert "epsilon: 3.0\n" in registry_record(vp.load(folder))
    assert "This result alone: (1, 1e-08)-DP" in pages[4]
    for call in (("verify", folder, "--json"), ("show", folder, "--json")):
        assert json.loads(told(capsys, *call))["total"] == total.to_dict()
    (dataset,) = json.loads(told(capsys, "ledger", "show", account.path, "--json"))["datasets"]
    assert dataset["total"] == total.to_dict()


def test_a_release_and_its_counts_are_saved_in_one_folder(account, corpus, tmp_path, capsys):
    """A release and its counts are covered by the budget of the ledger, which is included once in the total.

    Counts that were not charged are added to this budget.
    """
    words = vp.Items(max_items_per_user=1).release(corpus, vp.Budget(1, 1e-8), ledger=account)
    words.save(tmp_path / "words")
    words.count(corpus, vp.Budget(0.5, 1e-8), ledger=account).save(tmp_path / "words")
    total = vp.load(tmp_path / "words").total
    assert (total.adaptive.epsilon, total.adaptive.delta) == (3, 1e-6)
    assert total == account.spent
    assert total == vp.load(tmp_path / "words", vp.Counts).total
    assert STATED in (tmp_path / "words" / "report.html").read_text()
    assert STATED in told(capsys, "verify", tmp_path / "words")
    words.top(corpus, vp.Budget(0.25, 1e-9), k=1).save(tmp_path / "words")
    assert vp.load(tmp_path / "words").total.adaptive.epsilon == 3.25
    assert "(3.25, 1.001e-06)-DP" in told(capsys, "verify", tmp_path / "words")


def test_two_ledger_files_have_separate_budgets(account, corpus, tmp_path):
    """The same name in two ledger files denotes two accounts."""
    other = vp.Ledger(tmp_path / "other.ledger").open("drinks", BUDGET, create=True)
    words = vp.Items(max_items_per_user=1).release(corpus, vp.Budget(1, 1e-8), ledger=account)
    assert words.count(corpus, vp.Budget(0.5, 1e-8), ledger=other).total.adaptive.epsilon == 6


def test_another_ledger_at_the_same_path_has_a_separate_budget(account, corpus, tmp_path):
    """A ledger at the same path can be on another machine, so a path does not distinguish ledgers."""
    words = vp.Items(max_items_per_user=1).release(corpus, vp.Budget(1, 1e-8), ledger=account)
    for each in tmp_path.glob("*team.ledger*"):
        each.unlink()
    other = vp.Ledger(account.path).open("drinks", BUDGET, create=True)
    assert words.count(corpus, vp.Budget(0.5, 1e-8), ledger=other).total.adaptive.epsilon == 6


def test_a_moved_ledger_keeps_one_budget(account, corpus, tmp_path):
    words = vp.Items(max_items_per_user=1).release(corpus, vp.Budget(1, 1e-8), ledger=account)
    moved = vp.Ledger(account.path.rename(tmp_path / "moved.ledger")).account("drinks")
    assert words.count(corpus, vp.Budget(0.5, 1e-8), ledger=moved).total.adaptive.epsilon == 3


def test_the_sums_of_a_server_remain_in_the_total(account):
    """The total includes the view of the server, because signed documents contain this view."""
    seen = vp.Guarantee(1, 1e-8, server_view="the server saw sums")
    assert total_of([(seen, None), (vp.Guarantee(1, 0.0), None)]).adaptive.server_view == seen.server_view
    assert total_of([(seen, None), (seen, None)]).fixed.server_view == seen.server_view


def test_a_federated_result_is_signed_as_federated(corpus, tmp_path):
    words = vp.Items(max_items_per_user=1).release(corpus, vp.Budget(1, 1e-8))
    federated = replace(words, guarantee=replace(words.guarantee, server_view="The server saw sums."))
    assert "The server saw sums." in checklist(federated)
    assert 'model_name: "Federated"' in registry_record(federated)


def test_a_budget_below_its_results_is_not_a_total(account, corpus, tmp_path):
    """If the results cost more than the budget, for example after an edit, the result counts as uncharged."""
    words = vp.Items(max_items_per_user=1).release(corpus, vp.Budget(1, 1e-8), ledger=account)
    small = replace(words.metadata.ledger, budget=vp.Budget(0.1, 1e-9))
    forged = words.with_ledger_entry(small)
    assert (forged.total.adaptive, forged.total.charged) == (words.guarantee, False)
    forged.save(tmp_path / "words")
    with pytest.raises(vp.errors.ReleaseError, match="entry of the ledger"):
        verify(tmp_path / "words")


def test_the_command_prints_the_total(account, table, tmp_path, capsys):
    out = told(
        capsys, "items", tmp_path / "t.parquet", "--user", "who", "--items", "what", "--epsilon", 1, "--delta", 1e-8,
        "--ledger", account.path, "--dataset", "drinks", "-o", tmp_path / "words",
    )  # fmt: skip
    assert f"{STATED}, one user added or removed,\n  the budget of the ledger" in out
    assert 'Ledger: entry 1 of "drinks"' in out


def test_a_full_reserve_is_within_the_budget(account):
    """At the sum of the deltas, the composition exceeds the budget's epsilon, so the total uses the budget's delta."""
    plan = vp.Items().plan(vp.Budget(0.5, 1e-8))
    most = _full_reserve(account, plan)
    assert most > 40
    total = account.spent
    unlimited = total_of([(plan.guarantee, None)] * most).fixed
    assert unlimited.epsilon > BUDGET.epsilon
    assert total.fixed.epsilon <= BUDGET.epsilon
    assert total.fixed.delta == BUDGET.delta


def _full_reserve(account, plan):
    """Reserve as many releases of a plan as fit, and return their number."""
    ledger = vp.Ledger(account.path)

    def fits(times, own):
        try:
            own.reserve(plan, times)
        except vp.errors.BudgetError:
            return False
        return True

    most, too_many = 0, 200
    while most + 1 < too_many:
        middle = (most + too_many) // 2
        tried = ledger.open(f"{middle} releases", BUDGET, create=True)
        most, too_many = (middle, too_many) if fits(middle, tried) else (most, middle)
    assert not fits(most + 1, account)
    assert fits(most, account)
    return most


def test_releases_of_a_reserve_fit(account):
    """Only a reserve of the same mechanism pays for a release. The largest epsilon is at least the reserved epsilon."""
    small = vp.Items().plan(vp.Budget(0.5, 1e-8))
    assert _full_reserve(account, small) > 40
    assert account.fits(small.guarantee, "items")
    assert not account.fits(small.guarantee, "counts")
    assert not account.fits(small.guarantee)
    assert account.largest_epsilon(vp.Items(), 1e-8) == 0.5


def test_commands_of_a_series_print_its_total(account, table, tmp_path, capsys):
    """The totals of a series are correct at the start, on every night and at the end."""
    state, budget = tmp_path / "state", ("--epsilon", 1, "--delta", 1e-8)
    charged = ("--ledger", account.path, "--dataset", "drinks")
    source = (state, tmp_path / "t.parquet", "--user", "who", "--items", "what")
    for call in (("init", state, "--nights", 3, *budget, *charged), ("run", *source), ("show", state)):
        out = told(capsys, "series", *call)
        assert f"{STATED}, one user added or removed,\n  the budget of the ledger" in out
    for call in (("show", state), ("run", *source, "--night", 2)):
        assert json.loads(told(capsys, "series", *call, "--json"))["total"]["adaptive"]["epsilon"] == 3


def test_commands_print_totals_as_json(account, table, tmp_path, capsys):
    out = told(
        capsys, "items", tmp_path / "t.parquet", "--user", "who", "--items", "what", "--epsilon", 1, "--delta", 1e-8,
        "--ledger", account.path, "--dataset", "drinks", "-o", tmp_path / "words", "--json",
    )  # fmt: skip
    assert json.loads(out)["total"] == account.spent.to_dict()


def test_a_series_cannot_have_a_reserve(account):
    """A series is charged once for all nights under another mechanism name, so a reserve cannot cover the charge."""
    plan = vp.Items(max_items_per_user=1).plan_series(vp.Budget(1, 1e-8), 7)
    with pytest.raises(vp.errors.InputError, match="once for all its nights"):
        account.reserve(plan, 5)
    assert account.entries == []


def test_the_smaller_second_total_is_explained_only_if_it_occurs(account, corpus):
    """The explanation is empty for a single result, and mentions sums of squares for two results."""
    words = vp.Items(max_items_per_user=1).release(corpus, vp.Budget(1, 1e-8), ledger=account)
    assert words.total.reason == ""
    assert "squares" in words.count(corpus, vp.Budget(0.5, 1e-8), ledger=account).total.reason


def test_too_many_releases_raise_a_separate_error(account):
    """Too many releases raise a separate error, because a smaller request would not help."""
    small = vp.Guarantee(1e-4, 0)
    for _ in range(3):
        account.charge(small, "sums")
    with pytest.raises(vp.errors.BudgetError, match="can have at most 1,024") as refused:
        account.reserve(SMALL, 1023)
    assert "Request less" not in str(refused.value)


class SMALL:
    """A plan that spends very little."""

    guarantee = vp.Guarantee(1e-4, 0)

    @staticmethod
    def to_dict():
        return {"mechanism": "sums"}

    @staticmethod
    def release():
        raise NotImplementedError
