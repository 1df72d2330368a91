"""Tests that `voxpop verify` runs the independent checker if it is installed, and reports whether the checker ran."""

import sys
from types import ModuleType

import pyarrow as pa
import pytest

import voxpop as vp
from voxpop.cli import saved
from voxpop.errors import ReleaseError


def installed(monkeypatch, code):
    """Install a checker that exits with a given code."""
    package, command = ModuleType("voxpop_check"), ModuleType("voxpop_check.__main__")

    def main(paths):
        print(f"verdict {code} on {len(paths)} folder")
        return code

    command.main = main
    monkeypatch.setitem(sys.modules, "voxpop_check", package)
    monkeypatch.setitem(sys.modules, "voxpop_check.__main__", command)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder of a release."""
    rows = pa.table({"user": list(range(300)), "item": ["apple", "pear", "plum"] * 100})
    release = vp.Items(max_items_per_user=5).release(vp.read(rows, user="user", items="item"), vp.Budget(3, 1e-6))
    path = tmp_path_factory.mktemp("verified") / "fruit"
    release.save(path)
    return path


def test_a_proved_folder_is_reported_as_proved(folder, monkeypatch, capsys):
    installed(monkeypatch, 0)
    saved.verify(folder)
    assert "independent check of the certificates: proved by voxpop-check" in capsys.readouterr().out


@pytest.mark.parametrize("code", [1, 2])
def test_a_folder_that_is_not_proved_is_an_error(folder, monkeypatch, code):
    installed(monkeypatch, code)
    with pytest.raises(ReleaseError, match=f"does not prove.*\n.*verdict {code} on 1 folder"):
        saved.verify(folder)


def test_verify_reports_a_missing_checker(folder, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "voxpop_check", None)
    monkeypatch.setitem(sys.modules, "voxpop_check.__main__", None)
    saved.verify(folder)
    assert "not run, because voxpop-check is not installed" in capsys.readouterr().out
