"""Java, masters and files."""

import shutil

import pytest

from voxpop.engine.spark.reading import _kind_of
from voxpop.engine.spark.session import java
from voxpop.errors import InputError, SourceError


def test_java_is_found_by_java_home_then_by_the_path(monkeypatch, tmp_path):
    """And its absence is told with what to do."""
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


def test_files_must_be_of_one_kind(tmp_path):
    """By their names, or by those in a folder."""
    assert _kind_of(["a.parquet", "hdfs://b/c.parquet"]) == ".parquet"
    assert _kind_of(["x/*.csv.gz"]) == ".csv"
    (tmp_path / "part-0.jsonl").touch()
    assert _kind_of([str(tmp_path)]) == ".jsonl"
    for wrong in (["a.parquet", "b.csv"], ["a.txt"], []):
        with pytest.raises(SourceError, match="must be of one kind"):
            _kind_of(wrong)
