"""What workers are forked from: no threads, no files, and every kernel of a walk with the types it is called with."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import json, os, sys
from voxpop.spark import daemon  # before pyspark, as Spark starts it
import pyspark.daemon
seen = {}

def manager():
    from pathlib import Path
    seen["threads"] = len(os.listdir("/proc/self/task")) if Path("/proc/self/task").exists() else 1
    seen["modules"] = sorted({"pyarrow", "polars", "pandas"} & set(sys.modules))
    seen["cached"] = [name for name in daemon.KERNELS if type(daemon.kernel_of(name)._cache).__name__ != "NullCache"]

pyspark.daemon.manager = manager
daemon.main()
before = {name: len(daemon.kernel_of(name).signatures) for name in daemon.KERNELS}

import pyarrow as pa
from placed import PlacedLevels
from voxpop.ngrams.candidates import Candidates
from voxpop.ngrams.grams import Grams
from voxpop.privacy.secret import Secret
from voxpop.spark import tasks
from voxpop.union.additive import Weighted
from voxpop.union.sharing import BoundShares, Setting
import numpy as np

rows = pa.record_batch({"u": pa.array(range(5)), "c": pa.array([["a", "b", "c", "d", "a", "b"]] * 5)})
reading = {"user": "u", "kind": "sequence", "column": "c", "tokenizer": "words", "sentences": False}
levels, shares = PlacedLevels([list(tasks.encode([rows], **reading))]), BoundShares(Weighted(), Setting(2, 2, 40, 0))
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


@pytest.fixture(scope="module")
def seen():
    """Return what a daemon held before its first fork, and what a walk compiled after it."""
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        pytest.skip("kernels are not compiled")
    here = Path(__file__).parent
    env = {
        name: value for name, value in os.environ.items() if name not in ("OPENBLAS_NUM_THREADS", "VOXPOP_JIT_CACHE")
    }
    env |= {"PYTHONPATH": os.pathsep.join(str(each) for each in (here, here.parent))}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_nothing_is_forked_that_has_threads(seen):
    """A lock that another thread holds would stay locked in the worker."""
    assert seen["threads"] == 1
    assert seen["modules"] == []


def test_no_file_of_compiled_code_is_read_or_written(seen):
    """Workers get compiled code as memory."""
    assert seen["cached"] == []


def test_a_walk_compiles_none_of_these_kernels_again(seen):
    """The types are those of the calls; otherwise the daemon would compile in vain."""
    assert seen["grams"] > 0
    assert seen["again"] == []
