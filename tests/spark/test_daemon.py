"""What workers are forked from: no threads, and every kernel of a walk with the types it is called with."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from voxpop.spark import daemon, machine_code

SCRIPT = """
import json, os, sys
from voxpop.spark import daemon  # before pyspark, as Spark starts it
import pyspark.daemon
seen = {}

def manager():
    from pathlib import Path
    seen["threads"] = len(os.listdir("/proc/self/task")) if Path("/proc/self/task").exists() else 1
    seen["modules"] = sorted({"pyarrow", "polars", "pandas"} & set(sys.modules))
    seen["caches"] = sorted({type(daemon.kernel_of(name)._cache).__name__ for name in daemon.KERNELS})

pyspark.daemon.manager = manager
daemon.main()
before = {name: len(daemon.kernel_of(name).signatures) for name in daemon.KERNELS}

import pyarrow as pa
from placed import PlacedLevels
from voxpop.ngrams.candidates import Candidates
from voxpop.ngrams.grams import Grams
from voxpop.privacy.secret import Secret
from voxpop.spark import tasks
from voxpop.version import installed_version
from voxpop.weighting.additive import Weighted
from voxpop.weighting.rule import CalibratedRule, RuleSetting
import numpy as np

rows = pa.record_batch({"u": pa.array(range(5)), "c": pa.array([["a", "b", "c", "d", "a", "b"]] * 5)})
wanted = {"users": ["u"], "kind": "sequence", "columns": ["c"]}
levels = PlacedLevels([list(tasks.encode([rows], wanted=wanted, version=installed_version()))])
shares = CalibratedRule(Weighted(), RuleSetting(2, 2, 40, 0))
words = sorted(levels.weigh(shares, 2, Secret.from_seed(1), "length 1"))
levels.keep(words)
grams = Grams.of_tokens(len(words))
for length in (2, 3):
    levels.extend(Candidates.all_valid(grams, len(words), single=False))
    names = np.array(sorted(levels.weigh(shares, 2, Secret.from_seed(1), f"length {length}")), np.int64)
    levels.keep(names)
    grams = grams.longer(names, single=False)
seen["grams"] = len(grams)
seen["again"] = [name for name in before if len(daemon.kernel_of(name).signatures) != before[name]]
print(json.dumps(seen))
"""


COMPILE = """
import json, sys
from voxpop.spark import daemon
if sys.argv[1:]:
    daemon.KERNELS = {name: daemon.KERNELS[name] for name in sys.argv[1:]}
daemon.compile_once()
kernels = [daemon.kernel_of(name) for name in daemon.KERNELS]
read = sum(sum(kernel.stats.cache_hits.values()) for kernel in kernels)
print(json.dumps([read, sum(len(kernel.signatures) for kernel in kernels)]))
"""
COUNT = len(daemon.KERNELS)
FEW = ("group.is_rising", "group.mark_used", "pairs.table_of", "pools.keep_undecided")
"""Kernels that are soon compiled: what becomes of a file does not depend on what is in it."""
pytestmark = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="kernels are not compiled")


def compiling(home, *kernels, **more):
    """Start a process that compiles some kernels, or all, with a folder for caches of its own."""
    env = {**os.environ, "XDG_CACHE_HOME": str(home), **more}
    env.pop("VOXPOP_JIT_CACHE", None)
    return subprocess.Popen([sys.executable, "-c", COMPILE, *kernels], stdout=subprocess.PIPE, text=True, env=env)


def ended(process):
    """Return how many kernels a process read, and how many it had in the end."""
    out, _ = process.communicate()
    assert process.returncode == 0
    return json.loads(out)


def files_in(home):
    """Return what is there, and the folder of kernels."""
    (folder,) = (home / "voxpop").iterdir()
    return folder, {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_machine_code_is_compiled_once_and_then_read(tmp_path):
    """Of every kernel: a later process reads them all and changes nothing."""
    assert ended(compiling(tmp_path))[1] == COUNT
    folder, before = files_in(tmp_path)
    assert len(before) >= COUNT
    assert machine_code.is_ours(folder)
    assert ended(compiling(tmp_path)) == [COUNT, COUNT]
    assert files_in(tmp_path) == (folder, before)


def test_several_may_write_at_once(tmp_path):
    """Each file whole; a later process reads them and changes nothing."""
    for process in [compiling(tmp_path, *FEW) for _ in range(3)]:
        assert ended(process)[1] == len(FEW)
    folder, before = files_in(tmp_path)
    assert len(before) >= len(FEW)
    assert not [path for path in before if "." in path.name.rpartition("-")[2]], "unfinished"
    assert ended(compiling(tmp_path, *FEW)) == [len(FEW), len(FEW)]
    assert files_in(tmp_path) == (folder, before)


def test_damaged_machine_code_is_compiled_anew(tmp_path):
    """Cut short, changed in one bit or no code at all: it is written again; nowhere to write means nothing is kept."""
    ended(compiling(tmp_path, *FEW))
    _, files = files_in(tmp_path)
    assert len(files) >= 4
    for number, (path, content) in enumerate(files.items()):
        changed = bytes([content[-1] ^ 1])
        path.write_bytes((b"no code", content[:-9], content[:-1] + changed, b"")[number % 4])
    assert ended(compiling(tmp_path, *FEW)) == [0, len(FEW)]
    assert files_in(tmp_path)[1].keys() == files.keys()
    assert ended(compiling(tmp_path, *FEW)) == [len(FEW), len(FEW)]


def test_nowhere_to_write_means_a_folder_for_temporary_files_or_none(tmp_path):
    """Executors have not always a home."""
    (tmp_path / "file").touch()
    (tmp_path / "tmp").mkdir()
    elsewhere = {"TMPDIR": str(tmp_path / "tmp")}
    assert ended(compiling(tmp_path / "file", *FEW, **elsewhere)) == [0, len(FEW)]
    assert ended(compiling(tmp_path / "file", *FEW, **elsewhere)) == [len(FEW), len(FEW)]
    (folder,) = (tmp_path / "tmp").iterdir()
    folder.chmod(0o777)
    assert ended(compiling(tmp_path / "file", *FEW, **elsewhere)) == [0, len(FEW)]


def test_folders_that_others_may_write_are_not_read(tmp_path):
    """Nor those that are not there, nor links to others."""
    assert not machine_code.is_ours(tmp_path / "none")
    tmp_path.chmod(0o777)
    assert not machine_code.is_ours(tmp_path)
    tmp_path.chmod(0o755)
    assert machine_code.is_ours(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path)
    assert not machine_code.is_ours(tmp_path / "link")


@pytest.fixture(scope="module")
def seen():
    """Return what a daemon held before its first fork, and what a walk compiled after it."""
    here = Path(__file__).parent
    env = {
        name: value for name, value in os.environ.items() if name not in ("OPENBLAS_NUM_THREADS", "VOXPOP_JIT_CACHE")
    }
    before = [path for path in [os.environ.get("PYTHONPATH")] if path]
    env |= {"PYTHONPATH": os.pathsep.join([str(here), str(here.parent), *before])}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_nothing_is_forked_that_has_threads(seen):
    """A lock that another thread holds would stay locked in the worker."""
    assert seen["threads"] == 1
    assert seen["modules"] == []


def test_kernels_have_files_that_never_change(seen):
    """None has numba's own cache, which is not for writers that meet."""
    assert seen["caches"] == ["OverloadFiles"]


def test_a_walk_compiles_none_of_these_kernels_again(seen):
    """The types are those of the calls; otherwise the daemon would compile in vain."""
    assert seen["grams"] > 0
    assert seen["again"] == []
