"""Tests that start-up takes little time and that the public names are complete."""

import json
import resource
import subprocess
import sys

import pytest

import voxpop

HEAVY = {"numba", "numpy", "polars", "pyarrow", "scipy", "cryptography", "mpmath", "pandas"}
COMMAND = "import sys; from voxpop.cli import main; code = main(sys.argv[1:]); "


def python(*arguments):
    """Run Python, and return its output and its processor time in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, *arguments], capture_output=True, check=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def heavy_modules_after(statement, *arguments):
    listing = "import json, sys; print(json.dumps(sorted(m.split('.')[0] for m in sys.modules)))"
    output, _ = python("-c", f"{statement}\n{listing}", *arguments)
    return HEAVY & set(json.loads(output.splitlines()[-1]))


def test_import_takes_little_time():
    """Importing the package takes a few hundredths of a second. The test allows three times the promised 0.15 s."""
    _, seconds = python("-c", "import voxpop")
    print(f"import voxpop: {seconds:.3f} s of processor time")
    assert seconds < 3 * 0.15


@pytest.mark.parametrize("arguments", [["--help"], ["items", "--help"]])
def test_help_takes_little_time(arguments):
    """Help takes about a tenth of a second. The test allows three times the promised 0.3 s."""
    output, seconds = python("-c", COMMAND, *arguments)
    print(f"voxpop {' '.join(arguments)}: {seconds:.3f} s of processor time")
    assert output.startswith("Usage: voxpop")
    assert seconds < 3 * 0.3


def test_the_import_loads_no_heavy_library():
    """Importing the package and listing its names imports none of the heavy libraries."""
    assert heavy_modules_after("import voxpop; dir(voxpop); voxpop.errors") == set()


@pytest.mark.parametrize(
    "arguments", [["--help"], ["items", "--help"], ["--version"], ["plan", "items", "--epsilon", "4"]]
)
def test_help_and_rejected_calls_load_no_heavy_library(arguments):
    """Help, the version and a rejected call also import none of the heavy libraries."""
    assert heavy_modules_after(COMMAND, *arguments) == set()


def test_public_names_are_sorted_and_complete():
    """`__all__` is sorted and equals the output of `dir`, and every name in it exists."""
    assert sorted(voxpop.__all__) == dir(voxpop)
    for name in voxpop.__all__:
        assert getattr(voxpop, name) is not None


def test_an_unknown_name_raises_an_attribute_error():
    """The error for an unknown name lists the existing names."""
    with pytest.raises(AttributeError, match=r"no attribute 'SetUnon'; it has Budget, CSV, .*Items"):
        _ = voxpop.SetUnon
