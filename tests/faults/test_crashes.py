"""Tests that a process that is killed at any moment leaves the old or the new result, and no private data."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import voxpop as vp
from faults import crashes
from support.look import load_engine

KILLS = int(os.environ.get("VOXPOP_KILLS", "5"))
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")]


class Server:
    """Start processes that have already imported all modules, and kill them."""

    def __init__(self, ready: Path) -> None:
        tests = Path(__file__).resolve().parent.parent
        call, pipe = [sys.executable, "-m", "faults.crashes"], subprocess.PIPE
        self._process = subprocess.Popen(call, cwd=tests, stdin=pipe, stdout=pipe, text=True)
        self._ready = ready
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def start(self, work: str, folder: Path) -> int:
        """Start a process, and return its process id when it has begun to work."""
        self._ready.unlink(missing_ok=True)
        print(work, folder, self._ready, sep="\t", file=self._process.stdin, flush=True)
        child = int(self._process.stdout.readline())
        wait_until(lambda: self._ready.exists())
        return child

    def kill(self, work: str, folder: Path, after: float) -> None:
        """Start a process, wait until it has worked for `after` seconds, and kill it with kill -9."""
        child = self.start(work, folder)
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
        wait_until(lambda: gone(child))

    def close(self) -> None:
        """Stop the server."""
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def gone(child: int) -> bool:
    """Return whether a process has ended."""
    try:
        os.kill(child, 0)
    except ProcessLookupError:
        return True
    return False


def wait_until(true: object) -> None:
    """Wait until a condition is true, for at most a minute."""
    until = time.monotonic() + 60
    while not true():
        assert time.monotonic() < until
        time.sleep(0.001)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Return a server that stops at the end of the test."""
    made = Server(tmp_path / "ready")
    yield made
    made.close()


def test_a_killed_save_leaves_the_old_or_the_new_release(server, tmp_path, record_property):
    """After kills at random times, the folder contains the old or the new release, and no other files remain.

    The process is killed five times, or fifty times with `make faults`.
    """
    moments, folder = random.Random(8), tmp_path / "out" / "r"
    wanted = [crashes.release_of(name) for name in crashes.RELEASES]
    wanted[0].save(folder)
    for _ in range(KILLS):
        server.kill("save_releases", folder, moments.uniform(0, 0.03))
        assert vp.load(folder) in wanted
    wanted[0].save(folder, overwrite=True)
    assert os.listdir(folder.parent) == ["r"]
    record_property("figure", f"{KILLS} kills while a release is saved")


def test_a_killed_save_leaves_the_old_or_the_new_corpus(server, tmp_path, record_property):
    """If a process is killed while it saves a corpus, the folder contains only the old or only the new corpus."""
    moments, folder = random.Random(9), tmp_path / "out" / "c"
    wanted = {name: crashes.corpus_of(name) for name in crashes.RELEASES}
    wanted["old"].save(folder)
    for _ in range(KILLS):
        server.kill("save_corpora", folder, moments.uniform(0, 0.03))
        loaded = load_engine(folder)
        assert any(loaded.vocabulary.equals(each.vocabulary) for each in wanted.values())
        assert loaded.tokens.size == wanted["old"].tokens.size
    wanted["old"].save(folder)
    assert os.listdir(folder.parent) == ["c"]
    record_property("figure", f"{KILLS} while a corpus is saved")


def test_a_killed_spill_leaves_no_files(server, tmp_path, record_property):
    """Work files have no names, so the work folder is empty after every kill."""
    moments = random.Random(10)
    (tmp_path / "work").mkdir()
    for _ in range(KILLS):
        server.kill("spill", tmp_path / "work", moments.uniform(0, 0.1))
        assert os.listdir(tmp_path / "work") == []
    record_property("figure", f"{KILLS} while work files are written")


def test_several_runs_leave_one_complete_release(server, tmp_path):
    """After several concurrent runs, the folder contains one complete release, and no other files remain."""
    folder = tmp_path / "out" / "r"
    runs = [server.start("crowd", folder) for _ in range(4)]
    for run in runs:
        wait_until(lambda run=run: gone(run))
    crashes.release_of("old").save(folder, overwrite=True)
    assert vp.load(folder) in [crashes.release_of(name) for name in crashes.RELEASES]
    assert os.listdir(folder.parent) == ["r"]
