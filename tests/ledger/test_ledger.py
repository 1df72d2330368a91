"""Tests that the ledger is charged before a release runs, remains complete, and is shared between processes."""

import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import polars as pl
import pytest

import voxpop as vp
from privacy.test_planned import PLANS
from support.plans import planned
from voxpop.cli import main
from voxpop.errors import BudgetError, InputError, LedgerError
from voxpop.ledger import storage
from voxpop.privacy.guarantee import Expense

BUDGET = vp.Budget(3, 1e-6)
ONCE = vp.Guarantee(1, 1e-8)


@pytest.fixture
def path(tmp_path):
    """Return the path of the ledger."""
    return tmp_path / "team.ledger"


@pytest.fixture
def account(path):
    """Return an account with an unspent budget."""
    return vp.Ledger(path).open("posts", BUDGET, create=True)


@pytest.fixture(scope="module")
def corpus():
    """Return a corpus of 500 users and two words. Half of the users have each word."""
    return vp.read(pl.DataFrame({"who": range(500), "what": ["tea", "milk"] * 250}), user="who", items="what")


def test_releases_are_charged(account, corpus):
    """Releases of items, counts and heavy hitters are charged, and each entry names its mechanism."""
    words = vp.Items(max_items_per_user=2).release(corpus, vp.Budget(1, 1e-8), ledger=account)
    words.count(corpus, vp.Budget(0.5, 1e-8), ledger=account)
    vp.HeavyHitters(max_length=5).release(corpus, vp.Budget(0.5, 1e-8), ledger=account)
    assert [entry.mechanism for entry in account.entries] == ["items", "counts", "heavy hitters"]
    assert all(entry.state == "finished" for entry in account.entries)
    assert [entry.number for entry in account.entries] == [1, 2, 3]
    assert account.entries[0].guarantee.spend == words.guarantee.spend
    assert 1 < account.spent.fixed.epsilon <= 2
    assert (account.spent.adaptive.epsilon, account.spent.adaptive.delta) == (3, 1e-6)


def test_phrases_and_sequences_are_charged(account):
    """Mechanisms that need ordered data also charge the account."""
    table = pl.DataFrame({"who": range(500), "what": [["a", "b"]] * 500})
    corpus = vp.read(table, user="who", sequence="what")
    vp.NGrams(max_length=2, max_phrases_per_user=2).release(corpus, vp.Budget(1, 1e-8), ledger=account)
    vp.Sequences(max_length=2, max_gram=2, alphabet=["a", "b"]).release(corpus, vp.Budget(1), ledger=account)
    assert [entry.mechanism for entry in account.entries] == ["n-grams", "sequences"]
    assert account.entries[1].guarantee.delta == 0


def test_requests_beyond_the_budget_are_rejected_in_advance(account):
    """A request beyond the budget raises an error with the remaining budget, and no plan runs or is charged."""

    def fail(data):
        raise AssertionError("ran")

    with pytest.raises(BudgetError, match=r"epsilon: 0 of 3 spent, 3 left, 4 requested\. Nothing ran"):
        planned(vp.Guarantee(4, 1e-8), fail).release(None, ledger=account)
    assert account.entries == []
    for _ in range(3):
        account.charge(ONCE, "by hand")
    with pytest.raises(BudgetError, match=r"Gaussian|epsilon: 3 of 3 spent, 0 left, 1 requested"):
        account.charge(ONCE, "once more")
    with pytest.raises(BudgetError, match=r"Gaussian|epsilon: 3 of 3 spent, 0 left, 1 requested"):
        account.check(ONCE)
    assert len(account.entries) == 3
    assert not account.fits(ONCE)


@pytest.mark.parametrize(("error", "state"), [(KeyError, "failed"), (KeyboardInterrupt, "charged")])
def test_a_failed_release_remains_charged(account, error, state):
    """A failed release remains charged, because its output could have been seen.

    Only an error of the release itself can depend on its noise. Therefore only such an error sets the state "failed".
    """

    def fail(data):
        raise error

    with pytest.raises(error):
        planned(ONCE, fail).release(None, ledger=account)
    (entry,) = account.entries
    assert (entry.mechanism, entry.state) == ("test", state)


@pytest.fixture(scope="module")
def forked(tmp_path_factory):
    """Return a function that runs work of `killing.py` in a new process and returns the exit code."""
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    call = [sys.executable, "-m", "ledger.killing", str(tmp_path_factory.mktemp("warm") / "team.ledger")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    pipe = subprocess.PIPE
    with subprocess.Popen(call, stdin=pipe, stdout=pipe, text=True, env=environment) as process:

        def run(*work):
            process.stdin.write(json.dumps([*map(str, work)]) + "\n")
            process.stdin.flush()
            return int(process.stdout.readline())

        yield run
        process.stdin.close()  # The process ends at the end of its input.


def test_a_killed_process_remains_charged(account, path, forked):
    """After kill -9 in the middle of a release, the charge is recorded and the lock is free."""
    assert forked("release", path) == -signal.SIGKILL
    assert [entry.mechanism for entry in account.entries] == ["test"]
    account.charge(ONCE, "next")
    assert len(account.entries) == 2


@pytest.mark.parametrize(
    ("statement", "when", "charged"),
    [
        ("BEGIN IMMEDIATE", "after", 1),
        ("INSERT OR REPLACE", "after", 1),
        ("INSERT INTO seal", "after", 1),
        ("COMMIT", "before", 1),
        ("COMMIT", "after", 2),
    ],
)
def test_a_kill_during_writing_leaves_the_old_or_the_new_ledger(account, path, forked, statement, when, charged):
    """After a kill at any step of a transaction, either the old or the new ledger exists, and no other files remain."""
    account.charge(ONCE, "first")
    assert forked("charge", path, statement, when) == -signal.SIGKILL
    assert len(account.entries) == charged
    account.charge(ONCE, "next")
    assert len(account.entries) == charged + 1
    assert sorted(each.name for each in path.parent.iterdir()) == [".team.ledger.exists", "team.ledger"]


CHARGING = """
import sys
import voxpop as vp
account = vp.Ledger(sys.argv[1]).account("busy")
done = 0
for _ in range(int(sys.argv[2])):
    try:
        account.charge(vp.Guarantee(0.1, 0.0), "one of many")
        done += 1
    except vp.errors.BudgetError:
        pass
print(done)
"""


@pytest.mark.parametrize("processes", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_processes_never_spend_the_same_budget(path, processes):
    """Each process requests epsilon 0.1 thirty times from a budget of 4.

    Exactly 40 charges succeed, numbered 1 to 40.
    """
    account = vp.Ledger(path).open("busy", vp.Budget(4, 0), create=True)
    call = [sys.executable, "-c", CHARGING, str(path), "30"]
    both = [subprocess.Popen(call, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    done = [int(each.communicate(timeout=120)[0]) for each in both]
    assert sum(done) == 40 == len(account.entries)
    assert [entry.number for entry in account.entries] == list(range(1, 41))


def test_reading_before_the_transaction_loses_a_charge(path, monkeypatch):
    """In a deliberately broken variant, the file is read before the transaction begins, so another charge is lost."""
    from contextlib import contextmanager

    from voxpop.ledger import ledger as ledger_module

    account = vp.Ledger(path).open("busy", vp.Budget(4, 0), create=True)
    real, busy = storage.changing, []

    @contextmanager
    def interrupted(where):
        stale = storage.read_ledger(where)
        if not busy:
            busy.append(True)
            account.charge(ONCE_PURE, "in between")
        with real(where) as datasets:
            datasets.clear()
            datasets.update(stale)
            yield datasets

    monkeypatch.setattr(ledger_module, "changing", interrupted)
    account.charge(ONCE_PURE, "slow")
    monkeypatch.undo()
    assert [entry.mechanism for entry in account.entries] == ["slow"]


ONCE_PURE = vp.Guarantee(0.1, 0.0)


def test_only_the_owner_may_read(account, path):
    """Only the owner may read the ledger file and the files next to it."""
    account.charge(ONCE, "x")
    for each in path.parent.iterdir():
        assert stat.S_IMODE(os.stat(each).st_mode) == 0o600


def sql(path, *statements):
    """Change a ledger as another program would."""
    with closing(sqlite3.connect(path)) as database:
        for each in statements:
            database.execute(each)
        database.commit()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE entries SET epsilon = 0.1", "no readable tables"),
        ("UPDATE entries SET state = 'failed'", "checksum differs"),
        ("UPDATE entries SET guarantee = '{}'", "no readable tables"),
        ("UPDATE datasets SET epsilon = 30", "checksum differs"),
        ("UPDATE datasets SET epsilon = 9e999", "no readable tables"),
        ("UPDATE entries SET mechanism = x'00ff'", "no readable tables"),
        ("INSERT INTO datasets VALUES (NULL, 1, 0, 'a')", "no readable tables"),
        ("INSERT INTO datasets VALUES (x'61', 1, 0, 'a')", "no readable tables"),
        ("DELETE FROM entries", "checksum differs"),
        ("DELETE FROM seal", "no readable tables"),
        ("DROP TABLE entries", "no readable tables"),
        ("PRAGMA application_id = 1", "not a ledger that voxpop wrote"),
        ("PRAGMA user_version = 2", "another rule.*Create a new ledger.*call `account.charge` once"),
    ],
)
def test_an_edited_ledger_is_detected(account, path, statement, message):
    """A ledger that another program changed raises an error and is not charged."""
    account.charge(ONCE, "x")
    sql(path, "PRAGMA foreign_keys = OFF", statement)
    for call in (lambda: account.charge(ONCE, "y"), lambda: account.entries):
        with pytest.raises(LedgerError, match=rf"team\.ledger.*{message}"):
            call()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"is empty|has no tables"),
        (b"{}", "not a ledger"),
        (b'{"format": "voxpop ledger", "format_version": 2}', "adds up releases by another rule"),
        (b"SQLite format 3\0" + bytes(84), "not a ledger"),
    ],
)
def test_a_file_that_is_not_a_ledger_is_detected(account, path, content, message):
    """A file that was emptied, truncated or replaced raises an error and is not charged."""
    path.write_bytes(content)
    for call in (lambda: account.charge(ONCE, "y"), lambda: account.entries):
        with pytest.raises(LedgerError, match=message):
            call()


def test_a_truncated_ledger_is_detected(account, path):
    """A ledger with a missing end raises an error and is not charged."""
    account.charge(ONCE, "x")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    for call in (lambda: account.charge(ONCE, "y"), lambda: account.entries):
        with pytest.raises(LedgerError):
            call()


def test_a_shared_ledger_keeps_its_mode(account, path):
    """A charge does not replace the file or change its mode and group, so a team can share the file."""
    path.chmod(0o660)
    before = path.stat()
    account.charge(ONCE, "x")
    after = path.stat()
    assert [getattr(after, each) for each in ("st_mode", "st_gid", "st_uid", "st_ino")] == [
        getattr(before, each) for each in ("st_mode", "st_gid", "st_uid", "st_ino")
    ]


def test_a_hard_link_is_rejected(account, path):
    """A second name for the file is rejected, because an interrupted change could be undone under only one name."""
    os.link(path, path.with_name("other.ledger"))
    for call in (lambda: account.charge(ONCE, "x"), lambda: account.entries):
        with pytest.raises(LedgerError, match=r"hard link.*Remove the other name"):
            call()
    path.with_name("other.ledger").unlink()
    path.with_name("symbolic.ledger").symlink_to(path)
    vp.Ledger(path.with_name("symbolic.ledger")).account("posts").charge(ONCE, "x")
    assert len(account.entries) == 1


def test_a_ledger_is_readable_by_other_programs(account, path):
    """Entries can be selected by any program that reads SQLite."""
    account.charge(ONCE, "by hand", "monday")
    with closing(sqlite3.connect(path)) as database:
        rows = database.execute("SELECT dataset, number, mechanism, label, epsilon, delta FROM entries").fetchall()
    assert rows == [("posts", 1, "by hand", "monday", 1.0, 1e-8)]


def test_a_lost_file_is_not_created_again(account, path):
    """A deleted ledger is not created again with a full budget, whether a call charges, opens or creates an account."""
    account.charge(ONCE, "all of it")
    path.unlink()
    ledger = vp.Ledger(path)
    for call in (
        lambda: account.charge(ONCE, "y"),
        lambda: account.fits(ONCE),
        lambda: ledger.names,
        lambda: ledger.account("posts"),
        lambda: ledger.open("posts", BUDGET),
        lambda: ledger.open("posts", BUDGET, create=True),
        lambda: ledger.open("others", BUDGET, create=True),
    ):
        with pytest.raises(LedgerError, match=r"is missing, but .*existed.*Restore the newest copy") as found:
            call()
        assert str(path.resolve()) in str(found.value)
    assert not path.exists()


@pytest.mark.parametrize("left", ["team.ledger-journal", ".team.ledger.exists"])
def test_a_marker_or_a_journal_is_enough_to_detect_a_lost_file(account, path, left):
    """Either the marker or an unfinished transaction is enough to detect the lost file."""
    path.with_name("team.ledger-journal").touch()
    path.unlink()
    for each in path.parent.iterdir():
        if each.name != left:
            each.unlink()
    with pytest.raises(LedgerError, match="it existed"):
        vp.Ledger(path).open("posts", BUDGET, create=True)
    for each in path.parent.iterdir():
        each.unlink()
    assert vp.Ledger(path).open("posts", BUDGET, create=True).entries == []


def test_a_missing_marker_is_written_at_the_next_charge(account, path):
    """If creation was interrupted before the marker was written, the next charge writes it."""
    marker = path.with_name(".team.ledger.exists")
    marker.unlink()
    account.charge(ONCE, "x")
    assert marker.exists()


def test_a_relative_path_in_another_folder_creates_no_ledger(account, path, tmp_path, monkeypatch):
    """In another working directory, a relative path denotes another file, which must be created explicitly."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for call in (vp.Ledger("team.ledger").open, lambda name, _: vp.Ledger("team.ledger").account(name)):
        with pytest.raises(LedgerError, match=r"does not exist\. Check the path and the working directory") as found:
            call("posts", BUDGET)
        assert str(tmp_path / "elsewhere" / "team.ledger") in str(found.value)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_an_account_that_is_opened_again_has_the_same_budget(account, path):
    """An account can be opened with the same budget.

    Another budget, an unknown data set and a second creation raise errors.
    """
    account.charge(ONCE, "x")
    ledger = vp.Ledger(path)
    assert len(ledger.open("posts", BUDGET).entries) == 1
    with pytest.raises(LedgerError, match="cannot be changed"):
        ledger.open("posts", vp.Budget(9, 1e-6))
    with pytest.raises(LedgerError, match='no data set "post"; it has posts'):
        ledger.account("post")
    with pytest.raises(LedgerError, match='no data set "clicks"'):
        ledger.open("clicks", vp.Budget(1, 0))
    with pytest.raises(LedgerError, match='has a data set "posts" already'):
        ledger.open("posts", BUDGET, create=True)
    ledger.open("clicks", vp.Budget(1, 0), create=True)
    assert ledger.names == ["posts", "clicks"]
    assert len(ledger.account("posts").entries) == 1


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("drinks", "drinks "),
        ("drinks", "Drinks"),
        ("cafe\u0301", "caf\u00e9"),
        ("a b", " a\t \u00a0b"),
        ("Stra\u00dfe", "STRASSE"),
    ],
)
def test_similar_names_denote_one_account(path, name, other):
    """Names that differ in white space, case or Unicode normal form share one budget."""
    ledger = vp.Ledger(path)
    ledger.open(name, BUDGET, create=True).charge(ONCE, "x")
    with pytest.raises(LedgerError, match="already"):
        ledger.open(other, BUDGET, create=True)
    assert len(ledger.open(other, BUDGET).entries) == len(ledger.account(other).entries) == 1
    assert len(ledger.names) == 1


def test_similar_names_are_distinguished_exactly(account, path):
    """If two accounts have similar names, an exact name is found, but a name that resembles both raises an error."""
    with storage.changing(path) as datasets:
        datasets["posts "] = datasets["posts"]
    ledger = vp.Ledger(path)
    assert [ledger.account(name).name for name in ("posts", "posts ")] == ["posts", "posts "]
    with pytest.raises(LedgerError, match="several data sets with this name"):
        ledger.account("Posts")


def test_a_spend_that_claims_less_than_its_pair_is_rejected(account):
    """A spend below its stated pair is rejected. Otherwise fifty releases of (2.9, 9e-7) would fit into (3, 1e-6)."""
    for spend in (Expense(0.0, 0.0), Expense(1e-9, 0.1), Expense(1e-9, 0.0, two_sided=True)):
        forged = vp.Guarantee(2.9, 9e-7, spend=spend)
        for call in (lambda forged=forged: account.charge(forged, "x"), lambda forged=forged: account.fits(forged)):
            with pytest.raises(InputError, match="does not fit"):
                call()
    assert account.entries == []


@pytest.mark.parametrize("name", PLANS)
def test_the_spend_of_every_plan_is_accepted(account, name):
    """The spend of every private plan is consistent with the guarantee, so the ledger accepts the plan."""
    guarantee = PLANS[name].guarantee
    if guarantee.private:
        assert vp.Ledger(account.path).open(name, vp.Budget(10, 1e-3), create=True).fits(guarantee)


@pytest.mark.parametrize(
    "guarantee",
    [
        vp.Guarantee(1, 1e-8, private=False),
        vp.Guarantee(1, 1e-8, "one user replaced"),
        vp.Guarantee(-1, 1e-8),
        vp.Guarantee(float("nan"), 1e-8),
        vp.Budget(1, 1e-8),
        None,
    ],
)
def test_invalid_charges_are_rejected(account, guarantee):
    """Objects without a private guarantee, with other neighbours or with an invalid epsilon are rejected."""
    with pytest.raises(InputError):
        account.charge(guarantee, "x")
    assert account.entries == []


def test_seeds_and_ledgers_exclude_each_other(account, corpus):
    """A release with a seed has no privacy cost that an account could charge, so a ledger rejects it."""
    with pytest.raises(InputError, match="seed"):
        vp.Items().release(corpus, vp.Budget(1, 1e-8), seed=1, ledger=account)
    assert account.entries == []


def test_invalid_names_and_budgets_are_rejected(path):
    """Invalid names and budgets raise errors before a file is created."""
    for name, budget in (("", BUDGET), (3, BUDGET), ("x", 3.0)):
        with pytest.raises(InputError):
            vp.Ledger(path).open(name, budget, create=True)
    with pytest.raises(LedgerError, match="not a folder"):
        vp.Ledger(path / "deeper" / "team.ledger").open("x", BUDGET, create=True)
    assert not path.exists()


def test_the_file_contains_nothing_private(account, corpus, path):
    """The file contains budgets, labels, times and guarantees, and no data."""
    vp.Items(max_items_per_user=2).release(corpus, vp.Budget(1, 1e-8), ledger=account)
    (entry,) = storage.read_ledger(path)["posts"]["entries"]
    assert set(entry) == {*vp.ledger.ledger.Entry.__slots__} - {*vp.ledger.entry.SHARED}
    assert b"tea" not in path.read_bytes().replace(b"team", b"")


def test_an_entry_of_another_account_does_not_finish_a_run(account, path):
    """The entry is rejected, because it would replace the charge of the other account and free its budget."""
    other = vp.Ledger(path).open("tags", BUDGET, create=True)
    small = [account.charge(vp.Guarantee(0.01, 0.0), "sums") for _ in range(2)]
    other.charge(vp.Guarantee(2, 1e-8), "sums")
    for end in (other.finish, other.fail):
        for entry in small:
            with pytest.raises(InputError, match="of this account"):
                end(entry)
    assert [(each.guarantee.epsilon, each.state) for each in other.entries] == [(2, "charged")]
    assert not other.fits(vp.Guarantee(2, 1e-8))


def test_finishing_an_entry_does_not_change_its_charge(account):
    entry = account.charge(ONCE, "sums")
    account.finish(replace(entry, guarantee=vp.Guarantee(0.01, 0.0), times=1))
    assert [(each.guarantee, each.state) for each in account.entries] == [(ONCE, "finished")]


WEIGHTED = vp.papers.SetUnion(10, "weighted", accounting="joint")


@pytest.mark.parametrize(
    ("epsilon", "mechanism"),
    [(0.29, vp.Items(max_items_per_user=10)), *((each, WEIGHTED) for each in (0.57, 1.15, 4.35, 0.295))],
)
def test_the_largest_epsilon_is_the_whole_budget_at_first(path, epsilon, mechanism):
    """The largest epsilon is the whole budget, even if a quotient of doubles is just below a whole number of steps."""
    whole = vp.Ledger(path).open("posts", vp.Budget(epsilon, 1e-6), create=True)
    assert whole.largest_epsilon(mechanism, 1e-8) == round(epsilon * 1000) // 10 / 100


def test_the_error_for_a_missing_delta_names_a_command_that_works(path, capsys):
    """The error names a command for budgets without delta, because no release of items has a delta of 0."""
    pure = vp.Ledger(path).open("visits", vp.Budget(1, 0), create=True)
    pure.charge(vp.Guarantee(0.75, 0.0), "sequences")
    with pytest.raises(BudgetError) as refusal:
        pure.charge(vp.Guarantee(0.5, 0.0), "sequences")
    command = str(refusal.value).split("`")[1].split()
    assert main(command[1:]) == 0
    assert "at most epsilon 0.25 fits" in capsys.readouterr().out
