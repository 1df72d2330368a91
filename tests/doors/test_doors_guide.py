"""The page of what goes in and out names tests; they exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "guides" / "doors.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)` \|$", PAGE, re.MULTILINE)


def test_every_row_names_a_test():
    """And none is without."""
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and "kept by" not in line]
    assert len(rows) == len(NAMED) > 45


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_the_test_exists(path, name):
    """By this name in this file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
