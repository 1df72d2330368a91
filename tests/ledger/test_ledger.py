"""The ledger is charged before a release runs, remains complete, and is shared between processes."""

import json
import os
import signal
import stat
import subprocess
import sys

import polars as pl
import pytest

import voxpop as vp
from privacy.test_planned import PLANS
from support.plans import planned
from voxpop.errors import BudgetError, InputError, LedgerError
from voxpop.ledger import storage
from voxpop.privacy.guarantee import Spend

BUDGET = vp.Budget(3, 1e-6)
ONCE = vp.Guarantee(1, 1e-8)


@pytest.fixture
def path(tmp_path):
    """Return the path of the ledger."""
    return tmp_path / "team.json"


@pytest.fixture
def account(path):
    """Return an account of which no budget is spent."""
    return vp.Ledger(path).open("posts", BUDGET, create=True)


@pytest.fixture(scope="module")
def corpus():
    """Return a corpus of 500 users, half of whom hold each of two words."""
    return vp.read(pl.DataFrame({"who": range(500), "what": ["tea", "milk"] * 250}), user="who", items="what")


def python(program, *arguments, **options):
    call = [sys.executable, "-c", program, *map(str, arguments)]
    found = os.pathsep.join(path for path in sys.path if path)
    return subprocess.run(
        call, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": found}, **options
    )


def test_releases_are_charged(account, corpus):
    """Every mechanism and counts accept the account, and each entry names its mechanism."""
    words = vp.SetUnion(limit=2).release(corpus, vp.Budget(1, 1e-8), ledger=account)
    words.count(corpus, vp.Budget(0.5, 1e-8), ledger=account)
    vp.HeavyHitters(max_length=5).release(corpus, vp.Budget(0.5, 1e-8), ledger=account)
    assert [entry.mechanism for entry in account.entries] == ["set union", "counts", "heavy hitters"]
    assert all(entry.state == "finished" for entry in account.entries)
    assert [entry.number for entry in account.entries] == [1, 2, 3]
    assert account.entries[0].guarantee.spend == words.guarantee.spend
    assert 1 < account.spent.epsilon <= 2


def test_phrases_and_sequences_are_charged(account):
    """Mechanisms that need ordered data also charge the account."""
    table = pl.DataFrame({"who": range(500), "what": [["a", "b"]] * 500})
    corpus = vp.read(table, user="who", sequence="what")
    vp.NGrams(max_length=2, limit=2).release(corpus, vp.Budget(1, 1e-8), ledger=account)
    vp.Sequences(max_length=2, max_gram=2, alphabet=["a", "b"]).release(corpus, vp.Budget(1), ledger=account)
    assert [entry.mechanism for entry in account.entries] == ["n-grams", "sequences"]
    assert account.entries[1].guarantee.delta == 0


def test_too_much_is_refused_before_anything_runs(account):
    """A request beyond the budget raises an error that states the remaining budget; no plan runs or is charged."""

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
def test_a_release_that_fails_stays_charged(account, error, state):
    """A failed release stays charged, because its output may have been seen.

    Only an error of the release itself can depend on its noise, so only such an error sets the state "failed".
    """

    def fail(data):
        raise error

    with pytest.raises(error):
        planned(ONCE, fail).release(None, ledger=account)
    (entry,) = account.entries
    assert (entry.mechanism, entry.state) == ("test", state)


KILLED = """
import os, signal, sys
import voxpop as vp
from support.plans import planned
plan = planned(vp.Guarantee(1, 1e-8), lambda data: os.kill(os.getpid(), signal.SIGKILL))
plan.release(None, ledger=vp.Ledger(sys.argv[1]).account("posts"))
"""


def test_a_killed_process_stays_charged(account, path):
    """After kill -9 in the middle of a release, the charge is recorded and the lock is free."""
    assert python(KILLED, path).returncode == -signal.SIGKILL
    assert [entry.mechanism for entry in account.entries] == ["test"]
    account.charge(ONCE, "next")
    assert len(account.entries) == 2


KILLED_WRITING = """
import os, signal, sys
import voxpop as vp
from voxpop.ledger import storage
step = sys.argv[2]
real = getattr(os, step)
def stop(*arguments, **options):
    if step == "replace" and sys.argv[3] == "after":
        real(*arguments, **options)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(storage.os, step, stop)
vp.Ledger(sys.argv[1]).account("posts").charge(vp.Guarantee(1, 1e-8), "killed")
"""


@pytest.mark.parametrize(
    ("step", "when", "charged"), [("fsync", "", 1), ("replace", "before", 1), ("replace", "after", 2)]
)
def test_killed_while_writing(account, path, step, when, charged):
    """After a kill at any step of writing, the ledger is the old or new one, and the next charge removes leftovers."""
    account.charge(ONCE, "first")
    assert python(KILLED_WRITING, path, step, when).returncode == -signal.SIGKILL
    assert len(account.entries) == charged
    account.charge(ONCE, "next")
    assert len(account.entries) == charged + 1
    assert sorted(each.name for each in path.parent.iterdir()) == [".team.json.exists", ".team.json.lock", "team.json"]


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


def test_two_processes_never_spend_the_same(path):
    """Two processes request epsilon 0.1 thirty times each from a budget of 4: 40 charges succeed, numbered 1 to 40."""
    account = vp.Ledger(path).open("busy", vp.Budget(4, 0), create=True)
    call = [sys.executable, "-c", CHARGING, str(path), "30"]
    both = [subprocess.Popen(call, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    done = [int(each.communicate(timeout=120)[0]) for each in both]
    assert sum(done) == 40 == len(account.entries)
    assert [entry.number for entry in account.entries] == list(range(1, 41))


def test_the_test_of_two_processes_finds_a_ledger_without_a_lock(path, monkeypatch):
    """Without the lock, another charge during a charge is lost (deliberately broken variant)."""
    from contextlib import nullcontext

    from voxpop.ledger import ledger as ledger_module

    account = vp.Ledger(path).open("busy", vp.Budget(4, 0), create=True)
    real, busy = ledger_module.read_ledger, []

    def interrupted(where):
        content = real(where)
        if not busy:
            busy.append(True)
            account.charge(ONCE_PURE, "in between")
        return content

    monkeypatch.setattr(ledger_module, "held", lambda _: nullcontext())
    monkeypatch.setattr(ledger_module, "read_ledger", interrupted)
    account.charge(ONCE_PURE, "slow")
    monkeypatch.undo()
    assert [entry.mechanism for entry in account.entries] == ["slow"]


ONCE_PURE = vp.Guarantee(0.1, 0.0)


def test_only_the_owner_may_read(account, path):
    """Only the owner may read the ledger file and the files next to it."""
    account.charge(ONCE, "x")
    for each in path.parent.iterdir():
        assert stat.S_IMODE(os.stat(each).st_mode) == 0o600


@pytest.mark.parametrize("damage", ["edited", "cut", "emptied", "other", "version"])
def test_a_damaged_file_is_found(account, path, damage):
    """A damaged ledger raises an error and is not charged."""
    account.charge(ONCE, "x")
    content = path.read_text(encoding="utf-8")
    path.write_text(
        {
            "edited": content.replace('"epsilon": 1', '"epsilon": 0.1'),
            "cut": content[: len(content) // 2],
            "emptied": "",
            "other": "{}",
            "version": content.replace('"format_version": 2', '"format_version": 3'),
        }[damage],
        encoding="utf-8",
    )
    with pytest.raises(LedgerError, match=r"team\.json"):
        account.charge(ONCE, "y")


def test_a_lost_file_is_not_made_anew(account, path):
    """A deleted ledger is not created again with a full budget, whether by charging, opening or creating."""
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
        with pytest.raises(LedgerError, match=r"is missing, but it existed.*Restore the newest copy") as found:
            call()
        assert str(path.resolve()) in str(found.value)
    assert not path.exists()


@pytest.mark.parametrize("left", [".team.json.lock", ".team.json.exists"])
def test_one_trace_of_a_lost_file_is_enough(account, path, left):
    """The marker, or the lock of a ledger that an earlier version wrote, is enough to detect the lost file."""
    path.unlink()
    for each in path.parent.iterdir():
        if each.name != left:
            each.unlink()
    with pytest.raises(LedgerError, match="it existed"):
        vp.Ledger(path).open("posts", BUDGET, create=True)
    for each in path.parent.iterdir():
        each.unlink()
    assert vp.Ledger(path).open("posts", BUDGET, create=True).entries == []


def test_a_ledger_of_an_earlier_version_is_marked_at_its_next_charge(account, path):
    """A ledger of an earlier version has no marker until its next charge."""
    marker = path.with_name(".team.json.exists")
    marker.unlink()
    account.charge(ONCE, "x")
    assert marker.exists()


def test_a_script_in_another_folder_starts_no_budget(account, path, tmp_path, monkeypatch):
    """A relative path in another working directory names another file, which must be created explicitly."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for call in (vp.Ledger("team.json").open, lambda name, _: vp.Ledger("team.json").account(name)):
        with pytest.raises(LedgerError, match=r"does not exist\. Check the path and the working directory") as found:
            call("posts", BUDGET)
        assert str(tmp_path / "elsewhere" / "team.json") in str(found.value)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_opening_again_keeps_the_budget(account, path):
    """Opening with the same budget works; another budget, an unknown data set and a second creation raise errors."""
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
def test_names_that_look_alike_are_one_account(path, name, other):
    """Names that differ in white space, case or Unicode normal form share one budget."""
    ledger = vp.Ledger(path)
    ledger.open(name, BUDGET, create=True).charge(ONCE, "x")
    with pytest.raises(LedgerError, match="already"):
        ledger.open(other, BUDGET, create=True)
    assert len(ledger.open(other, BUDGET).entries) == len(ledger.account(other).entries) == 1
    assert len(ledger.names) == 1


def test_names_of_an_earlier_version_that_look_alike_are_told_apart_exactly(account, path):
    """Both accounts of an earlier version remain unchanged; a name that matches both raises an error."""
    with storage.held(path):
        datasets = storage.read_ledger(path)
        storage.write_ledger(path, {**datasets, "posts ": datasets["posts"]})
    ledger = vp.Ledger(path)
    assert [ledger.account(name).name for name in ("posts", "posts ")] == ["posts", "posts "]
    with pytest.raises(LedgerError, match="several data sets of that name"):
        ledger.account("Posts")


def test_a_spend_that_claims_less_than_its_pair_is_refused(account):
    """A spend below its stated pair is refused: otherwise fifty releases of (2.9, 9e-7) would fit into (3, 1e-6)."""
    for spend in (Spend(0.0, 0.0), Spend(1e-9, 0.1), Spend(1e-9, 0.0, apart=True)):
        forged = vp.Guarantee(2.9, 9e-7, spend=spend)
        for call in (lambda forged=forged: account.charge(forged, "x"), lambda forged=forged: account.fits(forged)):
            with pytest.raises(InputError, match="does not fit"):
                call()
    assert account.entries == []


@pytest.mark.parametrize("name", PLANS)
def test_the_spend_of_every_plan_fits(account, name):
    """The spend of every private plan is consistent with its guarantee, so the ledger accepts it."""
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
def test_what_cannot_be_charged(account, guarantee):
    """Guarantees that are not private, have other neighbours or an invalid epsilon, and other objects are refused."""
    with pytest.raises(InputError):
        account.charge(guarantee, "x")
    assert account.entries == []


def test_seeds_and_ledgers_exclude_each_other(account, corpus):
    """A release with a seed has no privacy cost that an account could charge, so a ledger refuses it."""
    with pytest.raises(InputError, match="seed"):
        vp.SetUnion().release(corpus, vp.Budget(1, 1e-8), seed=1, ledger=account)
    assert account.entries == []


def test_names_and_budgets_are_checked(path):
    """Invalid names and budgets raise errors before a file is made."""
    for name, budget in (("", BUDGET), (3, BUDGET), ("x", 3.0)):
        with pytest.raises(InputError):
            vp.Ledger(path).open(name, budget, create=True)
    with pytest.raises(LedgerError, match="not a folder"):
        vp.Ledger(path / "deeper" / "team.json").open("x", BUDGET, create=True)
    assert not path.exists()


def test_nothing_private_is_kept(account, corpus, path):
    """The file contains budgets, labels, times and guarantees, and no data."""
    vp.SetUnion(limit=2).release(corpus, vp.Budget(1, 1e-8), ledger=account)
    content = json.loads(path.read_text(encoding="utf-8"))
    assert set(content) == {"format", "format_version", "checksum", "datasets"}
    (entry,) = content["datasets"]["posts"]["entries"]
    assert set(entry) == {*vp.ledger.ledger.Entry.__slots__} - {"dataset"}
    assert "tea" not in path.read_text(encoding="utf-8")
