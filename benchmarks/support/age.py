"""The commit of results, and changes to the code since that commit."""

import ast
import re
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

DESCRIBING = ("to_dict", "__str__")
SENTENCE = 6
"""The smallest number of words of a sentence in a string."""
FULL_STOP = re.compile(r"\.(\s|$)")
CODE = ("src", "benchmarks", ":!benchmarks/results")


def git(root: Path, *command: str) -> str:
    """Return the output of git, which is empty if the command fails."""
    done = subprocess.run(["git", *command], cwd=root, capture_output=True, text=True, check=False)
    return "" if done.returncode else done.stdout.rstrip("\n")


def source(root: Path) -> dict[str, object]:
    """Return the commit of a repository, and the files of code that differ from it."""
    changed = git(root, "status", "--porcelain", "--", *CODE).splitlines()
    return {"commit": git(root, "rev-parse", "HEAD"), "uncommitted": sorted(line[3:] for line in changed)}


def changed_since(root: Path, commit: str, paths: Sequence[str]) -> list[str]:
    """Return the files with code that differs from a commit.

    Pages, comments, docstrings, marks of proved functions, imports, types, sentences in strings and descriptions of
    plans do not count. A function, class or constant that is deleted or moved to another of the files, or a renamed
    method, does not count either, because the rest computes the same.

    Args:
        root: The folder of the repository.
        commit: The hash of the commit.
        paths: The files and folders, relative to the root.
    """
    if not git(root, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"):
        return ["every file: the commit is not in this repository"]
    # Each line is ":mode mode blob blob status<tab>path", with the blob of the commit first.
    raw = git(root, "diff", "--raw", "--no-abbrev", "--no-renames", commit, "--", *paths).splitlines()
    blobs = {path: facts.split()[2] for facts, path in (line.split("\t", 1) for line in raw)}
    new = git(root, "ls-files", "--others", "--exclude-standard", "--", *paths).splitlines()
    files = {path for path in (*blobs, *new) if not path.endswith(".md")}
    code = {path for path in files if path.endswith(".py")}
    before = set().union(*(_definitions_of_blob(root, blobs[path]) for path in code & blobs.keys()))
    changed = {path for path in code if (root / path).is_file() and _definitions((root / path).read_text()) - before}
    return sorted(changed | (files - code))


def modules_of(root: Path, path: str) -> set[str]:
    """Return a benchmark file and all benchmark files that it imports, without the folder `support`."""
    found, waiting = set(), [path]
    while waiting:
        name = waiting.pop()
        if name not in found and not name.startswith("benchmarks/support/"):
            found.add(name)
            waiting += _imported(root, name)
    return found


def _imported(root: Path, path: str) -> list[str]:
    names = []
    for node in ast.walk(ast.parse((root / path).read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("benchmarks."):
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    files = [f"{name.replace('.', '/')}{end}" for name in names if name for end in (".py", "/__init__.py")]
    return [name for name in files if (root / name).is_file()]


@cache
def _definitions_of_blob(root: Path, blob: str) -> frozenset[str]:
    # A file that is not in the commit has no blob.
    return _definitions(git(root, "cat-file", "blob", blob))


@cache
def _definitions(text: str) -> frozenset[str]:
    """Return the syntax trees of the statements of a file.

    They contain no docstrings, marks of proved functions, imports, types and sentences.
    """
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            # The types in a class are its fields.
            same = isinstance(node, ast.ClassDef)
            kept = [each if same else _untyped(each) for each in body if not _computes_nothing(each)]
            node.body = kept  # type: ignore[attr-defined]
        if isinstance(node, ast.arg):
            node.annotation = None
        _remove_sentence(node)
        if isinstance(node, ast.Raise):
            node.exc = node.cause = None
        if isinstance(node, ast.FunctionDef):
            node.returns = None
            node.decorator_list = [each for each in node.decorator_list if not _is_mark(each)]
    return frozenset(text for node in tree.body for text in _parts(node))


def _parts(node: ast.stmt) -> Iterator[str]:
    """Yield a statement, or the fields and the methods of a class. Methods that only describe a plan do not count.

    The name of a method does not count either, because its callers change if another method is called.
    """
    methods: list[ast.FunctionDef] = []
    if isinstance(node, ast.ClassDef):
        methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
        node.body = [each for each in node.body if not isinstance(each, ast.FunctionDef)]
    yield ast.dump(node)
    for method in methods:
        if method.name not in DESCRIBING:
            method.name = ""
            yield ast.dump(method)


def _remove_sentence(node: ast.AST) -> None:
    """Remove the text of a string or f-string for readers, but not scripts, queries, schemas and lists of words."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    texts = [part for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    line = "0".join(str(part.value) for part in texts)
    if len(line.split()) >= SENTENCE and "\n" not in line and FULL_STOP.search(line):
        for part in texts:
            part.value = ""


def _is_mark(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name) and decorator.func.id == "proved"


def _untyped(node: ast.AST) -> ast.AST:
    if isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
        return ast.Assign([node.target], node.value)
    return node


def _computes_nothing(node: ast.AST) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.If):  # such as `if TYPE_CHECKING`
        return all(_computes_nothing(each) for each in (*node.body, *node.orelse))
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
