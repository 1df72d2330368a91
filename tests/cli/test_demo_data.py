"""Tests of `standard_library`. Tests that the scanner of the demo finds the same texts as Python's parser."""

import ast
import io
import sysconfig
import tokenize
from pathlib import Path

import pytest

from voxpop.cli.demo import standard_library
from voxpop.errors import SourceError

TRICKY = '''#!/usr/bin/env python
# first

"""Module # not a comment."""
x = {"a":
     1}  # second
url = "http://#no"; other = '#no'; both = """
# no
"""

class A:  # third
    # fourth
    r"""Class with \\""" escape."""

    def f(self): return '"""no"""'

    def g(
        self,
    ):
        \'\'\'Single "quotes".\'\'\'
'''


def texts_of(folder):
    table = standard_library(folder)
    return list(zip(table["module"].to_pylist(), table["text"].to_pylist(), strict=True))


def test_only_docstrings_and_comments_are_found(tmp_path):
    """The scanner distinguishes comments in strings, strings in comments, and strings that are not docstrings."""
    (tmp_path / "tricky.py").write_text(TRICKY)
    assert [text for _, text in texts_of(tmp_path)] == [
        "/usr/bin/env python",
        "first",
        "Module # not a comment.",
        "second",
        "third",
        "fourth",
        'Class with \\""" escape.',
        'Single "quotes".',
    ]


def test_a_module_is_one_user(tmp_path):
    """Module names, which identify users, contain dots.

    Tests and installed packages are omitted, and invalid files cause no error.
    """
    for name in ("b/__init__.py", "b/c.py", "a.py", "test/x.py", "b/tests/y.py", "site-packages/z.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# {name}\n")
    (tmp_path / "broken.py").write_bytes(b"# caf\xe9\ndef (:")
    assert [module for module, _ in texts_of(tmp_path)] == ["a", "broken", "b", "b.c"]


def test_missing_sources_are_an_error(tmp_path):
    """If the Python installation has no source files, the error contains advice."""
    with pytest.raises(SourceError, match="has its standard library"):
        standard_library(tmp_path)


def parsed_docstrings(source):
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, documented)]
    lines = source.encode().splitlines(keepends=True)
    literals = [segment(lines, node.body[0]) for node in nodes if ast.get_docstring(node) is not None]
    bare = [literal.lstrip("rRuU") for literal in literals]
    return {literal[3:-3] for literal in bare if literal.startswith(('"""', "'''"))}


def segment(lines, node):
    """Return the result of `ast.get_source_segment`, but split the source into lines only once."""
    whole = b"".join(lines[node.lineno - 1 : node.end_lineno])
    rest = len(lines[node.end_lineno - 1]) - node.end_col_offset
    return whole[node.col_offset : len(whole) - rest].decode()


@pytest.fixture(scope="module")
def library():
    return texts_of(None)


@pytest.mark.parametrize("name", ["argparse", "tokenize", "inspect", "textwrap", "string", "xmlrpc.client", "decimal"])
def test_the_scanner_agrees_with_the_parser(library, name):
    """On real modules, the scanner finds every docstring that `ast` finds and every comment that `tokenize` finds."""
    path = Path(sysconfig.get_path("stdlib"), *name.split(".")).with_suffix(".py")
    source = path.read_text(encoding="utf-8")
    comments = {
        token.string.lstrip("#! ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    assert {text for module, text in library if module == name} == comments | parsed_docstrings(source)
