"""The architecture, checked: who imports whom, how large things are, what is exported."""

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest
from tools.package_tables import named, packages, there

import voxpop

SOURCE = Path(voxpop.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
LAYERS = {
    "errors": 0,
    "choices": 0,
    "showing": 0,
    "mechanisms": 0,
    "arrays": -1,
    "arrow": 0,
    "objects": 1,
    "segmenting": 1,
    "spelling": 1,
    "progress": 0,
    "tables": 0,
    "threads": 0,
    "version": 0,
    "files": 1,
    "kernels": 1,
    "privacy": 1,
    "arguments": 2,
    "ledger": 2,
    "keys": 2,
    "corpus": 3,
    "release": 4,
    "weighting": 4,
    "rounds": 5,
    "spark": 5,
    "read_table": 6,
    "counts": 6,
    "hitters": 6,
    "ngrams": 6,
    "sequences": 6,
    "union": 6,
    "load_saved": 7,
    "datasets": 7,
    "evaluate": 7,
    "testing": 7,
    "__init__": 8,
    "cli": 9,
    "__main__": 10,
}
"""What stands on what: a part imports only parts of lower layers, for type checkers and inside of functions too."""
FORBIDDEN_TO = {"corpus": {"privacy"}, "kernels": {"privacy"}, "privacy": {"kernels"}, "release": {"corpus", "kernels"}}
"""Parts of lower layers that a part still must not import, the contract of engines excepted."""
MECHANISMS = ("counts", "hitters", "ngrams", "sequences", "union")
RANDOMNESS = {"cryptography", "secrets", "random"}
RANDOM_FILES = ("privacy/secret.py", "hitters/masking/keys.py")
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


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return the syntax tree of a file, parsed once, node by node; the first is the file."""
    return tuple(ast.walk(ast.parse(path.read_text())))


@cache
def imported(path: Path) -> set[str]:
    """Return what a file imports anywhere: at the top, inside of functions, for type checkers, and by name."""
    return {name for node in nodes(path) for name in imported_by(node)}


def imported_by(node: ast.AST) -> list[str]:
    """Return the dotted names that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "import_module":
        return [each.value for each in node.args if isinstance(each, ast.Constant)]
    return []


def run_time_imports(path: Path) -> set[str]:
    """Return the modules of ours that a file imports when it runs: at the top, inside of functions and by name."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    names = {name for node in ast.walk(tree) for name in imported_by(node)}
    return {name if name in FILES else name.rpartition(".")[0] for name in names} & FILES.keys()


def dotted(path: Path) -> str:
    """Return the name of a file's module."""
    parts = ("voxpop", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {dotted(path): path for path in MODULES}


def parts_imported(path: Path) -> set[str]:
    """Return the parts of voxpop a file imports; `__init__` is the public face."""
    names = [name.split(".") for name in imported(path)]
    return {name[1] if len(name) > 1 and name[1] in LAYERS else "__init__" for name in names if name[0] == "voxpop"}


def ident(path: Path) -> str:
    """Name a file in messages."""
    return str(path.relative_to(SOURCE))


def test_imports_point_downwards():
    """Every part has a layer, and imports parts of lower layers only: no arrow points upwards."""
    assert {part(path) for path in MODULES} <= LAYERS.keys()
    for path in MODULES:
        mine = part(path)
        others = parts_imported(path) - {mine}
        assert {other for other in others if LAYERS[other] >= LAYERS[mine]} == set(), ident(path)


def test_sides_stay_apart():
    """The private side knows nothing of noise, and the public side nothing of the private but the engine contract."""
    for path in MODULES:
        for forbidden in FORBIDDEN_TO.get(part(path), ()):
            beyond = {name for name in imported(path) if name.startswith(f"voxpop.{forbidden}.")}
            assert {name for name in beyond if not name.startswith("voxpop.corpus.engine.")} == set(), ident(path)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_no_mechanism_imports_another(mechanism):
    """What two of them need has a package of its own."""
    for path in (SOURCE / mechanism).rglob("*.py"):
        assert parts_imported(path) & set(MECHANISMS) <= {mechanism}, ident(path)


def test_no_imports_go_round():
    """No file imports itself by way of others, imports inside of functions counted."""
    below = {name: run_time_imports(path) - {name} for name, path in FILES.items()}
    while True:
        free = {name for name, needed in below.items() if not needed}
        if not free:
            break
        below = {name: needed - free for name, needed in below.items() if name not in free}
    assert set(below) == set()


@pytest.mark.parametrize("package", packages(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_package_tables_name_what_is_there(package):
    """The table in a package's `__init__` names every file and folder of it, and no other."""
    assert named(package) == there(package), "run `python tools/package_tables.py`"


def test_the_readme_of_benchmarks_lists_every_command():
    """Whatever can be run there has a row."""
    root = SOURCE.parents[1] / "benchmarks"
    runs = [path for path in root.rglob("*.py") if "__main__" in path.read_text() and "peers" not in path.parts]
    commands = {"benchmarks." + ".".join(path.relative_to(root).with_suffix("").parts) for path in runs}
    listed = set(re.findall(r"benchmarks(?:\.\w+)+", (root / "README.md").read_text()))
    assert commands - listed == set()
    assert len(commands) > 20


def test_the_design_page_names_every_part():
    """The table of docs/design has a row for each package, and the paragraph below it every file beside them."""
    page = (SOURCE.parents[1] / "docs" / "design" / "README.md").read_text()
    said = set(re.findall(r"^\| `(\w+)/` \|", page, re.M))
    assert said == {path.name for path in packages() if path.parent == SOURCE}
    beside = page.partition("No mechanism imports another")[2].partition("\n## ")[0]
    files = {path.name for path in SOURCE.glob("[a-z]*.py")}
    assert set(re.findall(r"`(\w+\.py)`", beside)) == files


def test_one_file_imports_numba_and_one_makes_randomness():
    """Numba and its cache come in through kernels/, randomness of releases and keys of masks through a file each."""
    for path in MODULES:
        roots = {name.split(".")[0] for name in imported(path)}
        if ident(path) not in ("kernels/_jit.py", "kernels/_overload_files.py"):
            assert "numba" not in roots, ident(path)
        if part(path) not in ("datasets", "testing") and ident(path) not in RANDOM_FILES:
            assert not roots & RANDOMNESS, ident(path)
            assert "np.random" not in path.read_text(), ident(path)
            assert "os.urandom" not in path.read_text(), ident(path)


def test_one_folder_imports_pyspark():
    """And of the others only what chooses an engine imports that folder."""
    for path in MODULES:
        roots = {name.split(".")[0] for name in imported(path)}
        assert part(path) == "spark" or "pyspark" not in roots, ident(path)
        may = part(path) in ("spark", "read_table", "cli", "testing")
        assert may or "spark" not in parts_imported(path), ident(path)


def test_files_and_functions_are_short():
    """At most 500 lines a file, 60 a function, its docstring left out, and 90 a kernel."""
    for path in MODULES:
        assert path.read_text().count("\n") <= 500, ident(path)
        most = 90 if part(path) == "kernels" else 60
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef):
                assert length_without_docstring(node) <= most, f"{ident(path)}: {node.name}"


def length_without_docstring(node: ast.FunctionDef) -> int:
    """Return the lines of a function's body."""
    body = node.body[1:] if ast.get_docstring(node) else node.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def test_guards_are_errors_and_not_asserts():
    """`python -O` leaves asserts out."""
    assert [ident(path) for path in MODULES if any(isinstance(node, ast.Assert) for node in nodes(path))] == []


def test_names_say_what_things_are():
    """No drawers: no word that fits anything, in file names or definitions."""
    for path in MODULES:
        defined = [node.name for node in nodes(path) if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        for name in [ident(path), *defined]:
            assert not any(word in name.lower() for word in FORBIDDEN), f"{ident(path)}: {name}"


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


def test_every_module_says_what_it_is():
    """A docstring at the top of each file."""
    assert [ident(path) for path in MODULES if not ast.get_docstring(nodes(path)[0])] == []
