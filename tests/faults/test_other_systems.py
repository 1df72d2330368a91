"""Simulations of macOS and Windows that remove functions which these systems lack.

The simulations do not prove that voxpop works on these systems.

macOS has no `renameat2` to exchange folders, and its allocator accepts no advice. Windows has no `fcntl`, cannot open
folders or rename onto an existing path, gives no advice on mapped pages, and can prevent the removal of a file that is
being read.
"""

import builtins
import ctypes
import errno
import os
import sys
from types import SimpleNamespace

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import voxpop as vp
from voxpop.files import folder
from voxpop.reading.limited import memory
from voxpop.reading.limited import memory as pages
from voxpop.release.result import StoredPlan


class Elsewhere:
    """A module of this system with some functions replaced by those of another system."""

    def __init__(self, module, **other):
        self.__dict__.update(_module=module, **other)

    def __getattr__(self, name):
        return getattr(self._module, name)


def opens_no_folder(path, flags, *rest):
    if os.path.isdir(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))
    return os.open(path, flags, *rest)


def renames_onto_nothing(source, target):
    if os.path.exists(target):
        raise FileExistsError(errno.EEXIST, "Cannot create a file when that file already exists", str(target))
    os.rename(source, target)


def macos(monkeypatch):
    """Remove the exchange of folders and the advice to the allocator."""
    monkeypatch.setattr(folder, "sys", SimpleNamespace(platform="darwin"))
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: SimpleNamespace())


def windows(monkeypatch):
    """Remove functions that only POSIX has."""
    there = Elsewhere(os, name="nt", open=opens_no_folder, rename=renames_onto_nothing)
    monkeypatch.setattr(folder, "sys", SimpleNamespace(platform="win32"))
    monkeypatch.setattr(folder, "os", there)
    monkeypatch.setattr(pages, "os", there)
    monkeypatch.setattr(memory, "os", there)
    monkeypatch.setattr(pages, "mmap", Elsewhere(pages.mmap))
    monkeypatch.delattr(pages.mmap._module, "MADV_DONTNEED")
    monkeypatch.setitem(sys.modules, "fcntl", None)

    def no_libc(name, *_, **__):
        if name is None:
            raise TypeError("bad argument type for built-in operation")  # This is the error of CDLL(None) on Windows.
        return builtins.object()

    monkeypatch.setattr(ctypes, "CDLL", no_libc)


@pytest.fixture(params=[macos, windows], ids=["macOS", "Windows"])
def system(request, monkeypatch):
    """Simulate another system."""
    request.param(monkeypatch)


def words(*items):
    """Return a release of these items."""
    return vp.Release.from_items(pa.array(sorted(items)), StoredPlan({"sigma": 1.0}), vp.Guarantee(4, 1e-7))


def test_folders_cannot_be_exchanged_in_the_simulation(system, tmp_path):
    """If folders could be exchanged in the simulation, the other tests would show nothing about these systems."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    assert not folder.exchange(tmp_path / "one", tmp_path / "two")


def test_releases_are_saved_replaced_and_loaded(system, tmp_path):
    """A release can be saved to a new folder, over another release and over an empty folder. No other files remain."""
    target = tmp_path / "words"
    words("tea").save(target)
    words("milk").save(target, overwrite=True)
    assert list(vp.load(target)) == ["milk"]
    (tmp_path / "empty").mkdir()
    words("oats").save(tmp_path / "empty")
    assert list(vp.load(tmp_path / "empty")) == ["oats"]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["empty", "words"]
    with pytest.raises(vp.errors.ReleaseError, match="already contains"):
        words("rye").save(target)


def test_a_crash_between_the_two_steps_of_a_save_is_repaired(system, tmp_path):
    """If a crash displaces the old release, `load` finds it, and the next save succeeds."""
    target = tmp_path / "words"
    words("tea").save(target)
    os.rename(target, tmp_path / ".words.voxpop-old")
    assert list(vp.load(target)) == ["tea"]
    words("milk").save(target, overwrite=True)
    assert list(vp.load(target)) == ["milk"]
    assert [each.name for each in tmp_path.iterdir()] == ["words"]


@pytest.mark.jit
def test_a_corpus_is_read_within_a_memory_limit(system, tmp_path):
    """Work files, mapped pages and the allocator work without the missing functions. The release does not change."""
    rows = 40_000
    table = pl.DataFrame(
        {"who": np.arange(rows) % 5000, "what": [f"word{each % 700} tea milk" for each in range(rows)]}
    )
    settings = vp.Items(max_items_per_user=10)
    whole = settings.release(vp.read(table, user="who", text="what"), vp.Budget(4, 1e-7), seed=1)
    part = vp.read(table, user="who", text="what", options=vp.ReadOptions(memory="1GiB", work_folder=tmp_path))
    assert settings.release(part, vp.Budget(4, 1e-7), seed=1) == whole
    part.save(tmp_path / "kept")
    assert settings.release(vp.load_corpus(tmp_path / "kept"), vp.Budget(4, 1e-7), seed=1) == whole


def test_a_ledger_is_charged_without_the_missing_functions(system, tmp_path):
    """The ledger is an SQLite file, so a charge needs no function that these systems lack."""
    corpus = vp.read(pl.DataFrame({"who": range(500), "what": ["tea"] * 500}), user="who", items="what")
    account = vp.Ledger(tmp_path / "team.ledger").open("drinks", vp.Budget(8, 1e-6), create=True)
    for _ in range(2):
        vp.Items().release(corpus, vp.Budget(1, 1e-8), ledger=account)
    assert [entry.state for entry in account.entries] == ["finished", "finished"]
