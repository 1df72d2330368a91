"""The API reference: tables and Sphinx directives for every public name, generated from the `__all__` of each module.

A page of `docs/reference` contains the marker `<!-- public names of: MODULE -->`, and `docs/conf.py` replaces it.
`tests/test_docs.py` checks that the pages have a marker for each public module.
"""

import inspect
import re
from types import ModuleType
from typing import Any

import voxpop
import voxpop.testing

MODULES: dict[str, ModuleType] = {
    "voxpop": voxpop,
    "voxpop.weightings": voxpop.weightings,
    "voxpop.papers": voxpop.papers,
    "voxpop.exports": voxpop.exports,
    "voxpop.testing": voxpop.testing,
    "voxpop.errors": voxpop.errors,
}
"""The public modules, by the name that users write."""
PAGES = {name: name.rpartition(".")[2] for name in MODULES if name != "voxpop"}
"""The page of `docs/reference` of each module below voxpop."""
MARKER = re.compile(r"<!-- public names of: ([\w.]+) -->")


def public_names(module: str) -> list[str]:
    """Return the public names of a module: its `__all__`, or its public classes."""
    found = MODULES[module]
    listed = getattr(found, "__all__", None)
    if listed is None:
        listed = [name for name, value in vars(found).items() if inspect.isclass(value) and value.__module__ == module]
    return [name for name in listed if not name.startswith("_")]


def with_public_names(text: str) -> str:
    """Return the text of a page with the names of a module in place of each marker."""
    return MARKER.sub(lambda marker: "\n".join([*table(marker[1]), *directives(marker[1])]), text)


def table(module: str) -> list[str]:
    """Return a Markdown table of the public names of a module with their first lines."""
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
    """Return the lines that let Sphinx document every public name of a module except modules."""
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
    """Return the first line of a docstring, or nothing for values without one."""
    documented = inspect.ismodule(value) or inspect.isclass(value) or callable(value)
    return (inspect.getdoc(value) or "").partition("\n")[0].replace("|", "\\|") if documented else ""
