"""The command `voxpop demo`, which releases phrases from docstrings and comments in Python's standard library.

Almost every Python installation includes this text. Each module counts as one user.
"""

import os
import re
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

import voxpop as vp
from voxpop.cli.options import Json, Overwrite
from voxpop.cli.releasing import count_text, guarantee_text, indented, place, print_json, say, stage, summary
from voxpop.errors import SourceError
from voxpop.privacy.budget import printable, words_first
from voxpop.release.saving import RELEASE

if TYPE_CHECKING:
    import pyarrow as pa

    from voxpop.release.release import Release

EPSILON, DELTA, LIMIT, LONGEST = 4.0, 1e-5, 300, 5
_SHOWN = 12
PROMPTS = 4
NEXT = 5
DATA = "the docstrings and comments of Python's standard library; each module is one user"
FIRST_RUN = "The first run on a machine compiles for up to a minute and prints nothing meanwhile."
METADATA = {
    "title": "Phrases of Python's standard library",
    "dataset": DATA,
    "purpose": "A first look at voxpop",
    "operator": "voxpop demo",
}


def demo(
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"], help="Folder to save to.")] = Path("demo-phrases"),
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Release phrases from Python's standard library, and complete some phrases.

    The text consists of docstrings and comments. Each module counts as one user.
    """
    folder = RELEASE.check_target(output, overwrite=overwrite)
    plan = vp.NGrams(max_length=LONGEST, max_phrases_per_user=LIMIT).plan(vp.Budget(EPSILON, DELTA))
    if not json:
        say(f"Data: {DATA}.", FIRST_RUN)
        sys.stdout.flush()  # Without flushing, a pipe would receive these lines only at the end.
    with stage("Reading"):
        data = vp.read(standard_library(), user="module", text="text", tokenizer=vp.Tokenizer("words", sentences=True))
    with stage("Releasing"):
        release = plan.release(data).with_metadata(**METADATA)
    release.save(folder, overwrite=overwrite)
    if json:
        print_json({"data": DATA, **summary(release, folder)})
        return
    say(f"{count_text(release)} The longest:", *map(indented, longest(release)))
    say("\nThe next words, predicted from the released phrases:")
    for begun in beginnings(release):
        offers = ", ".join(each.token for each in release.complete([*begun], NEXT))
        say(indented(f"{' '.join(begun)} ... {offers}"))
    say(guarantee_text(release.guarantee, "module"))
    say(place(folder))


def longest(release: "Release") -> list[str]:
    """Return the longest released phrases in descending order of length, without parts of other phrases."""
    chosen: list[str] = []
    for gram in sorted(words_first(release.each_gram()), key=len, reverse=True):
        text = printable(gram)
        if len(chosen) < _SHOWN and not any(f" {text} " in f" {other} " for other in chosen):
            chosen.append(text)
    return chosen


def beginnings(release: "Release") -> list[tuple[str, ...]]:
    """Return frequent two-word beginnings of the released three-word phrases, most frequent first."""
    begun: Counter[tuple[str, ...]] = Counter(gram[:2] for gram in release.each_gram() if len(gram) == 3)
    return sorted(begun, key=lambda pair: (-begun[pair], pair))[:PROMPTS]


_SKIPPED = frozenset({"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"})

# Match comments and strings in one scan, so that neither is found inside the other. A scan is twenty times faster than
# parsing, and also works for files with syntax that this version of Python does not support.
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
    """Return the docstrings and comments of Python's standard library, one per row.

    Each module is one user. Tests and installed packages are excluded. The text differs slightly between versions of
    Python.

    Args:
        folder: A folder of Python sources to read instead of the standard library.

    Returns:
        A pyarrow table with the columns `module` and `text`.

    Raises:
        SourceError: If this Python installation does not include the sources of the library.

    Example:
        >>> standard_library().column_names
        ['module', 'text']
    """
    import pyarrow as pa

    root = folder or Path(sysconfig.get_path("stdlib"))
    rows = [(name, text) for name, path in _modules(root) for text in _source_texts(_source(path))]
    if not rows:
        raise SourceError(
            f"No Python sources with docstrings or comments were found in {root}. "
            "Some installations omit them; run this with a Python that has its standard library as .py files."
        )
    modules, texts = zip(*rows, strict=True)
    return pa.table({"module": pa.array(modules, pa.string()), "text": pa.array(texts, pa.string())})


def _modules(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield the dotted name and the file of every module, in a fixed order."""
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = sorted(set(subfolders) - _SKIPPED)
        for path in sorted(Path(folder, name) for name in files if name.endswith(".py")):
            parts = path.relative_to(root).with_suffix("").parts
            yield ".".join(parts).removesuffix(".__init__"), path


def _source(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _source_texts(source: str) -> Iterator[str]:
    """Yield the docstrings and comments of one module, in the order of the source."""
    for found in _COMMENT_OR_STRING.finditer(source):
        literal = found.group()
        if literal.startswith("#"):
            yield literal.lstrip("#! ")
        elif literal.startswith(('"""', "'''")) and _is_docstring(source, found.start()):
            yield literal[3:-3]


def _is_docstring(source: str, start: int) -> bool:
    """Return whether only white space and comments separate this string from the start of a body."""
    line = source.rfind("\n", 0, start) + 1
    if source[line:start].strip(" \trRuU"):
        return False
    while line > 0:
        end, line = line - 1, source.rfind("\n", 0, line - 1) + 1
        if code := source[line:end].split("#")[0].rstrip():
            return code.endswith(":")
    return True
