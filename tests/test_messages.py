"""Tests that every error message contains the problem, the requirement, and the next step (see CONTRIBUTING).

The messages are collected from `raise` statements, so tests include each new message.
"""

import ast
import builtins
import importlib
import re
from pathlib import Path

import pytest

import voxpop
from voxpop import errors

SOURCES = [Path(voxpop.__file__).parent, Path(voxpop.__file__).parents[2] / "flower" / "src" / "voxpop_flower"]
RAISED = {name for name in vars(errors) if name.endswith("Error")}
OPTIONAL = {"pyspark", "flwr", "cryptography", "sklearn"}
MOST_WORDS = 80
STEP = re.compile(
    r"\b(must|pip install|(?i:add|ask|call|cast|change|check|choose|close|compose|correct|create|declare|download"
    r"|execute|fill|give|install|leave|list|lower|make|name|open|pass|put|raise|read|remove|rename|repeat|request|restore|run"
    r"|save|set|start|state|try|use|wait|write)\b)"
)
"""The requirement ("must"), or an instruction in the imperative."""
VAGUE = re.compile(r"\b(invalid|illegal|bad|wrong|oops|sorry|nobody|somebody|unfortunately)\b|!", re.IGNORECASE)


def module_of(path, source):
    """Return the module of a file, or None if the module needs an optional library that is missing."""
    parts = path.relative_to(source.parent).with_suffix("").parts
    try:
        return importlib.import_module(".".join(parts))
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in OPTIONAL:
            raise
    return None


def text_of(node, names):
    """Return a message with its placeholders in braces. Constants of the module are replaced by their values."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part, names) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return text_of(node.value, names)
    if isinstance(node, ast.BinOp):
        return text_of(node.left, names) + text_of(node.right, names)
    if isinstance(node, ast.IfExp):
        return text_of(node.body, names)
    if isinstance(node, ast.Name) and isinstance(names.get(node.id), str):
        return names[node.id]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"format", "replace"}:
        return text_of(node.func.value, names)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        held = getattr(names.get(node.value.id), node.attr, None)
        if isinstance(held, str):
            return held
    return "{" + ast.unparse(node).replace("\n", " ") + "}"


def messages():
    """Return each message with its location and its error class."""
    found = []
    for source, path in [(folder, path) for folder in SOURCES for path in sorted(folder.rglob("*.py"))]:
        text = path.read_text()
        if "raise " not in text:
            continue
        raised = [node.exc for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Raise)]
        raised = [each for each in raised if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)]
        raised = [each for each in raised if each.func.id in RAISED and each.args]
        names = vars(module_of(path, source) or builtins) if raised else {}
        place = path.relative_to(source if source is SOURCES[0] else source.parent).as_posix()
        found += [(f"{place}:{each.lineno}", each.func.id, text_of(each.args[0], names)) for each in raised]
    return found


def faults(kind, text):
    """Return the parts of the required form that a message lacks."""
    own = re.sub(r"\{[^{}\"]*\}", "x", text)
    found = ["it is too long"] if len(own.split()) > MOST_WORDS else []
    found += ["it is vague"] if VAGUE.search(own) else []
    if kind == "InternalError":
        found += ["InternalError ends the sentence itself"] if own.endswith(".") else []
    elif re.sub(r"x|\W", "", own):  # Otherwise, the message consists only of placeholders.
        found += [] if re.search(r"(\.|x)$", own) else ["it does not end as a sentence"]
        found += [] if STEP.search(own) else ["it has no requirement and no next step"]
    return found


def test_each_message_has_the_required_form():
    """A message is short and specific, ends as a sentence, and contains a requirement or a next step."""
    every = messages()
    assert len(every) > 300
    packages = {"reading", "engine", "mechanisms", "privacy", "cli", "ledger", "voxpop_flower"}
    assert packages <= {place.split("/")[0] for place, _, _ in every}
    assert [(place, text, lacks) for place, kind, text in every if (lacks := faults(kind, text))] == []


def test_internal_errors_ask_for_a_report():
    """Every internal error has the same next step."""
    assert str(errors.InternalError("a round ran twice")) == "a round ran twice; please report the call."


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        ("a value was given. that failed.", "it has no requirement and no next step"),
        ("a value was given. use {this} now", "it does not end as a sentence"),
        ("this is an invalid value; use another.", "it is vague"),
        ("use another. " + "word " * MOST_WORDS + "word.", "it is too long"),
    ],
)
def test_a_message_without_the_required_form_is_detected(text, lacks):
    """Messages that have no next step or final punctuation mark, are vague, or are too long are rejected."""
    assert faults("InputError", text) == [lacks]
    assert faults("InternalError", "this ends.") == ["InternalError ends the sentence itself"]
