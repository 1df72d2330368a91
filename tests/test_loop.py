"""Tests that steps of gates run only in passes, which `run_passes` executes."""

import ast
import re
from collections.abc import Set
from functools import cache
from pathlib import Path

import pytest

import voxpop

SOURCE = Path(voxpop.__file__).parent
CONNECTING = {"of", "open"}
"""The methods that connect a gate with its data. They return no noisy number."""
GIVING = {"begin", "gate_of", "later", "of", "rounds", "words"}
"""The functions and methods that return a gate, in addition to those whose annotation or result is a gate."""
OF_OBJECTS = GIVING - {"begin", "gate_of"}
"""Those of these names that many objects have, so that a call returns a gate only if the object is a gate."""
SAME = {"cast", "copy", "iter", "list", "next", "tuple"}
"""The functions that return one of their arguments or an object that contains it."""
FIELDS = {"numbers": "PathsGate"}
"""Public fields of gates that have the name of a step of another gate. Files that import the gate may read them."""
COLLECTING = (
    ast.Tuple | ast.List | ast.Set | ast.Dict | ast.Starred | ast.Subscript | ast.IfExp | ast.BoolOp | ast.NamedExpr
)
"""The expressions that contain the values of their parts, or are equal to one of them."""


@cache
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
    return tuple(each for each in ast.walk(tree) if not isinstance(each, ast.expr_context))


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


def gives_gate(value: ast.AST, gates: Set[str], giving: Set[str]) -> bool:
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
        if name.endswith("Gate") or (name in giving and name not in OF_OBJECTS):
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


@cache
def functions_in(tree: ast.AST) -> list[tuple[str, ast.FunctionDef]]:
    """Return the functions of a file with their names, and constructors with the names of their classes."""
    found = list[tuple[str, ast.FunctionDef]]()
    for node in nodes(tree):
        if isinstance(node, ast.FunctionDef):
            found.append((node.name, node))
        elif isinstance(node, ast.ClassDef):
            found += [(node.name, each) for each in node.body if getattr(each, "name", "") == "__init__"]
    return found


@cache
def functions_that_give(tree: ast.AST) -> set[str]:
    """Return the names of functions in a file whose annotation is a gate."""
    return {name for name, function in functions_in(tree) if is_gate(function.returns)}


@cache
def parameters_that_are_gates(tree: ast.AST) -> frozenset[str]:
    """Return the names of parameters in a file whose annotation is a gate."""
    return frozenset(each.arg for each in nodes(tree) if isinstance(each, ast.arg) and is_gate(each.annotation))


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


def receiving(call: ast.Call, gates: Set[str], giving: Set[str]) -> set[tuple[str, int | str | None]]:
    """Return the parameters that receive a gate in a call or in `partial`, as a function and a position or a name."""
    given, called = list(call.args), name_of(call)
    places = [place for place, each in enumerate(given) if gives_gate(each, gates, giving)]
    if called == "partial" and given:
        called, places = name_of(given[0]), [place - 1 for place in places if place]
    named = [each.arg for each in call.keywords if gives_gate(each.value, gates, giving)]
    return {(called, each) for each in [*places, *named]}


def lambdas_of(call: ast.Call) -> set[str]:
    """Return the parameters of the lambdas in a call, which may receive a gate that is another argument."""
    return {each.arg for node in [call.func, *call.args] if isinstance(node, ast.Lambda) for each in node.args.args}


def parameter_at(function: ast.FunctionDef, place: int | str | None) -> str | None:
    """Return the name of a parameter from its position or its name, or None if the function does not have it."""
    own = [each.arg for each in function.args.args if each.arg not in ("self", "cls")]
    if isinstance(place, int):
        return own[place] if place < len(own) else None
    return place if place in own + [each.arg for each in function.args.kwonlyargs] else None


@cache
def parts_of(
    tree: ast.AST,
) -> tuple[list[tuple[str, ast.AST]], list[ast.Call], list[tuple[str, list[ast.AST]]]]:
    """Return the assignments (name, value), the calls, and the functions with their results in a file."""
    assigned = [(name_of(target), value) for node in nodes(tree) for target, value in assigned_in(node)]
    calls = [node for node in nodes(tree) if isinstance(node, ast.Call)]
    returned = [
        (node.name, [each.value for each in nodes(node) if isinstance(each, ast.Return) and each.value])
        for node in nodes(tree)
        if isinstance(node, ast.FunctionDef)
    ]
    return assigned, calls, returned


@cache
def after_reading(
    tree: ast.AST, gates: frozenset[str], giving: frozenset[str]
) -> tuple[frozenset[str], frozenset[str], frozenset[tuple[str, int | str | None]]]:
    """Return more names of gates and functions, after reading a file once, and parameters that receive gates.

    Only one of many files differs between the tests, so most results are the results of an earlier test.

    Args:
        tree: The syntax tree of the file.
        gates: The known names of gates in the file.
        giving: The known names of functions that return gates.
    """
    assigned, calls, returned = parts_of(tree)
    mine, received = set(gates), set[tuple[str, int | str | None]]()
    # For example, the name is the attribute `_gate` in `self._gate = gate`.
    mine |= {name for name, value in assigned if gives_gate(value, mine, giving)}
    for call in calls:
        if found := receiving(call, mine, giving):
            received |= found
            mine |= lambdas_of(call) if name_of(call) != "partial" else set()
    giving |= {name for name, results in returned if any(gives_gate(each, mine, giving) for each in results)}
    return frozenset(mine), giving, frozenset(received)


def names_of_gates(trees: dict[str, ast.AST]) -> tuple[dict[str, frozenset[str]], frozenset[str]]:
    """Return the names of gates and of objects that contain gates in each file, and the functions that return gates.

    Args:
        trees: The syntax trees of files, by their names.
    """
    functions: dict[str, list[tuple[str, ast.FunctionDef]]] = {}
    for file, tree in trees.items():
        for name, function in functions_in(tree):
            functions.setdefault(name, []).append((file, function))
    giving = frozenset(GIVING).union(*map(functions_that_give, trees.values()))
    gates = {file: frozenset({"gate"}) | parameters_that_are_gates(tree) for file, tree in trees.items()}
    before = -1
    while before < (before := len(giving) + sum(map(len, gates.values()))):
        for file, tree in trees.items():
            gates[file], giving, received = after_reading(tree, gates[file], giving)
            for called, place in received:
                for home, function in functions.get(called, ()):
                    if name := parameter_at(function, place):
                        gates[home] |= {name}
    return gates, giving


@cache
def uses_of_gates(tree: ast.AST, gates: frozenset[str], giving: frozenset[str]) -> list[tuple[str, ast.AST]]:
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


@cache
def in_passes(tree: ast.AST) -> tuple[set[str], set[int]]:
    """Return the names in the `run` of each `GateCall` of a file, and the identities of the nodes of these lambdas."""
    named, inside = set[str](), set[int]()
    for node in nodes(tree):
        if isinstance(node, ast.Call) and name_of(node) in ("GateCall", "one_pass"):
            named |= mentioned(node.args[0])
            # Without a lambda, the argument is evaluated before the pass.
            if isinstance(node.args[0], ast.Lambda):
                inside |= {id(each) for each in nodes(node.args[0].body)}
    return named, inside


@cache
def innermost_functions(tree: ast.AST) -> dict[int, str]:
    """Return the name of the innermost function around each node of a file, by the identity of the node."""
    around = dict[int, str]()
    for function in nodes(tree):
        if isinstance(function, ast.FunctionDef):
            around |= {id(node): function.name for node in nodes(function)}
    return around


def steps_outside_of_passes(trees: dict[str, ast.AST]) -> set[str]:
    """Return the uses of steps of gates outside of the `run` of a `GateCall` and the functions that `run` calls.

    Args:
        trees: The syntax trees of files, by their names.
    """
    steps = set(steps_of_gates())
    gates, giving = names_of_gates(trees)
    named = set[str]().union(*(in_passes(tree)[0] for tree in trees.values()))
    uses = list[tuple[str, str, str]]()
    for name, tree in trees.items():
        inside, around = in_passes(tree)[1], innermost_functions(tree)
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


@cache
def releasing() -> dict[str, ast.AST]:
    """Return the syntax trees of the files that do not implement gates, engines or kernels."""
    paths = {path: str(path.relative_to(SOURCE)) for path in sorted(SOURCE.rglob("*.py"))}
    return {
        name: ast.parse(path.read_text())
        for path, name in paths.items()
        if not name.startswith(("privacy/", "engine/", "kernels/"))
    }


def test_steps_of_gates_run_only_in_passes():
    """All files outside of `privacy`, `engine` and `kernels` use the steps of gates only in passes."""
    assert steps_outside_of_passes(releasing()) == set()


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
    assert {each.split()[-1] for each in steps_outside_of_passes({**releasing(), file: changed})} == {step}
