"""Tests that startup loads no heavy library, which would take seconds, and that the public names are complete."""

import json
import subprocess
import sys

import pytest

import voxpop

HEAVY = {"numba", "numpy", "polars", "pyarrow", "scipy", "cryptography", "mpmath", "pandas"}
COMMAND = "import sys; from voxpop.cli import main; code = main(sys.argv[1:]); "


def heavy_modules_after(statement, *arguments):
    listing = "import json, sys; print(json.dumps(sorted(m.split('.')[0] for m in sys.modules)))"
    command = [sys.executable, "-c", f"{statement}\n{listing}", *arguments]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    return HEAVY & set(json.loads(done.stdout.splitlines()[-1]))


def test_the_import_loads_no_heavy_library():
    """Importing the package and listing its names does not import any of the heavy libraries."""
    assert heavy_modules_after("import voxpop; dir(voxpop); voxpop.errors") == set()


@pytest.mark.parametrize(
    "arguments", [["--help"], ["items", "--help"], ["--version"], ["plan", "items", "--epsilon", "4"]]
)
def test_help_and_rejected_calls_load_no_heavy_library(arguments):
    """Help, the version and a rejected call do not import any of the heavy libraries either."""
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
