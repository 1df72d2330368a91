"""Tests that steps of gates run only in passes, which `run_passes` executes."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import voxpop

SOURCE = Path(voxpop.__file__).parent
CONNECTING = {"of", "open"}
"""The methods that connect a gate with its data. They return no noisy number."""
GIVING = {"begin", "gate_of", "later", "of", "rounds", "words"}
"""The functions and methods that return a gate, in addition to those whose annotation or result is a gate."""
SAME = {"cast", "copy", "iter", "list", "next", "tuple"}
"""The functions that return one of their arguments or an object that contains it."""
FIELDS = {"numbers": "PathsGate"}
"""Public fields of gates that have the name of a step of another gate. Files that import the gate may read them."""
COLLECTING = (
    ast.Tuple | ast.List | ast.Set | ast.Dict | ast.Starred | ast.Subscript | ast.IfExp | ast.BoolOp | ast.NamedExpr
)
"""The expressions that contain the values of their parts, or are equal to one of them."""
Functions = dict[str, list[ast.FunctionDef]]


def steps_of_gates() -> set[str]:
    """Return the names of the public methods of gates, except for properties and methods that connect data."""
    found = set()
    for path in (SOURCE / "privacy" / "gate").glob("*.py"):
        for each in ast.walk(ast.parse(path.read_text())):
            if isinstance(each, ast.ClassDef) and (each.name.endswith("Gate") or each.name == "LaterPasses"):
                methods = [node for node in each.body if isinstance(node, ast.FunctionDef)]
                found |= {node.name for node in methods if "property" not in map(ast.unparse, node.decorator_list)}
    return {name for name in found if not name.startswith("_")} - CONNECTING


@cache
def nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    """Return the nodes of a syntax tree, with outer nodes before inner nodes."""
    return tuple(ast.walk(tree))


def name_of(node: ast.AST) -> str:
    """Return the name of a variable, of an attribute, or of the function in a call."""
    return getattr(node, "attr", getattr(node, "id", "")) or (name_of(node.func) if isinstance(node, ast.Call) else "")


def mentioned(tree: ast.AST) -> set[str]:
    """Return the names and attributes in a syntax tree."""
    return {name_of(node) for node in nodes(tree) if isinstance(node, ast.Name | ast.Attribute)}


def is_gate(annotation: ast.AST | None) -> bool:
    """Return whether an annotation is the type of a gate instead of, for example, the type of a function."""
    text = "" if annotation is None else ast.unparse(annotation).strip("'\"")
    return re.fullmatch(r"(\w*Gate|LaterPasses|None| \| )+", text) is not None and text != "None"


def gives_gate(value: ast.AST, gates: set[str], giving: set[str]) -> bool:
    """Return whether a value is a gate, contains a gate, or is made from a gate by a constructor.

    Args:
        value: The expression.
        gates: The names of gates in the file.
        giving: The names of functions that return gates.
    """
    if isinstance(value, ast.Name | ast.Attribute):
        return name_of(value) in gates
    if isinstance(value, ast.Call):
        name = name_of(value)
        if name.endswith("Gate") or name in giving - (GIVING - {"begin", "gate_of"}):
            return True
        if name in GIVING:
            return gives_gate(getattr(value.func, "value", value.func), gates, giving)
        return (name[:1].isupper() or name in SAME) and any(
            gives_gate(each, gates, giving) for each in arguments(value)
        )
    return isinstance(value, COLLECTING) and any(
        gives_gate(each, gates, giving) for each in ast.iter_child_nodes(value)
    )


def arguments(call: ast.Call) -> list[ast.expr]:
    """Return the values of all arguments of a call."""
    return [*call.args, *(each.value for each in call.keywords)]


def functions_of(trees: dict[str, ast.AST]) -> Functions:
    """Return functions by their names, and constructors by the names of their classes."""
    found: Functions = {}
    for tree in trees.values():
        for node in nodes(tree):
            if isinstance(node, ast.FunctionDef):
                found.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.ClassDef):
                made = [each for each in node.body if getattr(each, "name", "") == "__init__"]
                found.setdefault(node.name, []).extend(made)
    return found


def assigned_in(node: ast.AST) -> list[tuple[ast.AST, ast.AST]]:
    """Return the pairs (target, value) of an assignment, a loop or a `with` statement."""
    if isinstance(node, ast.Assign):
        return [pair for target in node.targets for pair in unpacked(target, node.value)]
    if isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value:
        return [(node.target, node.value)]
    if isinstance(node, ast.For | ast.comprehension):
        return unpacked(node.target, node.iter)
    if isinstance(node, ast.withitem) and node.optional_vars:
        return [(node.optional_vars, each) for each in [node.context_expr, *ast.iter_child_nodes(node.context_expr)]]
    return []


def unpacked(target: ast.AST, value: ast.AST) -> list[tuple[ast.AST, ast.AST]]:
    """Return the pairs (target, value) of an assignment to several names."""
    names, values = getattr(target, "elts", None), getattr(value, "elts", None)
    if names is None:
        return [(target, value)]
    if values is not None and len(values) == len(names):
        return list(zip(names, values, strict=True))
    # `begin` returns the gate first, and `words` returns the next gate last.
    place = {"begin": slice(1), "words": slice(-1, None)}.get(name_of(value), slice(None))
    return [(each, value) for each in names[place]]


def receiving(call: ast.Call, functions: Functions, gates: set[str], giving: set[str]) -> set[ast.arg]:
    """Return the parameters that receive a gate in a call, in `partial`, or in a lambda of the same call."""
    found, given, called = set[ast.arg](), list(call.args), name_of(call)
    places = [place for place, each in enumerate(given) if gives_gate(each, gates, giving)]
    if not places and not any(gives_gate(each.value, gates, giving) for each in call.keywords):
        return found
    if called == "partial":
        called, places = name_of(given[0]), [place - 1 for place in places]
    else:
        found |= {each for node in [call.func, *given] if isinstance(node, ast.Lambda) for each in node.args.args}
    for function in functions.get(called, ()):
        own = [each for each in function.args.args if each.arg not in ("self", "cls")]
        found |= {own[place] for place in places if 0 <= place < len(own)}
        named = {each.arg for each in call.keywords if gives_gate(each.value, gates, giving)}
        found |= {each for each in [*own, *function.args.kwonlyargs] if each.arg in named}
    return found


def names_of_gates(trees: dict[str, ast.AST]) -> tuple[dict[str, set[str]], set[str]]:
    """Return the names of gates and of objects that contain gates in each file, and the functions that return gates.

    Args:
        trees: The syntax trees of files, by their names.
    """
    functions, giving = functions_of(trees), set(GIVING)
    giving |= {name for name, every in functions.items() if any(is_gate(each.returns) for each in every)}
    home = {each: name for name, tree in trees.items() for each in nodes(tree) if isinstance(each, ast.arg)}
    gates = {name: {"gate"} for name in trees}
    for each, name in home.items():
        if is_gate(each.annotation):
            gates[name].add(each.arg)
    before = -1
    while before < (before := len(giving) + sum(map(len, gates.values()))):
        for name, tree in trees.items():
            mine = gates[name]
            for node in nodes(tree):
                for target, value in assigned_in(node):
                    if gives_gate(value, mine, giving):
                        # For example, this name is the attribute `_gate` in `self._gate = gate`.
                        mine.add(name_of(target))
                if isinstance(node, ast.Call):
                    for each in receiving(node, functions, mine, giving):
                        gates[home[each]].add(each.arg)
                if isinstance(node, ast.FunctionDef):
                    results = [each.value for each in nodes(node) if isinstance(each, ast.Return) and each.value]
                    if any(gives_gate(each, mine, giving) for each in results):
                        giving.add(node.name)
    return gates, giving


def uses_of_gates(tree: ast.AST, gates: set[str], giving: set[str]) -> list[tuple[str, ast.AST]]:
    """Return the names that can be steps in a file, with their nodes.

    These are attributes of gates, whether called or not, and functions that are called with gates.
    """
    found = list[tuple[str, ast.AST]]()
    for node in nodes(tree):
        if isinstance(node, ast.Attribute):
            of_class = isinstance(node.value, ast.Name) and node.value.id.endswith("Gate")
            if of_class or gives_gate(node.value, gates, giving):
                found.append((node.attr, node))
        if isinstance(node, ast.Call):
            with_gate = any(gives_gate(each, gates, giving) for each in arguments(node))
            if with_gate and name_of(node) == "getattr":
                found.append((str(getattr(node.args[1], "value", "getattr")), node))
            elif with_gate:
                found.append((name_of(node), node.func))
    return [(name, node) for name, node in found if FIELDS.get(name) not in mentioned_types(tree)]


@cache
def mentioned_types(tree: ast.AST) -> set[str]:
    """Return the classes that a file imports."""
    return {each.name for node in nodes(tree) if isinstance(node, ast.ImportFrom) for each in node.names}


def steps_outside_of_passes(trees: dict[str, ast.AST]) -> set[str]:
    """Return the uses of steps of gates outside of the `run` of a `GateCall` and the functions that `run` calls.

    Args:
        trees: The syntax trees of files, by their names.
    """
    steps, inside, named = steps_of_gates(), set[int](), set[str]()
    gates, giving = names_of_gates(trees)
    uses = list[tuple[str, str, str]]()
    for tree in trees.values():
        for node in nodes(tree):
            if isinstance(node, ast.Call) and name_of(node) in ("GateCall", "one_pass"):
                named |= mentioned(node.args[0])
                # Without a lambda, the argument is evaluated before the pass.
                if isinstance(node.args[0], ast.Lambda):
                    inside |= {id(each) for each in nodes(node.args[0].body)}
    for name, tree in trees.items():
        around = dict[int, str]()
        for function in nodes(tree):
            if isinstance(function, ast.FunctionDef):
                around |= {id(node): function.name for node in nodes(function)}
        found = uses_of_gates(tree, gates[name], giving)
        uses += [(name, around.get(id(node), ""), use) for use, node in found if id(node) not in inside]
    outside, size = set[str](), -1
    while size < len(steps):
        size = len(steps)
        for name, function, step in uses:
            if step in steps or step == "getattr":
                # If a pass calls the function that contains this use, calls of this function are steps, too.
                if function in named:
                    steps.add(function)
                else:
                    outside.add(f"{name}: {function} uses {step}")
    return outside


PATHS = {path: str(path.relative_to(SOURCE)) for path in sorted(SOURCE.rglob("*.py"))}
RELEASING = {
    name: ast.parse(path.read_text())
    for path, name in PATHS.items()
    if not name.startswith(("privacy/", "engine/", "kernels/"))
}
"""The syntax trees of the files that do not implement gates, engines or kernels."""


def test_steps_of_gates_run_only_in_passes():
    """All files outside of `privacy`, `engine` and `kernels` use the steps of gates only in passes."""
    assert steps_outside_of_passes(RELEASING) == set()


PROFILE, SERIES, MODEL = "mechanisms/profile/releasing.py", "mechanisms/series/series.py", "papers/ngram_model.py"
KEYS, NIGHTS, SYMBOLS = "    state = run_passes(", "        return run_passes(record", "        gate.open("
"""The beginnings of lines in these files. The test adds steps before these lines, which are outside of passes."""
ADDED = [
    (PROFILE, "    sets, items =", "gate.counts(None)", "counts"),
    (PROFILE, KEYS, "_found_in_rounds(plan, corpus, seed, gate)", "_found_in_rounds"),
    (PROFILE, KEYS, "add = gate.few; add(corpus)", "few"),
    (PROFILE, KEYS, "partial(gate.sizes, corpus)", "sizes"),
    (PROFILE, KEYS, "list(map(gate.more, [1]))", "more"),
    (PROFILE, KEYS, "getattr(gate, 'rest')(corpus)", "rest"),
    (PROFILE, KEYS, "getattr(gate, name)(corpus)", "getattr"),
    (PROFILE, KEYS, "GateCall(partial(len, gate.few(corpus)), int)", "few"),
    (PROFILE, KEYS, "for each in (gate,): each.more(1)", "more"),
    (PROFILE, KEYS, "[each.more(1) for each in [gate]]", "more"),
    (PROFILE, KEYS, "(lambda other: other.more(1))(gate)", "more"),
    (PROFILE, KEYS, "cast('KeysGate', gate).more(1)", "more"),
    (PROFILE, "class _Keyed", "def other(a, b): b.more(1)\ndef third(gate): other(1, gate)", "more"),
    (PROFILE, "class _Keyed", "def other(a, b): b.more(1)\ndef third(gate): other(b=gate, a=1)", "more"),
    (PROFILE, "class _Keyed", "def other(a, b): b.more(1)\ndef third(gate): partial(other, 1, gate)", "more"),
    ("mechanisms/rounds/menu.py", "    gate.open(engine)", "step.chosen(gate)", "released_in_rounds"),
    ("mechanisms/sequences/plan.py", SYMBOLS, "self.begin(seed)[0].variety(1, 2, 3)", "variety"),
    ("mechanisms/ngrams/releasing.py", "    state = run", "other = Runner(corpus, gate); other.execute(0)", "execute"),
    (MODEL, SYMBOLS, "other = gate; other.lengths(1)", "lengths"),
    (SERIES, NIGHTS, "_gate(plan, secret).missed(pools, 1)", "missed"),
    (SERIES, NIGHTS, "NightsGate(plan.certificate.to_json(), secret).missed(pools, 1)", "missed"),
    (SERIES, NIGHTS, "NightsGate.missed(1, pools, 1)", "missed"),
    (SERIES, NIGHTS, "gate_of('', secret).missed(pools, 1)", "missed"),
    (SERIES, NIGHTS, "other = gate_of('', secret); other.complete(pools, 1)", "complete"),
    (SERIES, "class Series", "def other(): return NightsGate('', 1)\ndef third(): other().missed(1, 1)", "missed"),
]
"""A file, the beginning of a line, the code to add above this line, and the step that this code uses."""


@pytest.mark.parametrize(("file", "line", "added", "step"), ADDED)
def test_a_step_outside_of_passes_is_detected(file, line, added, step):
    """`steps_outside_of_passes` finds a step that is added to a mechanism or to a paper."""
    text = (SOURCE / file).read_text()
    assert f"\n{line}" in text
    margin = " " * (len(line) - len(line.lstrip()))
    changed = ast.parse(text.replace(f"\n{line}", f"\n{margin}{added}\n{line}"))
    assert {each.split()[-1] for each in steps_outside_of_passes({**RELEASING, file: changed})} == {step}
