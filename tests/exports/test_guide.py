"""The guide's example with the real libraries, which the other documentation tests leave out."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "guides" / "exports.md"


def test_every_block_runs(tmp_path, monkeypatch):
    """All blocks of the page, in order."""
    for library in ("sklearn", "tokenizers", "spacy"):
        pytest.importorskip(library, reason=f"{library} is not installed: make exports")
    monkeypatch.chdir(tmp_path)
    namespace = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 8
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), namespace)
