"""Tests that functions in proofs quote their page, and that their code is the code compared with the page.

After a change to such a function, read the section that its mark names and correct the page if necessary. Then run
`VOXPOP_RENEW_STAMPS=1 pytest tests/test_stamps.py` to renew the stamps.
"""

import ast
import hashlib
import os
import re
from functools import cache
from pathlib import Path

import pytest
from tools.mutants import MUTANTS

import voxpop
from voxpop.kernels.proved import proved

SOURCE = Path(voxpop.__file__).parent
PAGES = SOURCE.parents[1] / "docs" / "privacy"
STAMPS = re.compile(r"\n<!-- stamps of proved functions\n(.*?)-->\n", re.DOTALL)
FEWEST = 230
"""The minimum number of marked functions. Marks must not be removed, because proofs depend on these functions."""
BOLD = re.compile(r"(?:(?<=\n\n)|^(?:- |\d+\. ))\*\*([^*]+?)[.:]?\*\*", re.MULTILINE)
LOWEST = 10
"""The level of sections that begin with bold text, which is below all headings."""
FEWEST_WORDS = 6
"""The minimum number of words in a quotation, because a shorter text may be on a page by accident."""
DEFINITIONS = ast.FunctionDef | ast.ClassDef


def shape(value: object) -> object:
    """Return a syntax tree without docstrings and marks. The result is the same in all versions of Python."""
    if isinstance(value, ast.AST):
        parts = dict(ast.iter_fields(value))
        if isinstance(value, DEFINITIONS):
            parts["body"] = value.body[1:] if ast.get_docstring(value) is not None else value.body
            parts["decorator_list"] = [each for each in value.decorator_list if not section_of(each)]
        left_out = ("ctx", "kind", "type_comment", "type_params")
        return [
            type(value).__name__,
            *((n, shape(p)) for n, p in parts.items() if p not in (None, []) and n not in left_out),
        ]
    return [shape(each) for each in value] if isinstance(value, list) else repr(value)


def section_of(decorator: ast.expr) -> str:
    """Return the section of a mark, or an empty string for other decorators."""
    if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "proved":
        (section,) = decorator.args
        return section.value
    return ""


def stamp(function: ast.FunctionDef) -> str:
    """Return the digest of the code of a function."""
    return hashlib.sha256(repr(shape(function)).encode()).hexdigest()[:12]


def marked_in(tree: ast.Module, file: str) -> dict[str, tuple[str, str, ast.FunctionDef]]:
    """Return the page, section and definition of each marked function. The keys are file and name."""
    found = {}

    def visit(node: ast.AST, before: str) -> None:
        for each in ast.iter_child_nodes(node):
            if isinstance(each, DEFINITIONS):
                for section in filter(None, map(section_of, each.decorator_list)):
                    found[f"{file}:{before}{each.name}"] = (*section.split("#"), each)
                visit(each, f"{before}{each.name}.")

    visit(tree, "")
    return found


@cache
def marked() -> dict[str, tuple[str, str, ast.FunctionDef]]:
    """Return all marked functions."""
    return {
        name: mark
        for path in sorted(SOURCE.rglob("*.py"))
        if "@proved(" in (text := path.read_text("utf-8"))
        for name, mark in marked_in(ast.parse(text), str(path.relative_to(SOURCE))).items()
    }


def plain(text: str) -> str:
    """Return text on one line, without emphasis or comments."""
    return " ".join(re.sub(r"<!--.*?-->|[*`$]", "", text, flags=re.DOTALL).split())


def titled(title: str) -> str:
    """Return the anchor of a section, as in links."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def sections_of(text: str) -> list[tuple[str, str]]:
    """Return the name and text of each section.

    A section begins with a heading, or with a paragraph that begins with bold text. A section with a heading includes
    its subsections and all sections that begin with bold text.
    """
    heads = [(each.start(), len(each[1]), titled(each[2])) for each in re.finditer(r"^(#+) (.*)$", text, re.MULTILINE)]
    heads += [(each.start(), LOWEST, titled(each[1])) for each in BOLD.finditer(text)]
    heads.sort()
    ends = [
        min([at for at, other, _ in heads if at > start and other <= level], default=None) for start, level, _ in heads
    ]
    return [(name, text[start:end]) for (start, _, name), end in zip(heads, ends, strict=True)]


def quotes(docstring: str, section: str, text: str) -> bool:
    """Return whether a docstring quotes at least six words of a section of a page."""
    quoted = re.search(r'Proof: "(.*?)"(?:\n|$)', docstring, re.DOTALL)
    if quoted is None or len(plain(quoted[1]).split()) < FEWEST_WORDS:
        return False
    return any(plain(quoted[1]) in plain(part) for name, part in sections_of(text) if name == section)


def stored(page: Path) -> dict[str, str]:
    """Return the stamps of a page by function."""
    found = STAMPS.search(page.read_text("utf-8"))
    return dict(line.split() for line in found[1].splitlines()) if found else {}


def renew() -> None:
    """Write the stamps of all pages."""
    for page in PAGES.glob("*.md"):
        text = STAMPS.sub("", page.read_text("utf-8"))
        lines = [f"{name} {stamp(code)}\n" for name, (own, _, code) in marked().items() if own == page.name]
        page.write_text(text + (f"\n<!-- stamps of proved functions\n{''.join(lines)}-->\n" if lines else ""), "utf-8")


def test_stamps_on_pages_agree_with_the_code():
    if os.environ.get("VOXPOP_RENEW_STAMPS"):
        renew()
    wanted = {page.name: {} for page in PAGES.glob("*.md")}
    for name, (page, _, code) in marked().items():
        wanted[page][name] = stamp(code)
    different = {page: wanted[page].items() ^ stored(PAGES / page).items() for page in wanted}
    assert {page: sorted(dict(each)) for page, each in different.items() if each} == {}, (
        "the code of these functions changed: compare each with the section that its mark names, correct the page, and "
        "renew its stamp as the docstring of this file states"
    )
    assert len(marked()) >= FEWEST


@pytest.mark.parametrize("name", marked())
def test_docstrings_quote_the_section_that_their_mark_names(name):
    page, section, code = marked()[name]
    assert quotes(ast.get_docstring(code) or "", section, (PAGES / page).read_text("utf-8"))


PAGE = """# Page

## Claim

**All passes.** The sum is at most one on every sequence.

**One pass.** Each pass costs at most one part of it.

## Tests

A user adds at most one to all sums together.
"""


@pytest.mark.parametrize(
    ("section", "quoted", "found"),
    [
        ("all-passes", "The sum is at most one on every", True),
        ("claim", "The sum is at most one on every", True),
        ("page", "The sum is at most one on every", True),
        ("one-pass", "The sum is at most one on every", False),
        ("tests", "The sum is at most one on every", False),
        ("proof", "The sum is at most one on every", False),
        ("tests", "A user adds at most", False),
        ("tests", "A user adds at most one", True),
    ],
)
def test_a_quotation_must_be_in_its_section(section, quoted, found):
    """Short quotations and quotations from other sections are rejected."""
    assert quotes(f'Add noise.\n\nProof: "{quoted}"', section, PAGE) is found


BEFORE = '''
@proved("page.md#section")
def noisy(weight, noise):
    """Add noise."""
    # Once.
    return weight + noise
'''


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("Add noise.", "Add Gaussian noise.", True),
        ("# Once.", "# Once for each item.", True),
        ("page.md#section", "page.md#other", True),
        ("weight + noise", "weight + noise / 2", False),
        ("weight, noise", "weight, noise=0", False),
        ("return", "if weight:\n        return", False),
    ],
)
def test_only_code_changes_a_stamp(old, new, same):
    """A change to a docstring, comment or mark does not change the stamp, but a change to the code does."""
    (before,), (after,) = (marked_in(ast.parse(text), "f").values() for text in (BEFORE, BEFORE.replace(old, new)))
    assert (stamp(before[2]) == stamp(after[2])) is same


def test_the_mark_returns_the_same_function():
    """The decorator returns the function itself, so kernels with a mark are compiled in the same way."""
    assert proved("page.md#section")(stamp) is stamp


def test_every_mutant_applies_to_the_current_code():
    """The text that a mutant replaces occurs once in its file, and the tests of the mutant exist."""
    stale = [each.name for each in MUTANTS if (SOURCE / each.file).read_text().count(each.old) != 1]
    assert stale == []
    assert [name for each in MUTANTS for name in each.tests if not (SOURCE.parents[1] / "tests" / name).exists()] == []
