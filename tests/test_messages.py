"""Every error message of the package contains the problem, the requirement, and the next step.

CONTRIBUTING describes this form. The messages are collected from the `raise` statements, so no new message is missed.
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
    """Return the module of a file, or None if it needs an optional library that is missing."""
    parts = path.relative_to(source.parent).with_suffix("").parts
    try:
        return importlib.import_module(".".join(parts))
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in OPTIONAL:
            raise
    return None


def text_of(node, names):
    """Return a message with its placeholders in braces. Constants of the module are filled in."""
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
    """Return each message with its place and its class."""
    found = []
    for source, path in [(folder, path) for folder in SOURCES for path in sorted(folder.rglob("*.py"))]:
        raised = [node.exc for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Raise)]
        raised = [each for each in raised if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)]
        raised = [each for each in raised if each.func.id in RAISED and each.args]
        names = vars(module_of(path, source) or builtins) if raised else {}
        place = path.relative_to(source if source is SOURCES[0] else source.parent).as_posix()
        found += [(f"{place}:{each.lineno}", each.func.id, text_of(each.args[0], names)) for each in raised]
    return found


MESSAGES = messages()


def test_messages_are_found():
    """Messages are found in every package that reads arguments."""
    assert len(MESSAGES) > 300
    packages = {"reading", "engine", "mechanisms", "privacy", "cli", "ledger", "voxpop_flower"}
    assert packages <= {place.split("/")[0] for place, _, _ in MESSAGES}


@pytest.mark.parametrize(("place", "kind", "text"), MESSAGES, ids=[place for place, _, _ in MESSAGES])
def test_each_message_has_the_required_form(place, kind, text):
    """A message is short and plain, ends as a sentence, and contains a requirement or a next step."""
    own = re.sub(r"\{[^{}\"]*\}", "x", text)
    assert len(own.split()) <= MOST_WORDS, own
    assert not VAGUE.search(own), own
    if kind == "InternalError":
        assert not own.endswith("."), "InternalError ends the sentence itself"
    elif re.sub(r"x|\W", "", own):  # Otherwise, the whole text belongs to another message.
        assert re.search(r"(\.|x)$", own), own
        assert STEP.search(own), own


def test_internal_errors_ask_for_a_report():
    """The next step of every internal error is the same."""
    assert str(errors.InternalError("a round ran twice")) == "a round ran twice; please report the call."


@pytest.mark.parametrize(
    ("text", "why"),
    [("that failed.", "no step"), ("use {this} now", "no end"), ("this is an invalid value; use another.", "vague")],
)
def test_a_message_without_the_form_is_detected(text, why):
    """Messages without a step, an end or plain words fail."""
    with pytest.raises(AssertionError):
        test_each_message_has_the_required_form(
            "nowhere", "InputError", "a value was given. " + text if why != "no step" else text
        )
