"""Tests that runs are charged and published once for any number of attempts, and that a full disk loses no result."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import voxpop as vp
from ledger import stopping
from support.plans import planned
from voxpop.errors import BudgetError, InputError, LedgerError, ReleaseError
from voxpop.ledger import runs, storage
from voxpop.ledger.ledger import LedgerAccount

ONCE = stopping.ONCE


@pytest.fixture
def account(tmp_path):
    """Return an account with an unspent budget."""
    return vp.Ledger(tmp_path / "team.ledger").open("posts", vp.Budget(3, 1e-6), create=True)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Return a home folder, which stores results if there is no space at their target."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def interrupt(_):
    """Raise KeyboardInterrupt, as a signal that ends a release does."""
    raise KeyboardInterrupt


def interrupted(run, guarantee=ONCE):
    """Start a run that a signal interrupts."""
    with pytest.raises(KeyboardInterrupt):
        planned(guarantee, interrupt).release(None, ledger=run)


def outcomes(tmp_path, *variants):
    """Return the outcomes of each variant after a job was killed at each step and repeated."""
    tests = Path(__file__).resolve().parent.parent
    call = [sys.executable, "-m", "ledger.stopping", str(tmp_path), *variants]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
    done = subprocess.run(call, cwd=tests, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.jit
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("variant", ["none", "not saved"])
def test_a_run_killed_at_every_step_can_be_repeated(tmp_path, variant, record_property):
    """A job that is killed at any step and repeated has one charge, at most one release and no other files."""
    found = outcomes(tmp_path, variant)
    saving = variant == "none"
    assert len(found) > (40 if saving else 10)
    for each in found:
        assert (each["charges"], each["states"], each["left"]) == (1, ["finished"], [])
        # A release that its caller saves is lost if the caller is killed before saving.
        assert len(each["published"]) == 1 or (not saving and not each["published"])
        assert each["saved"] is saving
    assert found[-1]["published"]
    record_property("figure", f"{len(found)} steps at which a run is killed")


@pytest.mark.slow
@pytest.mark.jit
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_broken_orders_are_detected(tmp_path):
    """Each broken order loses a result or makes two releases visible for one charge."""
    last = {each["variant"]: each for each in outcomes(tmp_path, *stopping.BROKEN)}
    assert set(last) == set(stopping.BROKEN)
    for variant, harm in last.items():
        assert harm["charges"] == 1
        assert not harm["saved"] if variant == "finish first" else len(harm["published"]) == 2


def test_an_interrupted_run_is_charged_once(account, tmp_path):
    """An interrupted run is charged once.

    The repeated run can use other data, because no result was seen. Attempts are recorded.
    """
    for number in range(3):
        interrupted(account.run("monday", save_to=tmp_path / "words"))
        (entry,) = account.entries
        assert (entry.label, entry.state, entry.attempt) == ("monday", "charged", number + 1)
    run = account.run(" monday ", save_to=tmp_path / "words")
    assert not run.finished
    words = planned(ONCE, stopping.release).release("other data", ledger=run)
    assert run.finished
    assert vp.load(tmp_path / "words").id == words.id == account.entries[0].release
    assert (
        str(words.metadata.ledger) == str(account.entries[0]) == 'entry 1 of "posts", budget (3, 1e-06), run "monday"'
    )
    assert len(account.entries) == 1
    assert account.entry("monday") == account.entries[0]
    assert account.entry("tuesday") is None


def test_a_finished_run_never_runs_again(account):
    """A finished run does not run again, because its saved or returned result could have been seen."""
    plan = planned(ONCE, stopping.release)
    plan.release(None, ledger=account.run("monday"))
    with pytest.raises(LedgerError, match=r'Run "monday" of "posts" is finished, because its result was returned'):
        planned(ONCE, interrupt).release(None, ledger=account.run("monday"))
    assert len(account.entries) == 1
    plan.release(None, ledger=account.run("tuesday"))
    assert [entry.label for entry in account.entries] == ["monday", "tuesday"]


def test_an_error_of_the_release_ends_its_run(account, tmp_path):
    """A run that fails with an error cannot be repeated.

    The error can depend on the noise, so repeating a run until no error occurs would be a selection among releases.
    """

    def fail(_):
        raise MemoryError

    with pytest.raises(MemoryError):
        planned(ONCE, fail).release(None, ledger=account.run("monday", save_to=tmp_path / "words"))
    with pytest.raises(LedgerError, match="failed with an error, whose reason can depend on the noise"):
        planned(ONCE, stopping.release).release(None, ledger=account.run("monday"))
    assert [entry.state for entry in account.entries] == ["failed"]


@pytest.mark.parametrize("other", [vp.Guarantee(2, 1e-8), vp.Guarantee(1, 1e-9), vp.Guarantee(0.5, 1e-8)])
def test_a_repeated_run_with_another_budget_is_rejected(account, other):
    """A repeated run with another guarantee or mechanism is another release, and is rejected."""
    interrupted(account.run("monday"))
    with pytest.raises(InputError, match=r"was charged for test with \(1, 1e-08\)-DP"):
        planned(other, interrupt).release(None, ledger=account.run("monday"))
    with pytest.raises(InputError, match="was charged for test"):
        account.charge(ONCE, "sums", "monday")
    assert [entry.attempt for entry in account.entries] == [1]


def test_two_simultaneous_runs_publish_one_result(account, tmp_path):
    """If two attempts run concurrently, the attempt that started last finishes.

    The other result is discarded unseen.
    """
    folder, inner = tmp_path / "words", []

    def start_another(_):
        inner.append(planned(ONCE, stopping.release).release(None, ledger=account.run("monday", save_to=folder)))
        return stopping.release()

    with pytest.raises(LedgerError, match=r"started entry 1 .* again, so this result was discarded"):
        planned(ONCE, start_another).release(None, ledger=account.run("monday", save_to=folder))
    assert vp.load(folder).id == inner[0].id
    assert len(account.entries) == 1
    assert sorted(each.name for each in tmp_path.iterdir() if "kept" in each.name) == []


def test_the_first_of_two_attempts_cannot_finish(account):
    """The first of two attempts cannot finish, even if it ends before the second."""
    first, second = (account.run("monday").charge(ONCE, "test") for _ in range(2))
    with pytest.raises(LedgerError, match="again"):
        account.finish(first)
    with pytest.raises(LedgerError, match="again"):
        account.fail(first)
    account.finish(second)
    with pytest.raises(LedgerError, match="again"):
        account.finish(second)


def test_two_simultaneous_runs_without_the_check_publish_two_results(account, monkeypatch):
    """In a deliberately broken variant without the check, an attempt finishes although another attempt was started."""

    def end(self, entry, **ended):
        with storage.changing(self.path) as datasets:
            self._put(datasets, replace(entry, **ended))

    def start_another(_):
        inner.append(plan.release(None, ledger=account.run("monday")))
        return stopping.release()

    monkeypatch.setattr(LedgerAccount, "_end", end)
    inner, plan = [], planned(ONCE, stopping.release)
    outer = planned(ONCE, start_another).release(None, ledger=account.run("monday"))
    assert outer.id != inner[0].id
    assert len(account.entries) == 1


def test_labels_must_be_one_nonempty_line(account):
    """A label has one line and is not empty."""
    for label in ("", " ", 3, "a\nb", "x" * 201):
        with pytest.raises(InputError, match="label"):
            account.run(label)
    with pytest.raises(InputError, match="label"):
        account.charge(ONCE, "sums", "a\nb")
    account.charge(ONCE, "sums", "a  b")
    assert account.entries[0].label == "a b"


def test_counts_are_saved_with_their_release(account, tmp_path):
    """The kept copy contains the counts and their release. A ranking that was saved in the meantime is kept."""
    import polars as pl

    corpus = vp.read(pl.DataFrame({"who": range(500), "what": ["tea", "milk"] * 250}), user="who", items="what")
    words = vp.Items(max_items_per_user=2).release(corpus, vp.Budget(1, 1e-8))
    words.save(tmp_path / "words")
    words.top(corpus, vp.Budget(0.5, 1e-8), k=1, ledger=account.run("top", save_to=tmp_path / "words"))
    words.count(corpus, vp.Budget(0.5, 1e-8), ledger=account.run("counts", save_to=tmp_path / "words"))
    assert len(vp.load(tmp_path / "words", vp.Counts)) == 2
    assert len(vp.load(tmp_path / "words", vp.Top)) == 1
    with pytest.raises(ReleaseError, match="already contains"):
        words.count(corpus, vp.Budget(0.5, 1e-8), ledger=account.run("again", save_to=tmp_path / "words"))
    assert [entry.release for entry in account.entries] == [words.id, words.id]


def test_several_data_sets_are_not_saved_to_one_folder(account, tmp_path):
    """A run of several data sets with `save_to` is rejected, and can be repeated without the folder."""
    plan = planned(ONCE, lambda _: {"a": stopping.release(), "b": stopping.release()})
    with pytest.raises(InputError, match="Remove `save_to`"):
        plan.release(None, ledger=account.run("monday", save_to=tmp_path / "words"))
    both = plan.release(None, ledger=account.run("monday"))
    assert account.entries[0].release == ", ".join(each.id for each in both.values())


@pytest.fixture
def disk(tmp_path):
    """Return a disk of 80 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    call = ["mount", "-t", "tmpfs", "-o", "size=80m", "tmpfs", str(folder)]
    if sys.platform != "linux" or subprocess.run(call, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(disk):
    """Write a file until the disk is full."""
    with open(disk / "filler", "wb") as file:
        while True:
            try:
                file.write(bytes(1 << 16))
                file.flush()
            except OSError:
                return


def test_space_is_checked_before_the_charge(account, disk):
    """With less than 64 MiB of free space, no release runs and no charge is made."""
    fill(disk)
    with pytest.raises(ReleaseError, match=r"less than 64 MiB of free space\. Nothing ran and nothing was charged"):
        planned(ONCE, interrupt).release(None, ledger=account.run("monday", save_to=disk / "words"))
    assert account.entries == []


def test_a_full_disk_loses_no_result(account, disk, home, capsys):
    """If the disk fills up, the result is kept in a folder that only the owner can read, and can be saved later."""
    from voxpop.cli import main

    def release(_):
        fill(disk)
        return stopping.release()

    with pytest.raises(ReleaseError, match=r"It is in .*voxpop resume") as found:
        planned(ONCE, release).release(None, ledger=account.run("monday", save_to=disk / "words"))
    (entry,) = account.entries
    kept = Path(entry.kept)
    assert entry.state == "finished"
    assert f"voxpop resume {kept} -o FOLDER" in str(found.value)
    assert kept.is_relative_to(home)
    assert kept.parent.stat().st_mode & 0o777 == 0o700
    assert not (disk / "words").exists()
    assert main(["resume", str(kept), "-o", str(disk / "words")]) == 2
    (disk / "filler").unlink()
    assert main(["resume", str(kept), "-o", str(disk / "words")]) == 0
    capsys.readouterr()
    assert vp.load(disk / "words").id == entry.release
    assert not kept.parent.exists()


def test_a_repeated_job_saves_the_kept_result(account, disk, home):
    """A repeated job saves the kept result as soon as there is space."""

    def release(_):
        fill(disk)
        return stopping.release()

    with pytest.raises(ReleaseError, match="It is in"):
        planned(ONCE, release).release(None, ledger=account.run("monday", save_to=disk / "words"))
    with pytest.raises(ReleaseError, match="It is in"):
        account.run("monday", save_to=disk / "words")
    (disk / "filler").unlink()
    assert account.run("monday", save_to=disk / "words").finished
    assert vp.load(disk / "words").id == account.entries[0].release


def test_a_result_is_lost_if_no_disk_can_store_it(account, tmp_path, monkeypatch):
    """The size of a result can depend on the noise, so a run does not start again if its result cannot be kept."""

    def full(folder, **_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(vp.Release, "save", lambda *_, **__: full(None))
    with pytest.raises(ReleaseError, match="No other folder could store the result, so it is lost"):
        planned(ONCE, stopping.release).release(None, ledger=account.run("monday", save_to=tmp_path / "words"))
    assert [entry.state for entry in account.entries] == ["failed"]
    assert sorted(each.name for each in tmp_path.iterdir() if "kept" in each.name) == []


def test_an_output_that_appears_during_the_run_is_kept(account, tmp_path):
    """An output that appears in the meantime is not replaced, and the new result is kept elsewhere.

    `voxpop resume` removes only kept results.
    """

    def release(_):
        stopping.release().save(tmp_path / "words")
        return stopping.release()

    with pytest.raises(ReleaseError, match=r"already contains a release.* It is in"):
        planned(ONCE, release).release(None, ledger=account.run("monday", save_to=tmp_path / "words"))
    (entry,) = account.entries
    runs.publish(Path(entry.kept), tmp_path / "others")
    assert vp.load(tmp_path / "others").id == entry.release
    with pytest.raises(ReleaseError, match="is not a kept result"):
        runs.publish(tmp_path / "words", tmp_path / "more")
    assert (tmp_path / "words").exists()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that even root cannot write to")
def test_an_unwritable_folder_is_rejected_before_the_run(account):
    """A folder that cannot be written to is rejected before a charge."""
    with pytest.raises(ReleaseError, match="/proc"):
        planned(ONCE, interrupt).release(None, ledger=account.run("monday", save_to="/proc/nowhere/words"))
    assert account.entries == []


@pytest.mark.slow
def test_the_largest_epsilon_fits_and_a_larger_epsilon_does_not(account):
    """Before and after charges, `largest_epsilon` returns an epsilon that fits, and a larger epsilon does not fit."""
    for mechanism in (vp.Items(), vp.NGrams(), vp.HeavyHitters(max_length=2), vp.Sequences(alphabet=["a"])):
        delta = 0.0 if isinstance(mechanism, vp.Sequences) else 1e-8
        most = account.largest_epsilon(mechanism, delta)
        assert account.fits(mechanism.plan(vp.Budget(most, delta)).guarantee)
        assert not account.fits(mechanism.plan(vp.Budget(round(most + 0.01, 2), delta)).guarantee)
    account.charge(vp.Guarantee(2.5, 1e-8), "sums")
    assert account.largest_epsilon(vp.Items(), 1e-8) == 0.5
    assert account.largest_epsilon(vp.Items(), 9e-7) == 0
    with pytest.raises(BudgetError, match=r"2\.5 of 3 spent, 0\.5 left, 1 requested.*--for items --delta 1e-08"):
        account.check(ONCE)


def test_a_reserve_of_too_many_releases_is_detected(account):
    """A forged number of releases is rejected before it fills the memory, even with a correct checksum."""
    account.charge(ONCE, "x")
    with storage.changing(account.path) as datasets:
        datasets["posts"]["entries"][0]["times"] = 2**40
    with pytest.raises(LedgerError, match="no readable account"):
        _ = account.spent


@pytest.mark.parametrize("mechanism", [5, None, b"sums", "a\ud800"])
def test_a_mechanism_that_is_not_a_string_is_rejected(account, mechanism):
    """SQLite converts a number in a text column to text, so the checksum would always differ."""
    with pytest.raises(InputError, match="must be a string"):
        account.charge(ONCE, mechanism)
    assert account.entries == []
    with pytest.raises(InputError, match="must be text"):
        vp.Ledger(account.path).open("a\ud800", vp.Budget(1, 0), create=True)
    with pytest.raises(InputError, match="must be the plan of a release"):
        account.reserve(vp.Budget(1, 0), 2)


@pytest.mark.parametrize("name", ["loop", "a\0b", "x" * 300])
def test_a_path_that_cannot_be_used_is_rejected(tmp_path, name):
    """A loop of links, a null character, or a name that is too long raises an error of the ledger."""
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(LedgerError, match="cannot be used"):
        vp.Ledger(tmp_path / name)


def test_a_charge_after_the_whole_budget_is_rejected(account):
    """The message explains that the first charge used the whole budget, and does not report a requested amount of 0."""
    account.charge(vp.Guarantee(account.budget.epsilon, account.budget.delta), "all of it")
    with pytest.raises(BudgetError, match=r"first charge .* leaves no room") as refused:
        account.charge(vp.Guarantee(0.001, 0), "x")
    assert "0 requested" not in str(refused.value)


def test_only_reserves_pay_for_later_releases(account):
    """An ordinary entry has no remaining releases."""
    assert account.remaining(account.charge(ONCE, "sums")) == 0


def test_a_folder_without_a_name_in_utf_8_is_rejected_before_the_charge(account, tmp_path):
    """Such a folder is rejected, because the ledger records the name of the folder of a kept result."""
    run = account.run("odd", save_to=tmp_path / os.fsdecode(b"w\xff"))
    with pytest.raises(vp.errors.ReleaseError, match="UTF-8"):
        planned(ONCE, stopping.release).release(None, ledger=run)
    assert account.entries == []
