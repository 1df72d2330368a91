"""Tests of the state of a series, including atomic nights and the rejection of all but the newest state."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from filelock import FileLock

import voxpop as vp
from support.series_nights import begin_night, read_night, weights_of
from voxpop.errors import InputError, LedgerError, ReleaseError
from voxpop.ledger.ledger import LedgerAccount
from voxpop.mechanisms.series import state
from voxpop.privacy.gate.nights import NightsGate
from voxpop.privacy.gaussian import delta as gaussian_delta
from voxpop.privacy.individual import WHOLE
from voxpop.privacy.secret import Secret

BUDGET = vp.Budget(3, 1e-6)


def rows(*words, users=3000):
    """Return rows in which all users have all words."""
    table = pl.DataFrame({"who": [user for user in range(users) for _ in words], "what": list(words) * users})
    return vp.read(table, user="who", items="what")


@pytest.fixture
def account(tmp_path):
    """Return an account whose budget is sufficient for two series."""
    return vp.Ledger(tmp_path / "team.ledger").open("posts", vp.Budget(7, 1e-4), create=True)


@pytest.mark.slow
@pytest.mark.jit
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_night_that_is_killed_at_any_step_is_completed(tmp_path):
    """A night is killed before each access to a file and then run again.

    The releases of all nights equal those without a kill, with one charge and no additional files.
    """
    call = [sys.executable, "-m", "series.stopped_nights", str(tmp_path)]
    tests = Path(__file__).parents[1]
    path = os.pathsep.join([str(tests), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(call, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path})
    found = [json.loads(line) for line in done.stdout.splitlines()]
    *killed, whole = found
    assert not whole.pop("killed")
    assert len(killed) > 10
    assert len(whole["nights"]) > 1
    for each in killed:
        assert each.pop("killed")
        assert each == whole


def test_a_restored_state_is_rejected(tmp_path, account, monkeypatch):
    """The checksum in the ledger detects an old state. Without this check, the same budget could be spent twice."""
    series = vp.Items().series(tmp_path / "s", BUDGET, nights=5, ledger=account)
    series.run(rows("tea"))
    shutil.copytree(tmp_path / "s", tmp_path / "copy")
    series.run(rows("tea", "milk"))
    shutil.copytree(tmp_path / "copy", tmp_path / "s", dirs_exist_ok=True)
    for call in (lambda: series.run(rows("milk")), lambda: series.released, lambda: series.remove(1)):
        with pytest.raises(LedgerError, match="restored or copied"):
            call()
    monkeypatch.setattr(LedgerAccount, "advance", lambda *_: None)
    assert series.run(rows("milk")).guarantee == vp.Guarantee(3, 1e-6)  # The broken variant runs night 2 again.


def test_only_one_of_two_copies_can_continue(tmp_path, account):
    """After one of two copies of a folder has run a night, the other copy is rejected."""
    vp.Items().series(tmp_path / "s", BUDGET, nights=5, ledger=account).run(rows("tea"))
    shutil.copytree(tmp_path / "s", tmp_path / "copy")
    vp.Items().series(tmp_path / "copy").run(rows("milk"))
    with pytest.raises(LedgerError, match="restored or copied"):
        vp.Items().series(tmp_path / "s").run(rows("milk"))


def test_a_lost_state_ends_the_series(tmp_path, account):
    """The series can be neither opened nor started again, and a new series is charged."""
    vp.Items().series(tmp_path / "s", BUDGET, nights=5, ledger=account).run(rows("tea"))
    shutil.rmtree(tmp_path / "s")
    with pytest.raises(ReleaseError, match="contains no state of a series"):
        vp.Items().series(tmp_path / "s")
    with pytest.raises(LedgerError, match="If the state is lost, the series ends"):
        vp.Items().series(tmp_path / "s", BUDGET, nights=5, ledger=account)
    vp.Items().series(tmp_path / "t", BUDGET, nights=5, ledger=account)
    assert [entry.label for entry in account.entries] == ["series s", "series t"]


def test_an_interrupted_start_is_charged_once(tmp_path, account, monkeypatch):
    """If a start is interrupted before the state is written, the next start is not charged again."""
    from voxpop.mechanisms.series.state import Store

    with monkeypatch.context() as patched:
        patched.setattr(Store, "write", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            vp.Items().series(tmp_path / "s", BUDGET, nights=5, ledger=account)
    vp.Items().series(tmp_path / "s", BUDGET, nights=5, ledger=account).run(rows("tea"))
    assert len(account.entries) == 1


@pytest.mark.parametrize("key", [None, b"k" * 32])
def test_a_changed_state_is_rejected(tmp_path, key):
    """A state that was truncated or edited is rejected."""
    series = vp.Items().series(tmp_path / "s", BUDGET, nights=5, key=key)
    series.run(rows("tea"))
    file = tmp_path / "s" / "state.voxpop"
    whole = file.read_bytes()
    for broken in (whole[: len(whole) // 2], b""):
        file.write_bytes(broken)
        with pytest.raises(InputError):
            series.run(rows("milk"))
    middle = len(whole) // 2
    file.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    with pytest.raises(InputError):
        series.run(rows("milk"))


def test_the_folder_is_private_and_can_be_encrypted(tmp_path):
    """Only the owner may read the folder. With a key, the file is encrypted, and only this key decrypts it."""
    key = bytes(range(32))
    plain = vp.Items().series(tmp_path / "plain", BUDGET, nights=5)
    sealed = vp.Items().series(tmp_path / "sealed", BUDGET, nights=5, key=key)
    for series in (plain, sealed):
        series.run(rows("marmalade"))
        assert stat.S_IMODE(series.folder.stat().st_mode) == 0o700
        assert stat.S_IMODE((series.folder / "state.voxpop").stat().st_mode) == 0o600
    assert b"marmalade" in (plain.folder / "state.voxpop").read_bytes()
    assert b"marmalade" not in (sealed.folder / "state.voxpop").read_bytes()
    assert vp.Items().series(tmp_path / "sealed", key=key).night == 1
    for wrong, message in ((None, "is encrypted"), (bytes(32), "another key"), (b"short", "32 bytes")):
        with pytest.raises(InputError, match=message):
            vp.Items().series(tmp_path / "sealed", key=wrong).run(rows("tea"))
    with pytest.raises(ReleaseError, match="is not encrypted"):
        vp.Items().series(tmp_path / "plain", key=key).run(rows("tea"))


def test_nights_run_in_order_and_can_be_skipped_or_repeated(tmp_path):
    """A repeated night returns its release again, skipped nights count, and earlier nights are rejected."""
    series = vp.Items().series(tmp_path / "s", BUDGET, nights=6)
    first = series.run(rows("tea"), night=1)
    assert series.run(rows("other"), night=1) == series.run(rows("tea"), night=1) == first
    assert series.night == 1
    assert "other" not in series._read()[1].words.to_pylist()
    series.run(rows("tea", "milk"), night=4)
    with pytest.raises(InputError, match="`night` must be from 5 to 6, got 1"):
        series.run(rows("milk"), night=1)
    assert (series.night, len(series.counts)) == (4, 4)
    series.run(rows("tea", "milk", "oat"))
    series.run(rows("tea", "milk", "oat", "rye"))
    with pytest.raises(ReleaseError, match="ended with night 6"):
        series.run(rows("tea"))
    released = series.released.to_pydict()
    assert {*released["what"]} >= {"tea", "milk"}
    assert sum(series.counts) == len(series.release) == len(released["night"])
    assert "tea" in series.report().html


def test_a_stopped_night_is_completed_with_its_stored_rows(tmp_path, monkeypatch):
    """A night that stopped after its rows were stored runs on these rows, even if a caller passes other rows.

    Otherwise, the same noise on other rows would reveal the difference.
    """
    whole, stopped = (vp.Items().series(tmp_path / name, BUDGET, nights=3, seed=1) for name in "ws")
    for series in (whole, stopped):
        series.run(rows("tea"))
    with monkeypatch.context() as patched:
        patched.setattr(NightsGate, "complete", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            stopped.run(rows("tea", "milk"), night=2)
    again = stopped.run(rows("tea", "rum"), night=2)
    assert again == whole.run(rows("tea", "milk"), night=2)
    assert again.to_list()
    assert stopped._read()[1].words.to_pylist() == ["tea", "milk"]


def test_nights_that_do_not_run_add_noise_but_no_weight(tmp_path):
    """Nights 2 and 3 add noise to every score, even to that of a word of night 4, and no user pays for these nights."""
    series = vp.Items().series(tmp_path / "s", BUDGET, nights=6, seed=1)
    series.run(rows("tea", users=3), night=1)
    record, expected = series._read()
    plan, secret, first = series.plan, Secret(bytes.fromhex(record.secret), private=False), expected.left.copy()
    for missed in (2, 3):
        before = expected.scores.copy()
        read_night(plan, expected, secret, missed, None)
        assert (expected.scores != before).all()
    assert (expected.left == first).all()
    begin_night(plan, expected, secret, rows("tea", "milk", users=3)._engine, 4)
    read_night(plan, expected, secret, 4, weights_of(plan, expected, 4))
    series.run(rows("tea", "milk", users=3), night=4)
    _, found = series._read()
    assert found.words.to_pylist() == ["tea", "milk"]
    assert found.scores.tolist() == expected.scores.tolist()
    assert found.left.tolist() == expected.left.tolist()


def test_only_one_process_at_a_time_runs_a_night(tmp_path, monkeypatch):
    """A night waits for the lock, and raises an error if another process does not release the lock."""
    series = vp.Items().series(tmp_path / "s", BUDGET, nights=3)
    monkeypatch.setattr(state, "LOCK_PATIENCE", 0.05)
    with FileLock(tmp_path / "s" / ".lock"), pytest.raises(ReleaseError, match="another process"):
        series.run(rows("tea"))
    assert series.night == 0


def test_the_checksum_in_a_ledger_is_keyed(tmp_path, account):
    """The checksum depends on a secret, so readers of the ledger cannot use it to test guesses about the rows."""
    vp.Items().series(tmp_path / "s", BUDGET, nights=3, ledger=account).run(rows("tea"))
    content, record = (tmp_path / "s" / state.STATE_FILE).read_bytes(), vp.Items().series(tmp_path / "s")._read()[0]
    assert account.entries[0].release == record.previous == state._checksum(content, record)
    record.secret = "00" * 32
    assert state._checksum(content, record) != record.previous


def test_a_ledger_charges_a_series_by_its_spend(tmp_path, account):
    """The ledger charges all nights as one Gaussian release at the start. The label is rejected for other releases."""
    series = vp.Items().series(tmp_path / "s", BUDGET, nights=3, ledger=account)
    [entry] = account.entries
    spend = entry.guarantee.spend
    assert (entry.guarantee, spend) == (vp.Guarantee(3, 1e-6), series.plan.guarantee.spend)
    assert spend.two_sided
    assert spend.novel + gaussian_delta(3, spend.mu) == pytest.approx(series.plan.delta_spent)
    with pytest.raises(InputError, match="was charged for series"):
        account.charge(entry.guarantee, "items", entry.label)


def test_every_series_has_a_separate_secret(tmp_path):
    """All nights of a series have the same secret, and another series has another secret."""
    one, two = (vp.Items().series(tmp_path / name, BUDGET, nights=3) for name in "ab")
    before = one._read()[0].secret
    one.run(rows("tea"))
    assert one._read()[0].secret == before != two._read()[0].secret


def test_no_public_value_depends_on_the_private_state(tmp_path):
    """Public values do not change if budgets, payments, pools, undecided words and scores are changed."""
    series = vp.Items().series(tmp_path / "s", BUDGET, nights=4, seed=1)
    for night in (1, 2, 3):
        series.run(rows("tea", "milk", "oat"), night=night)

    def shown():
        released, release = series.released, series.release
        text = (repr(series), str(series.plan), series.guarantee, series.night, series.counts, series.report().html)
        return released, release, text

    before = shown()
    assert len(before[0])
    with series._store.locked():
        record, pools = series._store.read()
        words, decided = [*pools.words.to_pylist(), "rum"], pools.released > 0
        pools.words = pa.array(words, pa.large_string())
        pools.left = np.full(7, WHOLE // 3)
        pools.keys, pools.paid = np.arange(7, dtype=np.uint64), np.arange(7)
        pools.items, pools.starts = np.zeros(7, np.int32), np.arange(8)
        pools.nights = np.ones(7, np.int32)
        pools.scores = np.append(np.where(decided, pools.scores, 7) + 5, -5)
        pools.released = np.append(pools.released, 0)
        series._store.write(record, pools)
    assert series._read()[1].words.to_pylist() == words
    assert shown() == before


def test_a_removed_user_has_no_remaining_budget(tmp_path):
    """The pool of the user is removed, the user's key keeps no budget, and later rows of the user are ignored."""
    series = vp.Items().series(tmp_path / "s", BUDGET, nights=6)
    series.run(rows("tea", users=3))
    removed = series.remove(1)
    assert (removed.items, removed.nights) == (1, 1)
    assert not series.remove(77)
    for large in (2**64, -(2**63) - 1):
        with pytest.raises(InputError, match="does not fit into 64 bits, so no column") as error:
            series.remove(large)
        assert str(large) not in str(error.value)
    _, pools = series._read()
    place = pools.keys.tolist().index(1)
    assert (pools.left[place], pools.starts[place]) == (0, pools.starts[place + 1])
    assert pools.words.to_pylist() == ["tea"]
    series.run(rows("milk", users=3))
    _, pools = series._read()
    place = pools.keys.tolist().index(1)
    assert pools.starts[place] == pools.starts[place + 1]
    assert pools.left[place] == 0


def test_rows_of_another_type_are_rejected_on_later_nights(tmp_path):
    """The first night determines the type, even if it has no rows."""
    series = vp.Items().series(tmp_path / "s", BUDGET, nights=6)
    series.run(rows("tea"))
    table = pl.DataFrame({"who": range(10), "what": range(10)})
    with pytest.raises(InputError, match="must be read in the same way"):
        series.run(vp.read(table, user="who", items="what"))
    whole = vp.Items().series(tmp_path / "t", BUDGET, nights=6)
    for each in (table.clear(), table, table.clear(), table):
        whole.run(vp.read(each, user="who", items="what"))
    assert (series.night, whole.night) == (1, 4)


def test_wrong_calls_are_rejected(tmp_path, account):
    """No wrong call is charged."""
    union = vp.Items()
    with pytest.raises(InputError, match="`nights` must be given"):
        union.series(tmp_path / "s", BUDGET)
    with pytest.raises(InputError, match="started with a budget"):
        union.series(tmp_path / "s", nights=4)
    with pytest.raises(InputError, match="cannot be charged"):
        union.series(tmp_path / "s", BUDGET, nights=4, ledger=account, seed=1)
    with pytest.raises(InputError, match="no `min_users`"):
        vp.Items(min_users=20).series(tmp_path / "s", BUDGET, nights=4)
    assert not account.entries
    seeded = union.series(tmp_path / "s", BUDGET, nights=4, seed=1)
    assert not seeded.run(rows("tea")).guarantee.private
    with pytest.raises(ReleaseError, match="contains a series already"):
        union.series(tmp_path / "s", BUDGET, nights=4)


@pytest.mark.parametrize("saved", [False, True])
def test_ids_of_another_family_are_rejected_on_later_nights(tmp_path, saved):
    """If ids had two families of types, a person could have two budgets.

    A rejected night does not change the state.
    """

    def night(ids, kind):
        table = pa.table({"who": pa.array(ids, kind), "what": ["tea"] * len(ids)})
        corpus = vp.read(table, user="who", items="what")
        if saved:
            corpus.save(tmp_path / "saved")
        return vp.load_corpus(tmp_path / "saved") if saved else corpus

    series = vp.Items().series(tmp_path / "s", BUDGET, nights=9)
    series.run(night([1, 2], pa.int64()), night=1)
    for other in (night(["1"], pa.string()), night([], pa.string()), night([True], pa.bool_())):
        with pytest.raises(InputError, match=r"ids of users are .* two budgets"):
            series.run(other, night=2)
    assert series.night == 1
    series.run(night([1], pa.uint16()), night=2)
    series.run(vp.read([], user="who", items="what"), night=3)
    series.run(night([], pa.int64()), night=4)


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize(
    ("first", "later"), [(["tenant", "id"], ["id", "tenant"]), ("email", "login"), ("user.email", "user.login")]
)
def test_other_user_columns_are_rejected_on_later_nights(tmp_path, first, later, saved):
    """With other user columns or another order, a person could have two budgets. Renamed columns are accepted."""
    ids = [f"a{number}" for number in range(3000)]
    plain = {name: ids for name in ("tenant", "id", "email", "login")}
    table = pa.table({**plain, "user": pa.array([{"email": each, "login": each} for each in ids]), "what": ids})

    def night(user, rows=table):
        corpus = vp.read(rows, user=user, items="what")
        if saved:
            corpus.save(tmp_path / "saved")
        return vp.load_corpus(tmp_path / "saved") if saved else corpus

    series = vp.Items().series(tmp_path / "s", BUDGET, nights=9)
    series.run(night(first), night=1)
    for rows in (table, table.slice(0, 0)):
        with pytest.raises(InputError, match=r"user columns are .* on this night .* two budgets.* rename the"):
            series.run(night(later, rows), night=2)
    assert series.night == 1
    renamed = pa.table({str(name): ids for name in ([first] if isinstance(first, str) else first)} | {"what": ids})
    if first != "user.email":
        series.run(night(first, renamed), night=2)
    series.run(vp.read([], user=later, items="what"), night=3)


def test_a_state_without_user_columns_records_them_on_the_next_night(tmp_path):
    """An earlier version did not save the names of the user columns, so the next night with types records them."""
    series = vp.Items().series(tmp_path / "s", BUDGET, nights=9)
    series.run(rows("tea"))
    with series._locked():
        record, pools = series._store.read()
        record.user_columns = []
        series._store.write(record, pools)
    series.run(rows("tea"))
    assert series._read()[0].user_columns == ["who"]


def test_a_night_with_an_untyped_user_column_records_no_types(tmp_path):
    """No row of the night has a user, so the next night may still determine the types of both columns."""
    series = vp.Items().series(tmp_path / "s", BUDGET, nights=9)
    for night, kind in enumerate((pa.null(), pa.string(), pa.null()), start=1):
        table = pa.table(
            {"tenant": ["a"], "id": pa.array(["b"]).cast(kind) if night == 2 else pa.nulls(1), "what": ["tea"]}
        )
        options = vp.ReadOptions(missing_users="drop", progress=False)
        series.run(vp.read(table, user=["tenant", "id"], items="what", options=options), night=night)
    assert series._read()[0].families == ["strings", "strings"]


@pytest.mark.parametrize("kind", [pa.string(), pa.int64()])
def test_the_release_of_an_empty_first_night_equals_that_of_one_user(tmp_path, kind):
    """Names and types of columns are recorded even if no user had an item."""
    found = []
    for number, item in enumerate([[], [None], ["7"]]):
        table = pa.table({"who": pa.array(range(len(item)), pa.int64()), "what": pa.array(item).cast(kind)})
        series = vp.Items().series(tmp_path / str(number), vp.Budget(1, 1e-8), nights=2)
        series.run(vp.read(table, user="who", items="what"), night=1).save(tmp_path / f"r{number}")
        saved = json.loads((tmp_path / f"r{number}" / "release.json").read_text())
        found.append((saved["keys"], saved["token_source"]))
    assert found[0][0][0]["name"] == "what"
    assert found == [found[0]] * 3
