"""A test of the search for Java."""

import shutil

import pytest

from voxpop.engine.spark.session import java
from voxpop.errors import InputError


def test_java_is_found_by_java_home_or_the_path(monkeypatch, tmp_path):
    """JAVA_HOME has precedence. If Java is missing, the error contains advice."""
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java() == program
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setattr(shutil, "which", lambda name: "/somewhere/java")
    assert str(java()) == "/somewhere/java"
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(InputError, match=r"Java 17.*--engine local"):
        java()
