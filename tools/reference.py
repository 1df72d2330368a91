"""The API reference, with tables and Sphinx directives for every public name in the `__all__` of each module.

A page of `docs/reference` contains the marker `<!-- public names of: MODULE -->`, and `docs/conf.py` replaces it.
`tests/test_docs.py` checks that the pages have a marker for each public module. `docs/reference/api.md` lists the same
names as plain Markdown, for readers on a code host. `python -m tools.reference` writes this page, and a test compares
it.
"""

import dataclasses
import inspect
import re
import types
import typing
from pathlib import Path
from typing import Any

import voxpop
import voxpop.testing

MODULES: dict[str, types.ModuleType] = {
    "voxpop": voxpop,
    "voxpop.papers": voxpop.papers,
    "voxpop.exports": voxpop.exports,
    "voxpop.known": voxpop.known,
    "voxpop.testing": voxpop.testing,
    "voxpop.errors": voxpop.errors,
}
"""The public modules, by the name that users write."""
PAGES = {name: name.rpartition(".")[2] for name in MODULES if name != "voxpop"}
"""The page of `docs/reference` of each module below voxpop."""
MARKER = re.compile(r"<!-- public names of: ([\w.]+) -->")


def public_names(module: str) -> list[str]:
    """Return the public names of a module, which are its `__all__` or its public classes."""
    found = MODULES[module]
    listed = getattr(found, "__all__", None)
    if listed is None:
        listed = [name for name, value in vars(found).items() if inspect.isclass(value) and value.__module__ == module]
    return [name for name in listed if not name.startswith("_")]


def with_public_names(text: str) -> str:
    """Return the text of a page with the names of a module in place of each marker."""
    return MARKER.sub(lambda marker: "\n".join([*table(marker[1]), *directives(marker[1])]), text)


def table(module: str) -> list[str]:
    """Return a Markdown table of the public names of a module with the first lines of their docstrings."""
    rows = []
    for name in public_names(module):
        value = getattr(MODULES[module], name)
        role = "class" if inspect.isclass(value) else "func" if callable(value) else None
        link = f"{{py:{role}}}`{module}.{name}`" if role else f"`{name}`"
        if f"{module}.{name}" in PAGES:
            link = f"[`{name}`]({PAGES[f'{module}.{name}']}.md)"
        rows.append(f"| {link} | {first_line(value)} |")
    return ["| name | description |", "|---|---|", *rows]


def directives(module: str) -> list[str]:
    """Return the lines with which Sphinx documents every public name of a module except modules."""
    lines = ["", "```{eval-rst}"]
    for name in public_names(module):
        value = getattr(MODULES[module], name)
        if inspect.ismodule(value):
            continue
        kind = "class" if inspect.isclass(value) else "function" if callable(value) else "data"
        lines += [f".. auto{kind}:: {module}.{name}"]
        if kind == "class":
            lines += ["   :members:"]
            if any(base.__module__.startswith("voxpop") for base in value.__mro__[1:]):
                lines += ["   :inherited-members: object, Exception"]
        lines += [""]
    return [*lines[:-1], "```"]


def first_line(value: Any) -> str:
    """Return the first line of a docstring, or an empty string for values without one."""
    documented = inspect.ismodule(value) or inspect.isclass(value) or callable(value)
    return (inspect.getdoc(value) or "").partition("\n")[0].replace("|", "\\|") if documented else ""


PLAIN = Path(__file__).resolve().parent.parent / "docs" / "reference" / "api.md"
"""The page of all signatures."""
WIDTH = 100
HEAD = """# Every public name, with its signature

`python -m tools.reference` writes this page from the package, and a test compares both. The other pages of the
[reference](README.md) have the complete docstrings once the site is built (`make docs`).
"""


def plain_page() -> str:
    """Return the page of all public names as plain Markdown."""
    parts = [HEAD]
    for module in MODULES:
        parts.append(f"\n## {module}\n")
        for name in public_names(module):
            value = getattr(MODULES[module], name)
            if inspect.isclass(value):
                parts += class_entry(name, value)
            elif callable(value):
                parts.append(f"\n### {name}\n\n{code(signature(name, value))}\n\n{plain(first_line(value))}\n")
            elif not inspect.ismodule(value):
                parts.append(f"\n### {name}\n\nA value of type `{type(value).__name__}`.\n")
    return "".join(parts)


def class_entry(name: str, kind: type) -> list[str]:
    """Return the Markdown of a class, with its signature, its fields and its public methods."""
    head = name if issubclass(kind, BaseException) else signature(name, kind)
    parts = [f"\n### {name}\n\n{code(head)}\n\n{plain(first_line(kind))}\n"]
    rows = [(shown, text) for member in sorted(vars_of(kind)) for shown, text in member_row(kind, member)]
    if rows:
        parts.append("\n| member | description |\n|---|---|\n")
        parts += [f"| `{shown.replace('|', chr(92) + '|')}` | {text} |\n" for shown, text in rows]
    return parts


def vars_of(kind: type) -> set[str]:
    """Return the public methods and properties of a class that Voxpop defines, without the fields of dataclasses."""
    fields = {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    own = [base for base in kind.__mro__ if base.__module__.startswith("voxpop")]
    return {name for base in own for name in vars(base) if not name.startswith("_")} - fields


def member_row(kind: type, member: str) -> list[tuple[str, str]]:
    """Return the row of one member, or an empty row for values that are neither methods nor properties."""
    value = inspect.getattr_static(kind, member)
    if isinstance(value, property) or hasattr(value, "func"):
        return [(member, plain(first_line(getattr(value, "fget", None) or value.func)))]
    function = getattr(value, "__func__", value)
    return [(signature(member, function, None), plain(first_line(function)))] if inspect.isfunction(function) else []


def signature(name: str, value: Any, width: int | None = WIDTH) -> str:
    """Return the signature of a function or class without `self`, with one parameter per line if it is long."""
    found = inspect.signature(value)
    shown: list[str] = []
    for each in found.parameters.values():
        if each.name in ("self", "cls"):
            continue
        if each.kind is each.KEYWORD_ONLY and not any(part.startswith("*") for part in shown):
            shown.append("*")
        shown.append(parameter(each))
    returned = (
        "" if found.return_annotation in (found.empty, None, "None") else f" -> {type_text(found.return_annotation)}"
    )
    text = f"{name}({', '.join(shown)}){returned}"
    return (
        text
        if width is None or len(text) <= width
        else f"{name}(\n" + "".join(f"    {each},\n" for each in shown) + f"){returned}"
    )


def parameter(found: inspect.Parameter) -> str:
    """Return one parameter with its type and default."""
    stars = {found.VAR_POSITIONAL: "*", found.VAR_KEYWORD: "**"}.get(found.kind, "")
    kind = "" if found.annotation is found.empty else f": {type_text(found.annotation)}"
    default = "..." if repr(found.default).startswith("<") else repr(found.default)
    return f"{stars}{found.name}{kind}" + ("" if found.default is found.empty else f" = {default}")


def type_text(annotation: Any) -> str:
    """Return a type as users write it, without names of modules. The result is the same in every version of Python."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if isinstance(annotation, str):
        text = annotation
    elif annotation is type(None):
        text = "None"
    elif origin in (typing.Union, types.UnionType):
        text = " | ".join(map(type_text, arguments))
    elif origin is typing.Literal:
        text = f"Literal[{', '.join(map(repr, arguments))}]"
    elif isinstance(annotation, list):
        text = f"[{', '.join(map(type_text, annotation))}]"
    elif origin is typing.Annotated:
        text = type_text(arguments[0])
    elif origin is not None and arguments:
        text = f"{origin.__name__}[{', '.join(map(type_text, arguments))}]"
    else:
        text = getattr(annotation, "__name__", None) or inspect.formatannotation(annotation)
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])|~|typing\.", "", text)


def code(text: str) -> str:
    """Return a signature as a block of Markdown."""
    return f"```text\n{text}\n```"


def plain(text: str) -> str:
    """Return a line of a docstring as Markdown on one line."""
    return re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text).replace("``", "`")


if __name__ == "__main__":
    PLAIN.write_text(plain_page())
