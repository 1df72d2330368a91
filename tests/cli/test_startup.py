"""Tests that startup loads no heavy library, which would take seconds, and that the public names are complete."""

import json
import subprocess
import sys

import pytest

import voxpop

HEAVY = {"numba", "numpy", "polars", "pyarrow", "scipy", "cryptography", "mpmath", "pandas"}
CALLS = [["--help"], ["items", "--help"], ["--version"], ["plan", "items", "--epsilon", "4"]]
PROGRAM = """
import json, sys
seen, loaded = set(sys.modules), []
def list_new():
    loaded.append(sorted({name.split(".")[0] for name in set(sys.modules) - seen}))
    seen.update(sys.modules)
import voxpop; dir(voxpop); voxpop.errors
list_new()
from voxpop.cli import main
for call in json.loads(sys.argv[1]):
    main(call)
    list_new()
print(json.dumps(loaded))
"""


@pytest.fixture(scope="module")
def heavy_modules():
    """Return the heavy libraries that the import and each call load first, in a process that makes all calls."""
    call = [sys.executable, "-c", PROGRAM, json.dumps(CALLS)]
    done = subprocess.run(call, capture_output=True, check=True, text=True)
    of_import, *of_calls = [HEAVY & set(each) for each in json.loads(done.stdout.splitlines()[-1])]
    return of_import, of_calls


def test_the_import_loads_no_heavy_library(heavy_modules):
    """Importing the package and listing its names does not import any of the heavy libraries."""
    assert heavy_modules[0] == set()


@pytest.mark.parametrize("arguments", CALLS)
def test_help_and_rejected_calls_load_no_heavy_library(heavy_modules, arguments):
    """Help, the version and a rejected call do not import any of the heavy libraries either."""
    assert heavy_modules[1][CALLS.index(arguments)] == set()


def test_public_names_are_sorted_and_complete():
    """`__all__` is sorted and equals the output of `dir`, and every name in it exists."""
    assert sorted(voxpop.__all__) == dir(voxpop)
    for name in voxpop.__all__:
        assert getattr(voxpop, name) is not None


def test_an_unknown_name_raises_an_attribute_error():
    """The error for an unknown name lists the existing names."""
    with pytest.raises(AttributeError, match=r"no attribute 'SetUnon'; it has Budget, CSV, .*Items"):
        _ = voxpop.SetUnon
