"""Tests that cached machine code of a kernel is not used after an edit of another file that the kernel calls."""

import os
import shutil
import stat
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
"""Draw five symbols, each 0 or 1, and print them and the number of cache hits. `sequences.py` calls `uniform.py`."""


@pytest.fixture
def kernels(tmp_path):
    """Return a copy of the kernels in a separate package."""
    package = tmp_path / "voxpop"
    shutil.copytree(SOURCE / "kernels", package / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    (package / "__init__.py").touch()
    return package / "kernels"


def drawn(kernels, **settings):
    """Return the symbols that a new process draws with the copied kernels, and the number of cache hits."""
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
def test_an_edit_of_a_called_function_is_detected(kernels):
    """The next process uses the cached code, but not after an edit of a file that the kernel calls."""
    kept = {"VOXPOP_JIT_CACHE": "1", "NUMBA_DISABLE_JIT": "0"}
    first, hits = drawn(kernels, **kept)
    assert hits == 0
    assert "1" in first
    assert drawn(kernels, **kept) == (first, 1)
    edit(kernels / "uniform.py", "* 2.0**-53", "* 2.0**-63")
    assert drawn(kernels, **kept) == ("[0, 0, 0, 0, 0]", 0)


@pytest.mark.jit
@pytest.mark.slow
def test_without_the_stamp_of_voxpop_the_edit_would_be_missed(kernels):
    """In the deliberately broken variant, the stamp is numba's own, which covers only the caller's file."""
    kept = {"VOXPOP_JIT_CACHE": "1", "NUMBA_DISABLE_JIT": "0"}
    edit(kernels / "_jit.py", "index._source_stamp = digest_of_sources()", "pass")
    first, _ = drawn(kernels, **kept)
    edit(kernels / "uniform.py", "* 2.0**-53", "* 2.0**-63")
    assert drawn(kernels, **kept) == (first, 1)


@pytest.mark.jit
@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"VOXPOP_JIT_CACHE": "0"}, {"NUMBA_DISABLE_JIT": "1"}], ids=str)
def test_symbols_are_drawn_without_a_cache(kernels, settings):
    """Without the cache, symbols are drawn and no cache file is written."""
    settings = {"VOXPOP_JIT_CACHE": "1", "NUMBA_DISABLE_JIT": "0", **settings}
    symbols, hits = drawn(kernels, **settings)
    assert hits == 0
    assert "1" in symbols
    assert not list(kernels.glob("__pycache__/*.nb?"))


@pytest.mark.jit
@pytest.mark.slow
def test_a_numba_without_a_stamp_has_no_cache(kernels):
    """If numba has no stamp, machine code is not cached, because cached code could be outdated."""
    edit(kernels / "_jit.py", '"_cache_file"', '"_another_name"')
    drawn(kernels, VOXPOP_JIT_CACHE="1", NUMBA_DISABLE_JIT="0")
    assert not list(kernels.glob("__pycache__/*.nb?"))


def closed(kernels, tmp_path, **settings):
    """Return the environment of a process that can write neither to the installation nor to a home folder."""
    shutil.rmtree(kernels / "__pycache__", ignore_errors=True)
    (kernels / "__pycache__").write_text("a file where the folder of compiled kernels would be")
    (tmp_path / "tmp").mkdir(exist_ok=True)
    usual = {"VOXPOP_JIT_CACHE": "1", "NUMBA_DISABLE_JIT": "0", "HOME": "/dev/null", "TMPDIR": str(tmp_path / "tmp")}
    return {**usual, "PYTHONDONTWRITEBYTECODE": "1", **settings}


def run(kernels, settings, cwd=None, without=()):
    """Return the output and the lines on standard error of a process that draws."""
    environment = {**os.environ, "PYTHONPATH": str(kernels.parents[1]), **settings}
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", *without):
        if name not in settings:
            environment.pop(name, None)
    done = subprocess.run([sys.executable, "-c", CALLER], env=environment, capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, done.stderr
    symbols, hits = done.stdout.strip().rsplit(" ", 1)
    return symbols, int(hits), [line for line in done.stderr.splitlines() if line.startswith("voxpop:")]


@pytest.mark.slow
@pytest.mark.jit
@pytest.mark.parametrize("home", ["/dev/null", "/nonexistent/home", "no"])
def test_a_read_only_installation_works_without_a_home_folder(kernels, tmp_path, home):
    """Kernels are compiled once in a folder that only this user can open, and one message names the folder."""
    settings = closed(kernels, tmp_path, HOME=home)
    if home == "no":
        del settings["HOME"]
        settings["XDG_CACHE_HOME"] = "/dev/null/cache"
    elif home == "/nonexistent/home":
        settings["XDG_CACHE_HOME"] = "/dev/null/cache"  # The root user can create any folder.
    first, hits, lines = run(kernels, settings, tmp_path, ["HOME"])
    assert hits == 0
    assert len(lines) == 1
    (folder,) = (tmp_path / "tmp").glob("voxpop-*/kernels-*")
    assert str(folder) in lines[0]
    assert "NUMBA_CACHE_DIR" in lines[0]
    for each in (folder, folder.parent):
        assert stat.S_IMODE(each.stat().st_mode) == 0o700
        assert each.stat().st_uid == os.geteuid()
    assert run(kernels, settings, tmp_path)[:2] == (first, 1)
    assert not (tmp_path / "~").exists()


@pytest.mark.slow
@pytest.mark.jit
def test_code_is_not_loaded_from_folders_of_other_users(kernels, tmp_path):
    """A temporary folder that other users can write to, or that is a link, is not used, and nothing is cached."""
    settings = closed(kernels, tmp_path)
    own = tmp_path / "tmp" / f"voxpop-{os.geteuid()}"
    own.mkdir()
    own.chmod(0o777)
    first, _, lines = run(kernels, settings)
    assert "by every process again" in lines[0]
    assert run(kernels, settings)[:2] == (first, 0)
    shutil.rmtree(own)
    (tmp_path / "elsewhere").mkdir()
    own.symlink_to(tmp_path / "elsewhere")
    assert run(kernels, settings)[:2] == (first, 0)


@pytest.mark.slow
@pytest.mark.jit
def test_a_home_folder_that_others_can_write_to_is_not_used(kernels, tmp_path):
    """With a home folder such as /tmp, other users could have created the folder from which numba loads code."""
    (tmp_path / "home" / ".cache" / "numba").mkdir(parents=True)
    (tmp_path / "home" / ".cache" / "numba").chmod(0o777)
    settings = closed(kernels, tmp_path, HOME=str(tmp_path / "home"))
    run(kernels, settings)
    kept = list((tmp_path / "home" / ".cache" / "voxpop").glob("kernels-*/*"))
    assert len(kept) > 0
    assert not list((tmp_path / "home" / ".cache" / "numba").rglob("*.nbc"))


@pytest.mark.slow
@pytest.mark.jit
def test_the_folder_in_numba_cache_dir_is_used(kernels, tmp_path):
    """NUMBA_CACHE_DIR is used. If this folder cannot be written, the compiled kernels are stored elsewhere."""
    settings = closed(kernels, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "chosen"))
    first, _, lines = run(kernels, settings)
    assert not lines
    assert list((tmp_path / "chosen").rglob("*.nbc"))
    assert run(kernels, settings)[:2] == (first, 1)
    settings["NUMBA_CACHE_DIR"] = "/dev/null/chosen"
    assert run(kernels, settings)[0] == first


@pytest.mark.slow
@pytest.mark.jit
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_kernels_are_compiled_despite_a_full_disk_or_damaged_files(kernels):
    """If code cannot be cached, each process compiles it. Damaged cache files are not loaded."""
    settings = {"VOXPOP_JIT_CACHE": "1", "NUMBA_DISABLE_JIT": "0"}
    full = "import numba.core.caching as c\ndef full(*_): raise OSError(28, 'No space left on device')\n"
    full += "c.IndexDataCacheFile.save = full\n"
    environment = {**os.environ, "PYTHONPATH": str(kernels.parents[1]), **settings}
    done = subprocess.run([sys.executable, "-c", full + CALLER], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, hits = drawn(kernels, **settings)
    assert (first, hits) == (done.stdout.strip().rsplit(" ", 1)[0], 0)
    for file in (kernels / "__pycache__").glob("*.nbc"):
        file.write_bytes(file.read_bytes()[:100])
    assert drawn(kernels, **settings)[0] == first
