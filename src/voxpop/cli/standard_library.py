"""Real text that every machine has: the docstrings and comments of Python's own standard library."""

import os
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from voxpop.errors import SourceError

if TYPE_CHECKING:
    import pyarrow as pa

SKIPPED = frozenset({"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"})

# Comments and strings in the order of the source, so that neither is found inside the other. Scanning is twenty times
# faster than parsing, and goes on where a file has syntax this Python does not know.
_COMMENT_OR_STRING = re.compile(
    r"""
    \#[^\n]*
    | \"{3} (?: [^\\"]+ | \\. | "(?!"") )* \"{3}
    | '{3} (?: [^\\']+ | \\. | '(?!'') )* '{3}
    | " [^"\\\n]* (?: \\. [^"\\\n]* )* "
    | ' [^'\\\n]* (?: \\. [^'\\\n]* )* '
    """,
    re.DOTALL | re.VERBOSE,
)


def standard_library(folder: Path | None = None) -> "pa.Table":
    """Return the docstrings and comments of Python's standard library, one row for each.

    A module plays the part of a user. Tests and installed packages are left out. The text differs a little between
    versions of Python.

    Args:
        folder: another folder of Python sources to read instead.

    Returns:
        A pyarrow table with the columns `module` and `text`.

    Raises:
        SourceError: if this Python has no sources of its library.

    Example:
        >>> standard_library().column_names
        ['module', 'text']
    """
    import pyarrow as pa

    root = folder or Path(sysconfig.get_path("stdlib"))
    rows = [(name, text) for name, path in _modules(root) for text in _texts(_source(path))]
    if not rows:
        raise SourceError(
            f"No Python sources with docstrings or comments were found in {root}. "
            "Some installations leave them out; run this with a Python that has its standard library as .py files."
        )
    modules, texts = zip(*rows, strict=True)
    return pa.table({"module": pa.array(modules, pa.string()), "text": pa.array(texts, pa.string())})


def _modules(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield the dotted name and the file of every module, always in the same order."""
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = sorted(set(subfolders) - SKIPPED)
        for path in sorted(Path(folder, name) for name in files if name.endswith(".py")):
            parts = path.relative_to(root).with_suffix("").parts
            yield ".".join(parts).removesuffix(".__init__"), path


def _source(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _texts(source: str) -> Iterator[str]:
    """Yield the docstrings and comments of one module, in the order they stand in."""
    for found in _COMMENT_OR_STRING.finditer(source):
        literal = found.group()
        if literal.startswith("#"):
            yield literal.lstrip("#! ")
        elif literal.startswith(('"""', "'''")) and _is_docstring(source, found.start()):
            yield literal[3:-3]


def _is_docstring(source: str, start: int) -> bool:
    """Say whether nothing but white space and comments lie between this string and the start of a body."""
    line = source.rfind("\n", 0, start) + 1
    if source[line:start].strip(" \trRuU"):
        return False
    while line > 0:
        end, line = line - 1, source.rfind("\n", 0, line - 1) + 1
        if code := source[line:end].split("#")[0].rstrip():
            return code.endswith(":")
    return True
