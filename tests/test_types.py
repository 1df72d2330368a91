"""Tests that type checkers accept callers' correct code and report each wrong name on its line."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from voxpop.exports import EXPORTS
from voxpop.reading import choices

pytestmark = pytest.mark.slow  # Each test starts a type checker. `make types-of-callers` runs all of them.

ROOT = Path(__file__).resolve().parent.parent
RIGHT = """
import re
import voxpop as vp

posts = vp.read("posts.parquet", user="author", text="body", tokenizer=re.compile("[a-z]+"))
budget = vp.Budget(epsilon=4, delta=1e-7)
plan = vp.papers.SetUnion(100, "policy-gaussian", 5.0, "joint").plan(budget)
words = plan.release(posts)
words.with_metadata(title="Words").save("words", overwrite=True)
phrases: vp.Release = vp.NGrams(max_length=3).release(posts, budget)
found: list[str] = [each.token for each in phrases.complete("thank you")]
model = vp.Sequences(alphabet="find").release(posts, budget)
sql: str = vp.exports.to_sql(words, "postgres", "select")
print(vp.__version__, model.guarantee.epsilon, len(found), sql)
"""
WRONG = """
import voxpop as vp

posts = vp.read("posts.parquet", user="author", text="body", tokenizer="word")
vp.Setunion()
vp.Items(weighting="weighted")
vp.papers.SetUnion(weighting="heavy")
vp.papers.SetUnion(accounting="exact")
vp.NGrams(weighting="weighted")
vp.NGrams(max_phrases_per_user="all")
vp.papers.DPNE(pruning="neither")
vp.HeavyHitters(unit="two")
vp.HeavyHitters(alphabet="letters")
vp.Sequences(alphabet="found")
vp.Sequences(grams=3)
words = vp.Items().release(posts, vp.Budget(4, 1e-7))
vp.exports.write(words, "words.txt", format="txt")
vp.exports.to_sql(words, form="having")
words.save("words", owner="ann")
"""


def wrong_lines() -> set[int]:
    """Return the numbers of the lines of WRONG that contain a wrong name."""
    lines = WRONG.splitlines()
    right = ("import", "words =")
    return {
        number
        for number, line in enumerate(lines, start=1)
        if line and not line.startswith(right) and 'alphabet="found"' not in line
    }


def complaints(text: str) -> set[int]:
    """Return the numbers of the lines with errors, from a checker's output."""
    return {int(number) for number in re.findall(r"use\.py:(\d+)(?::\d+)?(?: -)?:? error", text)}


def checked(command: list[str], text: str, folder: Path) -> set[int]:
    """Return the numbers of the lines on which a checker reports errors if a caller's file contains the given text."""
    (folder / "use.py").write_text(text)
    done = subprocess.run([*command, str(folder / "use.py")], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return complaints(done.stdout)


def mypy() -> list[str]:
    """Return the command that runs mypy with the settings of the project."""
    pytest.importorskip("mypy", reason="mypy is not installed: pip install --group lint")
    return [sys.executable, "-m", "mypy"]


def pyright() -> list[str]:
    """Return the command that runs pyright."""
    path = shutil.which("pyright")
    if path is None:
        pytest.skip("pyright is not installed: make types-of-callers")
    if subprocess.run([path, "--version"], capture_output=True, check=False).returncode:
        pytest.skip("pyright cannot fetch what it runs on")
    return [path, "--pythonpath", sys.executable]


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_correct_code_has_no_type_errors(checker, tmp_path):
    """A checker reports no error in code like the examples on the pages."""
    assert checked(checker(), RIGHT, tmp_path) == set()


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_every_wrong_name_is_reported(checker, tmp_path):
    """A misspelt class, option, format or argument is an error on its line, and no other line has an error."""
    assert checked(checker(), WRONG, tmp_path) == wrong_lines()


def test_choices_of_types_equal_the_implemented_formats():
    """The literal types list exactly the formats that exist."""
    assert get_args(choices.Format) == tuple(each.name for each in EXPORTS)
    assert tuple(each.name for each in EXPORTS if each.counted) == ("frequencies", *choices.SUBWORDS)
