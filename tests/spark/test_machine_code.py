"""Tests that the files in the kernel cache of workers are complete, never change, and belong to the current user."""

import json
import os
import subprocess
import sys

import pytest

from voxpop.kernels._kept import is_ours

COMPILE = """
import json, os
from importlib import import_module
from voxpop.engine.spark import worker
os.environ["VOXPOP_JIT_CACHE"] = "0"
worker.keep_machine_code()
kernels = {
    "pairs.move_down": "int32[::1], int64, int64, int64",
    "group.mark_used": "int32[::1], uint8[::1]",
    "pairs.table_of": "int64[::1],",
    "weigh.keep_undecided": "int32[::1], int64[::1], uint64[::1], int64[::1], uint8[::1]",
}
found = []
for name, types in kernels.items():
    file, kernel = name.split(".")
    found.append(getattr(import_module(f"voxpop.kernels.{file}"), kernel))
    found[-1].compile(f"({types})")
read = sum(sum(kernel.stats.cache_hits.values()) for kernel in found)
print(json.dumps([read, sum(len(kernel.signatures) for kernel in found)]))
"""
COUNT = 4
"""The number of compiled kernels. They compile quickly, and any kernels are sufficient for the tests."""
pytestmark = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="kernels are not compiled")


def compiling(home, **more):
    """Start a process that compiles the kernels, with a separate folder for caches."""
    env = {**os.environ, "XDG_CACHE_HOME": str(home), **more}
    return subprocess.Popen([sys.executable, "-c", COMPILE], stdout=subprocess.PIPE, text=True, env=env)


def ended(process):
    """Wait for a process, and return the numbers of kernels that it read from the cache and that it has in total."""
    out, _ = process.communicate()
    assert process.returncode == 0
    return json.loads(out)


def files_in(home):
    """Return the folder of the kernels and the contents of its files."""
    (folder,) = (home / "voxpop").iterdir()
    return folder, {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_machine_code_is_compiled_once_and_then_read(tmp_path):
    """A later process reads all files and changes no file."""
    assert ended(compiling(tmp_path))[1] == COUNT
    folder, before = files_in(tmp_path)
    assert len(before) >= COUNT
    assert is_ours(folder)
    assert ended(compiling(tmp_path)) == [COUNT, COUNT]
    assert files_in(tmp_path) == (folder, before)


def test_several_processes_can_write_at_the_same_time(tmp_path):
    """Each file is complete. A later process reads all files and changes no file."""
    for process in [compiling(tmp_path) for _ in range(3)]:
        assert ended(process)[1] == COUNT
    folder, before = files_in(tmp_path)
    assert len(before) >= COUNT
    assert not [path for path in before if "." in path.name.rpartition("-")[2]], "unfinished"
    assert ended(compiling(tmp_path)) == [COUNT, COUNT]
    assert files_in(tmp_path) == (folder, before)


def test_damaged_machine_code_is_compiled_again(tmp_path):
    """Files that are truncated, have a changed bit or contain no code are written again."""
    ended(compiling(tmp_path))
    _, files = files_in(tmp_path)
    assert len(files) >= 4
    for number, (path, content) in enumerate(files.items()):
        changed = bytes([content[-1] ^ 1])
        path.write_bytes((b"no code", content[:-9], content[:-1] + changed, b"")[number % 4])
    assert ended(compiling(tmp_path)) == [0, COUNT]
    assert files_in(tmp_path)[1].keys() == files.keys()
    assert ended(compiling(tmp_path)) == [COUNT, COUNT]


def test_a_temporary_folder_is_used_without_a_writable_cache_folder(tmp_path):
    """If other users have write access to the temporary folder, no folder is used."""
    (tmp_path / "file").touch()
    (tmp_path / "tmp").mkdir()
    elsewhere = {"TMPDIR": str(tmp_path / "tmp")}
    assert ended(compiling(tmp_path / "file", **elsewhere)) == [0, COUNT]
    assert ended(compiling(tmp_path / "file", **elsewhere)) == [COUNT, COUNT]
    (folder,) = (tmp_path / "tmp").iterdir()
    folder.chmod(0o777)
    assert ended(compiling(tmp_path / "file", **elsewhere)) == [0, COUNT]


def test_folders_to_which_other_users_can_write_are_not_read(tmp_path):
    """Missing folders and links are not read, either."""
    assert not is_ours(tmp_path / "none")
    tmp_path.chmod(0o777)
    assert not is_ours(tmp_path)
    tmp_path.chmod(0o755)
    assert is_ours(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path)
    assert not is_ours(tmp_path / "link")
