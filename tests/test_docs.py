"""Every example runs: Python blocks of the README and the docs, and the examples in docstrings."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import voxpop

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"(<!-- not run: (?P<reason>.*?) -->\n+)?```python\n(?P<code>.*?)```", re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")
MODULES = [module.name for module in pkgutil.walk_packages(voxpop.__path__, "voxpop.")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_blocks_run(page, tmp_path, monkeypatch):
    """The blocks of one page run in order, in one namespace, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for block in BLOCK.finditer(page.read_text()):
        if block["reason"]:
            print(f"not run in {page.name}: {block['reason']}")
        else:
            exec(compile(block["code"], page.name, "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    """Every relative link is a file of the repository."""
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), target


def test_every_page_is_linked_from_the_index():
    """Nothing in docs/ is out of reach."""
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / target).resolve() for target in LINK.findall(index.read_text())}
    assert set(PAGES[1:]) - linked == {index}


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name):
    """The examples of one module give what they say."""
    if name.startswith("voxpop.hitters.flower."):
        pytest.importorskip("flwr", reason="flwr is not installed: pip install voxpop[flower]")
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0
