"""Tests that the guide's examples run with the real libraries, which other tests of the documentation do not use."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "guides" / "exports.md"


def test_every_code_block_of_the_guide_runs(tmp_path, monkeypatch):
    """The code blocks run in the order of the page, and share their variables."""
    for library in ("sklearn", "tokenizers", "spacy"):
        pytest.importorskip(library, reason=f"{library} is not installed: make exports")
    monkeypatch.chdir(tmp_path)
    namespace = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 9
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), namespace)
