"""Compiled templates of the report are kept, and nothing depends on that."""

import sys

import pytest

import voxpop as vp
from voxpop.release.grams import table_of_lists
from voxpop.release.report import compiled, page

PLAN = vp.SetUnion(limit=10).plan(vp.Budget(2, 1e-7))
RELEASE = vp.Release(table_of_lists([["tea"]]), PLAN, PLAN.guarantee)


@pytest.fixture
def rendered(monkeypatch):
    """Return a function that makes a report as a new process does, with templates kept in a folder."""

    def render(folder):
        monkeypatch.setattr(sys, "dont_write_bytecode", False)
        monkeypatch.setattr(compiled.kept_templates, "__defaults__", (folder,))
        page._environment.cache_clear()
        return page.report_of(RELEASE, {})

    yield render
    page._environment.cache_clear()


def test_templates_are_compiled_once(rendered, tmp_path, monkeypatch):
    """The second report takes the templates that the first one kept, and has the same bytes."""
    first = rendered(tmp_path)
    assert len(list(tmp_path.glob("template-*.cache"))) > 3

    def compile_again(*arguments, **named):
        raise AssertionError("a template was compiled again")

    monkeypatch.setattr("jinja2.Environment._generate", compile_again)
    assert rendered(tmp_path) == first


def test_damaged_and_missing_templates_are_compiled_again(rendered, tmp_path):
    """Files that were cut off or filled with something else, and a folder that is not there, change nothing."""
    first = rendered(tmp_path)
    for number, path in enumerate(sorted(tmp_path.iterdir())):
        path.write_bytes(path.read_bytes()[:20] if number % 2 else b"something else")
    assert rendered(tmp_path) == first
    assert rendered(tmp_path / "absent") == first
    assert not (tmp_path / "absent").exists()


def test_a_full_disk_is_no_reason_to_fail(rendered, tmp_path, monkeypatch):
    """A report is written although templates cannot be kept: its budget is spent by then."""
    first = rendered(tmp_path / "absent")

    def full(*arguments, **named):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.NamedTemporaryFile", full)
    assert rendered(tmp_path) == first
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_kept_where_python_keeps_nothing(monkeypatch, tmp_path):
    """PYTHONDONTWRITEBYTECODE holds for templates too."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert compiled.kept_templates(tmp_path) is None
