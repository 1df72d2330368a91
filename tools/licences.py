"""Write the licences of all packages that voxpop installs to docs/licences.md.

With --check, the page is compared instead of written.
"""

import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "licences.md"
ALLOWED = re.compile(
    r"MIT|BSD|Apache|ISC|PSF|Python Software Foundation|MPL-2\.0|Mozilla Public License 2\.0|0BSD", re.I
)
FORBIDDEN = re.compile(r"\bA?GPL|Affero|SSPL|proprietary", re.I)
HEAD = """# Licences

Voxpop is Apache-2.0. The table lists the packages that it needs, with the licences that they declare.
`python -m tools.licences` writes the table, and a test checks it. No licence forbids use in closed-source software.

| package | licence |
|---|---|
"""


def required() -> dict[str, str]:
    """Return the licence of each package that voxpop needs, directly or indirectly, by name."""
    found: dict[str, str] = {}
    waiting = ["voxpop"]
    while waiting:
        try:
            package = distribution(waiting.pop())
        except PackageNotFoundError:
            continue  # needed only on another system or Python version
        name = package.metadata["Name"].lower().replace("_", "-")
        if name in found:
            continue
        found[name] = licence_of(package)
        needs = [Requirement(each) for each in package.requires or []]
        waiting += [each.name for each in needs if each.marker is None or each.marker.evaluate({"extra": ""})]
    del found["voxpop"]
    return dict(sorted(found.items()))


def licence_of(package: Distribution) -> str:
    """Return the licence of a package from its expression, its classifiers, or the first line of its text."""
    stated = package.metadata.get("License-Expression")
    kinds = [each.split(" :: ")[-1] for each in package.metadata.get_all("Classifier", []) if "License ::" in each]
    text = (package.metadata.get("License") or "not stated").strip().splitlines()[0]
    return stated or ", ".join(kinds) or text


def main() -> int:
    """Write or check the page, print errors and return the exit code."""
    licences = required()
    wrong = [name for name, said in licences.items() if FORBIDDEN.search(said) or not ALLOWED.search(said)]
    if wrong:
        print(f"licences to look at: {', '.join(f'{name} ({licences[name]})' for name in wrong)}")
        return 1
    page = HEAD + "".join(f"| {name} | {said} |\n" for name, said in licences.items())
    if "--check" not in sys.argv:
        PAGE.write_text(page)
    elif PAGE.read_text() != page:
        print("docs/licences.md is out of date: python -m tools.licences")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
