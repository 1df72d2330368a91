"""Tests of the package layout, including packages, imports, sizes and public names."""

import ast
import re
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import voxpop
from voxpop.release.registry import MECHANISMS

SOURCE = Path(voxpop.__file__).parent
ROOT = SOURCE.parents[1]
PROJECTS = ("pyproject.toml", "flower/pyproject.toml")
MODULES = sorted(SOURCE.rglob("*.py"))
MOST_ENTRIES, MOST_FILES, MOST_FILES_OF_MECHANISM, MOST_LINES = 15, 173, 12, 500
SHARED = {"mechanism.py", "plan.py", "releasing.py", "constants.py", "describe.py"}
"""The files of every mechanism package (docs/design)."""
FORBIDDEN = {
    "privacy": {"reading", "engine", "release", "mechanisms"},
    "kernels": {"privacy", "reading", "engine", "release", "mechanisms"},
    "files": {"privacy", "reading", "engine", "release", "mechanisms"},
    "reading": {"engine", "release", "mechanisms"},
    "engine": {"release", "mechanisms"},
    "release": {"mechanisms"},
}
"""The packages that a package must not import.

For example, packages that read data do not depend on noise, and results do not depend on mechanisms.
"""
RANDOMNESS = {"cryptography", "secrets", "random"}
RANDOM_FILES = ("privacy/secret.py",)
PARSERS = {"urllib.parse", "urllib.parse.unquote", "urllib.parse.unquote_plus", "urllib.parse.urlsplit"}
"""Functions that parse URLs and open no connection."""
NETWORK = {"asyncio", "flwr", "grpc", "http", "httpx", "requests", "socket", "socketserver", "ssl", "urllib", "urllib3"}
FLOWER = sorted((ROOT / "flower" / "src").rglob("*.py"))
PYTHON_FILE = re.compile(r"`((?:[\w-]+/)*\w+\.py)`")
VAGUE = ("partition", "bucket", "util", "helper", "manager", "processor")

SHARED_NAMES = {
    "__all__": "Python's list of public names",
    "app": "the commands of a file of the command line",
    "describe": "the text of plans, which the registry finds by this name in every mechanism package",
    "story": "the content of reports, which the registry finds by this name",
    "audit": "the command, and the function that it runs",
    "explain": "the command, and the function that it runs",
    "profile": "the command, the function that it runs, and the audit case, which the registry finds by the command",
    "sign": "the command, and the function that it runs",
    "top": "the command, and the audit case, which the registry finds by the command",
    "verify": "the command, and the function that it runs",
    "init": "`voxpop ledger init` and `voxpop series init`: the command line takes the name of the function",
    "show": "`voxpop show`, `voxpop ledger show` and `voxpop series show`: as for `init`",
    "words": "the public list `vp.known.words`, and the function that cuts a text into words",
}
"""The top-level names that more than one file may define, with the reason. A private name may be in two files."""
MOST_SHARED_NAMES = 20


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return the nodes of the syntax tree of a file. The first node is the file."""
    return tuple(ast.walk(ast.parse(path.read_text())))


def dotted(path: Path) -> str:
    """Return the name of the module of a file."""
    parts = ("voxpop", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {dotted(path): path for path in MODULES}


@cache
def imported(path: Path, *, types: bool = True) -> frozenset[str]:
    """Return the names that a file imports, including imports in functions.

    With `types`, imports for type checkers are included, too.
    """
    skipped = set()
    if not types:
        for node in nodes(path):
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                skipped |= {id(each) for each in ast.walk(node)}
    found = set()
    for node in nodes(path):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


def modules_imported(path: Path, *, types: bool) -> set[str]:
    """Return the modules of voxpop that a file imports."""
    names = imported(path, types=types)
    return ({name if name in FILES else name.rpartition(".")[0] for name in names} & FILES.keys()) - {dotted(path)}


def package_of(module: str) -> str:
    """Return the top-level package of a module."""
    return module.split(".")[1] if "." in module else "__init__"


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Return the strongly connected components with more than one node."""
    bound = {node: _reachable(graph, node) for node in graph}
    found = []
    for node in graph:
        circle = {other for other in bound[node] if node in bound[other]} | {node}
        if len(circle) > 1 and circle not in found:
            found.append(circle)
    return found


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for each in graph.get(waiting.pop(), ()):
            if each not in seen:
                seen.add(each)
                waiting.append(each)
    return seen


def ident(path: Path) -> str:
    """Return the path of a file for messages."""
    return str(path.relative_to(SOURCE))


def test_the_package_is_small():
    """The numbers of entries, files and lines are limited. Each mechanism increases the limit by its own files."""
    assert len([each for each in SOURCE.iterdir() if each.name != "__pycache__"]) <= MOST_ENTRIES
    files = Counter(map(mechanism_of, FILES))
    assert files.pop("") <= MOST_FILES
    assert max(files.values()) <= MOST_FILES_OF_MECHANISM
    assert [ident(path) for path in MODULES if path.read_text().count("\n") > MOST_LINES] == []


def test_packages_import_each_other_in_one_direction():
    """Packages have no import cycle, including imports for type checkers."""
    graph: dict[str, set[str]] = {}
    for name, path in FILES.items():
        mine = package_of(name)
        others = {package_of(each) for each in modules_imported(path, types=True)} - {mine, "__init__"}
        graph.setdefault(mine, set()).update(others)
    assert circles(graph) == []


@pytest.mark.parametrize("package", FORBIDDEN)
def test_packages_do_not_import_forbidden_packages(package):
    """For example, `privacy` uses no data, `kernels` uses only arrays, and `release` imports no mechanism."""
    for name, path in FILES.items():
        if package_of(name) == package:
            others = {package_of(each) for each in modules_imported(path, types=True)}
            assert others & FORBIDDEN[package] == set(), ident(path)


def test_files_have_no_import_cycle():
    """Imports at run time have no cycle. Imports in functions are included."""
    assert circles({name: modules_imported(path, types=False) for name, path in FILES.items()}) == []


def test_import_cycles_through_types_have_two_files():
    """Cycles that include imports for type checkers have at most two files."""
    found = circles({name: modules_imported(path, types=True) for name, path in FILES.items()})
    assert [circle for circle in found if len(circle) > 2] == []


SHARED_PACKAGES = {
    ("*", "rounds"): "the rounds of several mechanisms",
    ("profile", "counts"): "a profile counts its released values",
    ("sequences", "set_union"): "items find the alphabet of sequences",
    ("set_union", "series"): "`Items` starts and opens series, and a series is saved as a release of items",
}
"""The permitted imports between packages of `mechanisms`, with the reason."""


def mechanism_of(module: str) -> str:
    """Return the package of `mechanisms` that contains a module, or an empty string."""
    parts = module.split(".")
    return parts[2] if parts[1:2] == ["mechanisms"] and len(parts) > 2 else ""


def test_no_mechanism_imports_another_mechanism():
    """No package of `mechanisms` imports another, except for the listed pairs.

    Packages that are not registered are included.
    """
    found = set()
    for name, path in FILES.items():
        mine = mechanism_of(name)
        found |= {(mine, mechanism_of(each)) for each in imported(path) if mine}
    pairs = {("*" if other == "rounds" else mine, other) for mine, other in found if other not in ("", mine)}
    assert pairs == SHARED_PACKAGES.keys()


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda each: each.command)
def test_mechanism_packages_have_the_same_files(mechanism):
    """Because the files are the same, a reader of one package can find the corresponding code in the others."""
    folder = FILES[mechanism.config.split(":")[0]].parent
    assert {path.name for path in folder.glob("*.py")} >= SHARED


def test_numba_pyspark_and_randomness_are_imported_in_few_files():
    """Only kernels import Numba, only engine/spark and exports import Spark, and few files draw random numbers.

    The files that draw random numbers are privacy/secret.py and the files of `testing`.
    """
    for path in MODULES:
        roots = {name.split(".")[0] for name in imported(path)}
        if not ident(path).startswith("kernels/_"):
            assert "numba" not in roots, ident(path)
        if not ident(path).startswith(("engine/spark/", "exports/")):
            assert "pyspark" not in roots, ident(path)
        if not ident(path).startswith(("testing/", *RANDOM_FILES)):
            assert not roots & RANDOMNESS, ident(path)
            assert "np.random" not in path.read_text(), ident(path)
            assert "os.urandom" not in path.read_text(), ident(path)


def test_no_file_uses_the_network():
    """The package contains no network code, because the code for federations is a separate distribution (`flower`)."""
    assert [
        ident(path) for path in MODULES if {each.split(".")[0] for each in imported(path) - PARSERS} & NETWORK
    ] == []
    assert any("flwr" in name for path in FLOWER for name in imported(path))


def test_the_flower_distribution_is_small():
    """Each file has at most 500 lines, a docstring and no asserts.

    The distribution requires a version of Voxpop that equals its own version.
    """
    assert [path.name for path in FLOWER if path.read_text().count("\n") > MOST_LINES] == []
    assert [path.name for path in FLOWER if len(ast.get_docstring(nodes(path)[0]) or "") < 5] == []
    assert [path.name for path in FLOWER if any(isinstance(node, ast.Assert) for node in nodes(path))] == []
    core, flower = (tomllib.loads((ROOT / name).read_text())["project"] for name in PROJECTS)
    assert flower["version"] == core["version"]
    assert f"voxpop=={core['version']}" in flower["dependencies"]
    assert flower["requires-python"] == core["requires-python"]


NOISES = {"CellNoise", "ContextNoise", "GumbelNoise", "NightReading", "NoisyLevels", "ReleaseDecisions", "ScoreStep"}
SAMPLERS = {"gumbel_cells", "laplace_noise", "noisy_cells"}
OPENINGS = {"chosen", "first_round", "measured", "noisy_levels", "row_shares", "weigh_deferred"}
"""The methods of engines that return weights or noisy values."""
PLANNERS = {"voxpop.privacy.calibrate", "voxpop.privacy.trie.calibrate"}
"""The modules of `privacy` that propose numbers."""


def called(path: Path) -> set[str]:
    """Return the names of the functions and methods that a file calls."""
    return {name_called(node) for node in nodes(path) if isinstance(node, ast.Call)}


def name_called(call: ast.Call) -> str:
    """Return the name of the function or method in a call."""
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def test_only_gates_add_noise_and_request_weights():
    """Only `privacy` draws noise, only gates request weights from engines, and only engines call `opened`."""
    for path in MODULES:
        if ident(path).startswith("privacy/"):
            assert ident(path).startswith("privacy/gate/") or not called(path) & OPENINGS, ident(path)
            continue
        assert not called(path) & (NOISES | SAMPLERS), ident(path)
        if not ident(path).startswith("engine/"):
            assert not called(path) & OPENINGS, ident(path)
            assert "voxpop.privacy.opening.opened" not in imported(path), ident(path)
        opening = [each for each in nodes(path) if isinstance(each, ast.ClassDef)]
        assert not [each.name for each in opening if any("Opening" in ast.unparse(base) for base in each.bases)]


def test_one_function_shows_the_progress_of_passes():
    """Only `run_passes` and the code that reads tables show progress, and every mechanism uses `run_passes`."""
    loops = {ident(path) for path in MODULES if "voxpop.files.progress.track" in imported(path)}
    assert loops == {"engine/local/read.py", "privacy/planned.py"}
    shared = ("voxpop.privacy.planned.run_passes", "voxpop.mechanisms.rounds.menu.released_in_rounds")
    for folder in {path.parent for path in MODULES if path.name == "releasing.py"} | {SOURCE / "mechanisms" / "series"}:
        if folder.parent.name == "mechanisms":
            assert any(name in imported(path) for name in shared for path in folder.glob("*.py")), folder.name


CYCLE = "an import of the class would make a cycle of three files, even for type checkers"
LAYER = "`privacy` imports no mechanism"
PROTOCOLS_OF_ONE_CLASS = {
    "CountsConfiguration": CYCLE,
    "KeysConfiguration": CYCLE,
    "ProfileConfiguration": CYCLE,
    "Step": LAYER,
    "UnionConfiguration": CYCLE,
    "UserBatches": CYCLE,
    "Vote": LAYER,
}
"""The protocols that only one class implements, with the rule that forbids importing this class."""


def members(classes: dict[str, ast.ClassDef], name: str) -> set[str]:
    """Return the public fields and methods of a class, including the members of its bases."""
    node = classes[name]
    assigned = (each for each in ast.walk(node) if isinstance(each, ast.Attribute))
    found = {each.attr for each in assigned if isinstance(each.ctx, ast.Store)}
    for each in node.body:
        if isinstance(each, ast.AnnAssign | ast.FunctionDef):
            found.add(each.name if isinstance(each, ast.FunctionDef) else ast.unparse(each.target))
    bases = {ast.unparse(base).split("[")[0] for base in node.bases} & classes.keys() - {name}
    return {each for each in found if not each.startswith("_")}.union(*(members(classes, base) for base in bases))


def test_protocols_have_several_classes():
    """At least two classes implement each protocol, or the protocol is listed with a reason.

    Classes of other mechanisms do not count for a protocol of a mechanism, even if they have the same members.
    """
    classes, package = dict[str, ast.ClassDef](), dict[str, str]()
    for module, path in FILES.items():
        for node in nodes(path):
            if isinstance(node, ast.ClassDef):
                classes[node.name], package[node.name] = node, mechanism_of(module)
    protocols = {name for name, node in classes.items() if "Protocol" in map(ast.unparse, node.bases)}
    found = {name: members(classes, name) for name in classes}
    alone = []
    for name in sorted(protocols):
        near = [each for each in found.keys() - protocols if not package[name] or package[each] in ("", package[name])]
        if sum(found[name] <= found[each] for each in near) < 2:
            alone.append(name)
    assert alone == sorted(PROTOCOLS_OF_ONE_CLASS)


def test_fields_of_histograms_are_private():
    """`Histogram` has no public field, and only `engine` and gates read its private fields."""
    weigh = SOURCE / "engine" / "local" / "weigh.py"
    (histogram,) = (each for each in nodes(weigh) if getattr(each, "name", "") == "Histogram")
    fields = {ast.unparse(each.target) for each in histogram.body if isinstance(each, ast.AnnAssign)}
    assert fields
    assert all(name.startswith("_") for name in fields)
    for path in MODULES:
        if not ident(path).startswith(("engine/", "privacy/gate/")):
            private = {"_weights", "_histogram"}
            assert not {each.attr for each in nodes(path) if isinstance(each, ast.Attribute)} & private, ident(path)


@pytest.mark.parametrize("start", ["voxpop.privacy.certificate", "voxpop.privacy.gate.rounds"])
def test_proofs_and_gates_import_no_planner(start):
    """The code that computes delta and the code that runs rounds import neither mechanisms nor calibration."""
    graph = {name: modules_imported(path, types=False) for name, path in FILES.items()}
    reached = _reachable(graph, start)
    assert not reached & PLANNERS
    assert not {each for each in reached if package_of(each) in ("mechanisms", "papers")}


def test_functions_are_short():
    """A function has at most 60 lines without its docstring, and a kernel at most 90."""
    for path in [*MODULES, *FLOWER]:
        most = 90 if path in MODULES and ident(path).startswith("kernels/") else 60
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                lines = body[-1].end_lineno - body[0].lineno + 1 if body else 0
                assert lines <= most, f"{path.name}: {node.name}"


def test_the_package_has_no_asserts():
    """Checks raise errors, because `python -O` removes asserts."""
    assert [ident(path) for path in MODULES if any(isinstance(node, ast.Assert) for node in nodes(path))] == []


def test_names_are_specific():
    """The names of files, functions and classes contain no vague words, such as "util" or "helper"."""
    for path in MODULES:
        defined = [node.name for node in nodes(path) if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        for name in [ident(path), *defined]:
            assert not any(word in name.lower() for word in VAGUE), f"{ident(path)}: {name}"


def test_every_module_has_a_docstring():
    """A docstring must have at least five characters."""
    assert [ident(path) for path in MODULES if len(ast.get_docstring(nodes(path)[0]) or "") < 5] == []


def test_files_named_in_text_exist():
    """Docstrings, comments and pages refer to existing files by their name or by the end of their path."""
    folders = ("src", "flower", "checker", "tests", "benchmarks", "docs", "tools", "examples")
    every = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    # The environment of the compared libraries is in the folder of the benchmarks.
    python = [path for path in every if ".venv" not in path.parts]
    there = {part for path in python for part in ends_of(path.relative_to(ROOT))}
    texts = [*MODULES, *FLOWER, *(path for path in python if path.is_relative_to(ROOT / "benchmarks"))]
    texts += [*(ROOT / "docs").rglob("*.md"), ROOT / "CONTRIBUTING.md"]
    named = {(path.name, name) for path in texts for name in PYTHON_FILE.findall(path.read_text())}
    assert [(path, name) for path, name in sorted(named) if name not in there] == []


def ends_of(path: Path) -> set[str]:
    """Return every suffix of a path, from the file name alone to the whole path."""
    return {"/".join(path.parts[place:]) for place in range(len(path.parts))}


def test_public_names_are_sorted_documented_and_present():
    """`__all__` is sorted, `dir` returns the same names, and each class has a docstring of more than one line."""
    names = list(voxpop.__all__)
    assert names == sorted(names) == dir(voxpop)
    for name in names:
        value = getattr(voxpop, name)
        assert not isinstance(value, type) or len((value.__doc__ or "").splitlines()) > 1, name


def defined(path: Path) -> set[str]:
    """Return the names that a file defines at its top level."""
    found = set()
    for node in nodes(path)[0].body:  # type: ignore[attr-defined]
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        found |= {each.id for each in targets if isinstance(each, ast.Name)}
    return found


def test_each_top_level_name_is_defined_once():
    """A public top-level name is defined in only one file, or listed with a reason.

    A private name is defined in at most two files.
    """
    files: dict[str, set[str]] = {}
    for path in MODULES:
        for name in defined(path):
            files.setdefault(name, set()).add(ident(path))
    several = {
        name: sorted(paths)
        for name, paths in files.items()
        if len(paths) > 1 + (name.startswith("_") and not name.startswith("__"))
    }
    assert {name: paths for name, paths in several.items() if name not in SHARED_NAMES} == {}
    assert sorted(several) == sorted(SHARED_NAMES), "a listed name has one meaning now: remove it from the list"
    assert len(SHARED_NAMES) <= MOST_SHARED_NAMES
