"""The cache of machine code must notice edits of functions in other files that a kernel calls."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import voxpop

SOURCE = Path(voxpop.__file__).parent
CALLER = """
import numpy as np
from voxpop.kernels.sequences import draw_contexts
symbols, sizes = np.zeros(5, np.int32), np.zeros(1, np.int64)
tree = np.full(3, -1, np.int32), np.full(1, -1, np.int32)
draw_contexts(np.ones(1, np.uint64), 3, np.array([0.5, 1.0, 1.0]), tree, (1e9, 0.0), np.zeros(5), symbols, sizes)
stats = getattr(draw_contexts, "stats", None)
print(symbols.tolist(), sum(stats.cache_hits.values()) if stats else 0)
"""
"""Draw five symbols, each 0 or 1, and print them and the number of cache hits: `sequences.py` calls `uniform.py`."""


@pytest.fixture
def kernels(tmp_path):
    """Return a copy of the kernels in a separate package."""
    package = tmp_path / "voxpop"
    shutil.copytree(SOURCE / "kernels", package / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    (package / "__init__.py").touch()
    return package / "kernels"


def drawn(kernels, **settings):
    """Return the symbols that a new process draws with the copied kernels, and the number of its cache hits."""
    environment = {**os.environ, "PYTHONPATH": str(kernels.parents[1]), **settings}
    done = subprocess.run([sys.executable, "-c", CALLER], env=environment, capture_output=True, text=True, check=True)
    symbols, hits = done.stdout.strip().rsplit(" ", 1)
    return symbols, int(hits)


def edit(path, old, new):
    """Replace text that occurs once in a file."""
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


@pytest.mark.slow
@pytest.mark.jit
def test_an_edit_of_what_a_kernel_calls_is_seen(kernels):
    """The next process uses cached code until another file changes."""
    kept = {"VOXPOP_JIT_CACHE": "1", "NUMBA_DISABLE_JIT": "0"}
    first, hits = drawn(kernels, **kept)
    assert hits == 0
    assert "1" in first
    assert drawn(kernels, **kept) == (first, 1)
    edit(kernels / "uniform.py", "* 2.0**-53", "* 2.0**-63")
    assert drawn(kernels, **kept) == ("[0, 0, 0, 0, 0]", 0)


@pytest.mark.jit
@pytest.mark.slow
def test_without_our_stamp_the_edit_would_be_missed(kernels):
    """In the deliberately broken variant, numba's own stamp covers only the caller's file."""
    kept = {"VOXPOP_JIT_CACHE": "1", "NUMBA_DISABLE_JIT": "0"}
    edit(kernels / "_jit.py", "index._source_stamp = digest_of_sources()", "pass")
    first, _ = drawn(kernels, **kept)
    edit(kernels / "uniform.py", "* 2.0**-53", "* 2.0**-63")
    assert drawn(kernels, **kept) == (first, 1)


@pytest.mark.jit
@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"VOXPOP_JIT_CACHE": "0"}, {"NUMBA_DISABLE_JIT": "1"}], ids=str)
def test_the_same_is_drawn_where_nothing_is_kept(kernels, settings):
    """Without the cache, the draws are equal and no cache file is written."""
    settings = {"VOXPOP_JIT_CACHE": "1", "NUMBA_DISABLE_JIT": "0", **settings}
    symbols, hits = drawn(kernels, **settings)
    assert hits == 0
    assert "1" in symbols
    assert not list(kernels.glob("__pycache__/*.nb?"))


@pytest.mark.jit
@pytest.mark.slow
def test_a_numba_without_a_place_for_the_stamp_keeps_nothing(kernels):
    """The machine code is not cached, because cached code could be outdated."""
    edit(kernels / "_jit.py", '"_cache_file"', '"_another_name"')
    drawn(kernels, VOXPOP_JIT_CACHE="1", NUMBA_DISABLE_JIT="0")
    assert not list(kernels.glob("__pycache__/*.nb?"))
