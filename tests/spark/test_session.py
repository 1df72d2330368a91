"""Java, masters and files."""

import shutil

import pytest

from voxpop.errors import InputError, SourceError
from voxpop.spark.session import _kind_of, cores_of, java


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


def test_cores_of_masters():
    """Of those on this machine."""
    assert [cores_of(m) for m in ("local", "local[3]", "local[2,4]", "yarn", "spark://a:7077")] == [1, 3, 2, None, None]
    assert cores_of("local[*]") >= 1


def test_files_must_be_of_one_kind(tmp_path):
    """By their names, or by those in a folder."""
    assert _kind_of(["a.parquet", "hdfs://b/c.parquet"]) == ".parquet"
    assert _kind_of(["x/*.csv.gz"]) == ".csv"
    (tmp_path / "part-0.jsonl").touch()
    assert _kind_of([str(tmp_path)]) == ".jsonl"
    for wrong in (["a.parquet", "b.csv"], ["a.txt"], []):
        with pytest.raises(SourceError, match="files of one kind"):
            _kind_of(wrong)
