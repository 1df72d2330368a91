"""The ledger: charged before anything runs, kept whole, shared between processes."""

import json
import os
import signal
import stat
import subprocess
import sys

import polars as pl
import pytest

import voxpop as vp
from voxpop.errors import BudgetError, InputError, LedgerError

BUDGET = vp.Budget(3, 1e-6)
ONCE = vp.Guarantee(1, 1e-8)


@pytest.fixture
def path(tmp_path):
    """Where the ledger is kept."""
    return tmp_path / "team.json"


@pytest.fixture
def account(path):
    """An account with nothing spent."""
    return vp.Ledger(path).open("posts", BUDGET)


@pytest.fixture(scope="module")
def corpus():
    """Two words that everybody holds."""
    return vp.read(pl.DataFrame({"who": range(500), "what": ["tea", "milk"] * 250}), user="who", items="what")


def python(program, *arguments, **options):
    call = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(call, capture_output=True, text=True, check=False, **options)


def test_releases_are_charged(account, corpus):
    """Every mechanism and counts take the account, and each charge says what it was."""
    words = vp.SetUnion(limit=2).release(corpus, vp.Budget(1, 1e-8), ledger=account)
    words.count(corpus, vp.Budget(0.5, 1e-8), ledger=account)
    vp.HeavyHitters(max_length=5).release(corpus, vp.Budget(0.5, 1e-8), ledger=account)
    assert [entry.label for entry in account.entries] == ["set union", "counts", "heavy hitters"]
    assert all(entry.finished for entry in account.entries)
    assert [entry.number for entry in account.entries] == [1, 2, 3]
    assert account.entries[0].guarantee.spend == words.guarantee.spend
    assert 1 < account.spent.epsilon <= 2


def test_phrases_and_sequences_are_charged(account):
    """The mechanisms that need an order."""
    table = pl.DataFrame({"who": range(500), "what": [["a", "b"]] * 500})
    corpus = vp.read(table, user="who", sequence="what")
    vp.NGrams(max_length=2, limit=2).release(corpus, vp.Budget(1, 1e-8), ledger=account)
    vp.Sequences(max_length=2, max_gram=2, alphabet=["a", "b"]).release(corpus, vp.Budget(1), ledger=account)
    assert [entry.label for entry in account.entries] == ["n-grams", "sequences"]
    assert account.entries[1].guarantee.delta == 0


def test_too_much_is_refused_before_anything_runs(account):
    """No plan runs, nothing is charged, and the message says what is left."""

    class Plan:
        guarantee = vp.Guarantee(4, 1e-8)

        def to_dict(self):
            return {}

        def release(self, corpus):
            raise AssertionError("ran")

    with pytest.raises(BudgetError, match=r"budget is \(3, 1e-06\).*Nothing ran"):
        account.release(Plan(), None)
    assert account.entries == []
    for _ in range(3):
        account.charge(ONCE, "by hand")
    with pytest.raises(BudgetError, match="too much, however it is added up"):
        account.charge(ONCE, "once more")
    with pytest.raises(BudgetError, match="too much, however it is added up"):
        account.check(ONCE)
    assert len(account.entries) == 3
    assert not account.fits(ONCE)


def test_a_release_that_fails_stays_charged(account):
    """It may have been seen."""

    class Plan:
        guarantee = ONCE

        def to_dict(self):
            return {"mechanism": "failing"}

        def release(self, corpus):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        account.release(Plan(), None)
    (entry,) = account.entries
    assert (entry.label, entry.finished) == ("failing", False)


KILLED = """
import os, signal, sys
import voxpop as vp
class Plan:
    guarantee = vp.Guarantee(1, 1e-8)
    def to_dict(self): return {"mechanism": "killed"}
    def release(self, corpus): os.kill(os.getpid(), signal.SIGKILL)
vp.Ledger(sys.argv[1]).account("posts").release(Plan(), None)
"""


def test_a_killed_process_stays_charged(account, path):
    """Kill -9 in the middle of a release: the charge is there, and the lock is free."""
    assert python(KILLED, path).returncode == -signal.SIGKILL
    assert [entry.label for entry in account.entries] == ["killed"]
    account.charge(ONCE, "next")
    assert len(account.entries) == 2


KILLED_WRITING = """
import os, signal, sys
import voxpop as vp
from voxpop.ledger import keeping
step = sys.argv[2]
real = getattr(os, step)
def stop(*arguments, **options):
    if step == "replace" and sys.argv[3] == "after":
        real(*arguments, **options)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(keeping.os, step, stop)
vp.Ledger(sys.argv[1]).account("posts").charge(vp.Guarantee(1, 1e-8), "killed")
"""


@pytest.mark.parametrize(
    ("step", "when", "charged"), [("fsync", "", 1), ("replace", "before", 1), ("replace", "after", 2)]
)
def test_killed_while_writing(account, path, step, when, charged):
    """At every step the ledger is the old one or the new one, and the next charge clears up."""
    account.charge(ONCE, "first")
    assert python(KILLED_WRITING, path, step, when).returncode == -signal.SIGKILL
    assert len(account.entries) == charged
    account.charge(ONCE, "next")
    assert len(account.entries) == charged + 1
    assert sorted(each.name for each in path.parent.iterdir()) == [".team.json.lock", "team.json"]


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
    """Two processes ask 30 times each for a tenth of 4: exactly 40 charges get in, each with a number of its own."""
    account = vp.Ledger(path).open("busy", vp.Budget(4, 0))
    call = [sys.executable, "-c", CHARGING, str(path), "30"]
    both = [subprocess.Popen(call, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    done = [int(each.communicate(timeout=120)[0]) for each in both]
    assert sum(done) == 39 == len(account.entries)  # 0.1 as a double is above a tenth
    assert [entry.number for entry in account.entries] == list(range(1, 40))


def test_the_test_of_two_processes_finds_a_ledger_without_a_lock(path, monkeypatch):
    """A twin without the lock, with another charge in between: one of the two is lost."""
    from contextlib import nullcontext

    from voxpop.ledger import account as account_module

    account = vp.Ledger(path).open("busy", vp.Budget(4, 0))
    real, busy = account_module.read_ledger, []

    def interrupted(where):
        content = real(where)
        if not busy:
            busy.append(True)
            account.charge(ONCE_PURE, "in between")
        return content

    monkeypatch.setattr(account_module, "held", lambda _: nullcontext())
    monkeypatch.setattr(account_module, "read_ledger", interrupted)
    account.charge(ONCE_PURE, "slow")
    monkeypatch.undo()
    assert [entry.label for entry in account.entries] == ["slow"]


ONCE_PURE = vp.Guarantee(0.1, 0.0)


def test_only_the_owner_may_read(account, path):
    """The file, and the lock beside it."""
    account.charge(ONCE, "x")
    for each in path.parent.iterdir():
        assert stat.S_IMODE(os.stat(each).st_mode) == 0o600


@pytest.mark.parametrize("damage", ["edited", "cut", "emptied", "other", "version"])
def test_a_damaged_file_is_found(account, path, damage):
    """Nothing is charged to a ledger that cannot be trusted."""
    account.charge(ONCE, "x")
    content = path.read_text(encoding="utf-8")
    path.write_text(
        {
            "edited": content.replace('"epsilon": 1', '"epsilon": 0.1'),
            "cut": content[: len(content) // 2],
            "emptied": "",
            "other": "{}",
            "version": content.replace('"format_version": 1', '"format_version": 2'),
        }[damage],
        encoding="utf-8",
    )
    with pytest.raises(LedgerError, match=r"team\.json"):
        account.charge(ONCE, "y")


def test_a_lost_file_is_not_made_anew(account, path):
    """Deleting a ledger does not give its budget back."""
    path.unlink()
    with pytest.raises(LedgerError, match=r"does not exist.*restore it"):
        account.charge(ONCE, "y")
    assert not path.exists()


def test_opening_again_keeps_the_budget(account, path):
    """The same budget is fine; another one is refused, so is an unknown data set."""
    account.charge(ONCE, "x")
    ledger = vp.Ledger(path)
    assert len(ledger.open("posts", BUDGET).entries) == 1
    with pytest.raises(LedgerError, match="cannot be changed"):
        ledger.open("posts", vp.Budget(9, 1e-6))
    with pytest.raises(LedgerError, match='no data set "post"; it has posts'):
        ledger.account("post")
    ledger.open("clicks", vp.Budget(1, 0))
    assert ledger.names == ["posts", "clicks"]
    assert len(ledger.account("posts").entries) == 1


@pytest.mark.parametrize(
    "guarantee",
    [
        vp.Guarantee(1, 1e-8, private=False),
        vp.Guarantee(1, 1.0, private=False, unproved="none"),
        vp.Guarantee(1, 1e-8, "one user replaced"),
        vp.Guarantee(-1, 1e-8),
        vp.Guarantee(float("nan"), 1e-8),
        vp.Budget(1, 1e-8),
        None,
    ],
)
def test_what_cannot_be_charged(account, guarantee):
    """Not private, another unit, and things that are no guarantee."""
    with pytest.raises(InputError):
        account.charge(guarantee, "x")
    assert account.entries == []


def test_seeds_and_ledgers_exclude_each_other(account, corpus):
    """A seeded release costs what no account can say."""
    with pytest.raises(InputError, match="seed"):
        vp.SetUnion().release(corpus, vp.Budget(1, 1e-8), seed=1, ledger=account)
    assert account.entries == []


def test_names_and_budgets_are_checked(path):
    """Before a file is made."""
    for name, budget in (("", BUDGET), (3, BUDGET), ("x", 3.0)):
        with pytest.raises(InputError):
            vp.Ledger(path).open(name, budget)
    with pytest.raises(LedgerError, match="not a folder"):
        vp.Ledger(path / "deeper" / "team.json").open("x", BUDGET)
    assert not path.exists()


def test_nothing_private_is_kept(account, corpus, path):
    """The file holds budgets, labels, times and guarantees."""
    vp.SetUnion(limit=2).release(corpus, vp.Budget(1, 1e-8), ledger=account)
    content = json.loads(path.read_text(encoding="utf-8"))
    assert set(content) == {"format", "format_version", "checksum", "datasets"}
    (entry,) = content["datasets"]["posts"]["entries"]
    assert set(entry) == {"number", "label", "guarantee", "charged", "finished"}
    assert "tea" not in path.read_text(encoding="utf-8")
