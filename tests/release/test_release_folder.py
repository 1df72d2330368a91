"""Tests of `replace_folder`. Tests that either the old or the new folder is complete after a crash at any moment."""

import os
import shutil
import subprocess
import sys
import textwrap
from contextlib import suppress

import pytest

import voxpop as vp
from voxpop.errors import ReleaseError
from voxpop.files import folder
from voxpop.files.folder import folder_to_read, replace_folder

OLD, NEW = {"a": b"old", "b": b"old"}, {"a": b"new", "b": b"new"}


class Crash(BaseException):
    """Simulates the end of the process."""


def contents(path):
    source = folder_to_read(path)
    return {file.name: file.read_bytes() for file in source.iterdir()} if source.exists() else None


@pytest.fixture(params=["exchange", "by turns"])
def system(request, monkeypatch):
    """Run the test on a system that can exchange folders, and on a simulated system that cannot."""
    if request.param == "by turns":
        monkeypatch.setattr(folder, "exchange", lambda first, second: False)
    return request.param


class Breaker:
    """Counts the calls that change the disk, and makes one of them fail."""

    def __init__(self, monkeypatch, at, failure, *, also_after):
        self.calls, self.at, self.failure, self.also_after = 0, at, failure, also_after
        for owner, name in ((os, "mkdir"), (os, "fsync"), (os, "rename"), (folder, "exchange"), (shutil, "rmtree")):
            monkeypatch.setattr(owner, name, self.wrap(getattr(owner, name)))

    def wrap(self, plain):
        def call(*arguments, **options):
            self.calls += 1
            dead = self.calls > self.at and self.also_after
            if self.calls == self.at or dead:
                raise self.failure
            return plain(*arguments, **options)

        return call


def run_broken(target, at, failure, *, also_after):
    """Replace `target` with NEW while the call with number `at` fails, and return whether that call occurred."""
    with pytest.MonkeyPatch.context() as patch:
        breaker = Breaker(patch, at, failure, also_after=also_after)
        with suppress(Crash, OSError):
            replace_folder(target, NEW)
        return breaker.calls >= at


@pytest.mark.parametrize("before", [None, OLD], ids=["first save", "replacement"])
def test_a_crash_at_any_step_leaves_the_old_or_the_new_files(tmp_path, system, before):
    """If the process ends at any step, the old or new folder is complete, and the next save succeeds."""
    for at in range(1, 100):
        target = tmp_path / str(at) / "words"
        if before:
            replace_folder(target, before)
        happened = run_broken(target, at, Crash(), also_after=True)
        assert contents(target) in ((before, NEW) if happened else (NEW,))
        replace_folder(target, NEW)
        assert contents(target) == NEW
        assert os.listdir(target.parent) == ["words"]
        if not happened:
            break
    assert at > 5


@pytest.mark.parametrize("before", [None, OLD], ids=["first save", "replacement"])
def test_an_error_at_any_step_leaves_the_old_or_the_new_files(tmp_path, system, before):
    """If a step fails and the process continues, the old or new folder is complete."""
    for at in range(1, 100):
        target = tmp_path / str(at) / "words"
        if before:
            replace_folder(target, before)
        happened = run_broken(target, at, OSError(28, "No space left on device"), also_after=False)
        assert contents(target) in ((before, NEW) if happened else (NEW,))
        replace_folder(target, NEW)
        assert os.listdir(target.parent) == ["words"]
        if not happened:
            break
    assert at > 5


def test_a_failed_save_is_an_error_and_changes_nothing(words, release_of, tmp_path, monkeypatch):
    """A full disk raises `ReleaseError`, and the earlier release remains."""
    words.save(tmp_path / "words")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ReleaseError, match="No space left on device"):
        release_of("oat").save(tmp_path / "words", overwrite=True)
    assert vp.load(tmp_path / "words") == words
    assert os.listdir(tmp_path) == ["words"]


def test_a_displaced_release_can_be_loaded(words, tmp_path):
    """If a system that cannot exchange folders crashes between two renames, the old release can still be loaded."""
    words.save(tmp_path / "words")
    os.rename(tmp_path / "words", tmp_path / ".words.voxpop-old")
    assert vp.load(tmp_path / "words") == words
    words.save(tmp_path / "words")
    assert os.listdir(tmp_path) == ["words"]


def test_two_writers_do_not_interfere_with_each_other(tmp_path, monkeypatch):
    """If a second writer finishes while the first is writing, the folder contains the files of the last writer."""
    target, plain = tmp_path / "words", folder._write

    def write_slowly(fresh, files):
        plain(fresh, files)
        if files is OLD:
            replace_folder(target, NEW)

    monkeypatch.setattr(folder, "_write", write_slowly)
    replace_folder(target, OLD)
    assert contents(target) == OLD
    assert os.listdir(tmp_path) == ["words"]


def test_names_of_folders_are_not_interpreted_as_patterns(tmp_path):
    """Only temporary folders with the same name are removed, even if the name contains pattern characters."""
    (tmp_path / ".b.voxpop-new-1").mkdir()
    replace_folder(tmp_path / "[ab]*", NEW)
    assert sorted(os.listdir(tmp_path)) == [".b.voxpop-new-1", "[ab]*"]


KILLED = """
    import sys
    from pathlib import Path
    from voxpop.files.folder import replace_folder
    target = Path(sys.argv[1])
    print("ready", flush=True)
    for turn in range(10**9):
        replace_folder(target, {name: bytes([turn % 251]) * 5000 for name in "ab"})
"""


def test_a_killed_writer_leaves_a_complete_folder(tmp_path):
    """A writer is killed 20 times, after different delays. The folder is complete or does not exist yet."""
    target = tmp_path / "words"
    for turn in range(20):
        process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(KILLED), str(target)], stdout=subprocess.PIPE)
        with process:
            assert process.stdout.readline() == b"ready\n"
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.003 + 0.0017 * turn)
            process.kill()
        found = contents(target)
        assert found is None or (len(found) == 2 and found["a"] == found["b"])
    replace_folder(target, NEW)
    assert os.listdir(tmp_path) == ["words"]
