"""The architecture, checked: who imports whom, how large things are, what is exported."""

import ast
import importlib
from pathlib import Path

import pytest

import voxpop

SOURCE = Path(voxpop.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
NUMBERS = {"privacy", "release", "ledger", "errors"}
LAYERS = {
    "cli": 6,
    "datasets": 5,
    "evaluate": 5,
    "testing": 5,
    "counts": 4,
    "spark": 4,
    "ngrams": 4,
    "sequences": 4,
    "hitters": 3,
    "union": 3,
    "corpus": 2,
    "kernels": 1,
}
RANDOMNESS = {"cryptography", "secrets", "random"}
FORBIDDEN = ("partition", "bucket", "util", "helper", "manager", "processor")
PUBLIC = [
    "Budget",
    "Corpus",
    "Counts",
    "Guarantee",
    "HeavyHitters",
    "Ledger",
    "NGrams",
    "Release",
    "SequenceModel",
    "Sequences",
    "SetUnion",
    "Tally",
    "Weighting",
]


def part(path: Path) -> str:
    """Return the part of the package a file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Return the modules a file imports, those for type checkers alone left out."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def parts_imported(path: Path) -> set[str]:
    """Return the parts of voxpop a file imports."""
    return {name.split(".")[1] for name in imported(path) if name.startswith("voxpop.")}


def ident(path: Path) -> str:
    """Name a file in test reports."""
    return str(path.relative_to(SOURCE))


@pytest.mark.parametrize("path", MODULES, ids=ident)
def test_imports_point_downwards(path):
    """The command line uses mechanisms, they use corpus, it uses kernels; privacy and release use none of them."""
    mine = part(path)
    others = parts_imported(path) & LAYERS.keys()
    if mine in NUMBERS or mine == "progress":
        assert not others
    elif mine in LAYERS:
        assert all(LAYERS[other] < LAYERS[mine] or other == mine for other in others)
    if mine in ("corpus", "kernels"):
        assert "privacy" not in parts_imported(path)


@pytest.mark.parametrize("path", MODULES, ids=ident)
def test_one_file_imports_numba_and_one_makes_randomness(path):
    """Numba comes in through kernels/_jit.py, and release randomness through privacy/secret.py."""
    roots = {name.split(".")[0] for name in imported(path)}
    if ident(path) != "kernels/_jit.py":
        assert "numba" not in roots
    if part(path) not in ("datasets", "testing") and ident(path) != "privacy/secret.py":
        assert not roots & RANDOMNESS
        assert "np.random" not in path.read_text()
        assert "os.urandom" not in path.read_text()


@pytest.mark.parametrize("path", MODULES, ids=ident)
def test_one_folder_imports_pyspark(path):
    """And by name alone does the corpus look up to it."""
    roots = {name.split(".")[0] for name in imported(path)}
    assert part(path) == "spark" or "pyspark" not in roots
    assert part(path) in ("spark", "cli") or "spark" not in parts_imported(path)


@pytest.mark.parametrize("path", MODULES, ids=ident)
def test_files_and_functions_are_short(path):
    """At most 500 lines a file, 60 a function, its docstring left out, and 90 a kernel."""
    text = path.read_text()
    assert text.count("\n") <= 500
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            most = 90 if part(path) == "kernels" else 60
            assert length_without_docstring(node) <= most, node.name


def length_without_docstring(node: ast.FunctionDef) -> int:
    """Return the lines of a function's body."""
    body = node.body[1:] if ast.get_docstring(node) else node.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


@pytest.mark.parametrize("path", MODULES, ids=ident)
def test_names_say_what_things_are(path):
    """No drawers: no word that fits anything, in file names or definitions."""
    defined = [
        node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef | ast.ClassDef)
    ]
    for name in [ident(path), *defined]:
        assert not any(word in name.lower() for word in FORBIDDEN), name


def test_the_public_names_are_complete_and_sorted():
    """`__all__` is sorted, every name of it can be had, and `dir` shows just these."""
    assert list(voxpop.__all__) == sorted(voxpop.__all__)
    assert set(PUBLIC) <= set(voxpop.__all__)
    assert all(getattr(voxpop, name) is not None for name in voxpop.__all__)
    assert dir(voxpop) == sorted(voxpop.__all__)


@pytest.mark.parametrize(
    "package",
    ["corpus", "counts", "hitters", "ledger", "ngrams", "privacy", "release", "sequences", "testing", "union"],
)
def test_every_package_exports_what_it_lists(package):
    """Each name of a package's `__all__` exists."""
    module = importlib.import_module(f"voxpop.{package}")
    assert all(hasattr(module, name) for name in module.__all__)


@pytest.mark.parametrize("name", PUBLIC)
def test_public_classes_are_documented(name):
    """A docstring of more than a line."""
    assert len((getattr(voxpop, name).__doc__ or "").splitlines()) > 1


@pytest.mark.parametrize("path", MODULES, ids=ident)
def test_every_module_says_what_it_is(path):
    """A docstring at the top of each file."""
    assert ast.get_docstring(ast.parse(path.read_text()))
