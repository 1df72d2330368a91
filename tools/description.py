"""The description for a package index, which is README.md for readers without a checkout, and the project's addresses.

The address of the repository is set once, as `repository` in `[tool.voxpop]` of pyproject.toml. If it is empty, no
address is published. Links become plain text and pictures are omitted, so that no link leads to a missing page.
`hatch_build.py` calls this module whenever a wheel or an sdist is built. `python -m tools.description ADDRESS` sets the
address, and writes it into the commands of all pages.
"""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PICTURE = re.compile(r"!\[[^\]]*\]\((?!https?:)([^)]+)\)")
LINKED_PICTURE = re.compile(rf"\[{PICTURE.pattern}\]\([^)]+\)")
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|mailto:|#)[^)]+\)")
TARGET = re.compile(r"\]\((?!https?:|mailto:|#)([^)]+)\)")
PAGES = {"Documentation": "docs/index.md", "Changelog": "CHANGELOG.md", "Security": "SECURITY.md"}


def address_of(pyproject: Mapping[str, Any]) -> str:
    """Return the address of the repository without a final slash, or "" if it is not set."""
    address: str = pyproject["tool"]["voxpop"]["repository"]
    return address.rstrip("/")


def urls(address: str) -> dict[str, str]:
    """Return the addresses of the project by name. Without a repository, the result is empty."""
    if not address:
        return {}
    return {"Homepage": address} | {name: f"{address}/blob/main/{page}" for name, page in PAGES.items()}


def described(text: str, address: str) -> str:
    """Return a page without links that only work in a checkout.

    Args:
        text: The text of README.md.
        address: The address of the repository, or an empty string.
    """
    if not address:
        return LINK.sub(r"\1", PICTURE.sub("", LINKED_PICTURE.sub("", text)))
    text = PICTURE.sub(lambda found: found[0].replace(f"({found[1]})", f"({address}/raw/main/{found[1]})"), text)
    return TARGET.sub(rf"]({address}/blob/main/\1)", text)


ROOT = Path(__file__).resolve().parent.parent
WITH_ADDRESS = ("README.md", "CONTRIBUTING.md", "docs/quickstart.md")
"""The pages with commands that contain the address of the repository, or ADDRESS while it is not set."""


def set_address(address: str) -> None:
    """Write the address of the repository into pyproject.toml and into the commands of the pages."""
    setting = ROOT / "pyproject.toml"
    text = setting.read_text(encoding="utf-8")
    old = re.search(r'^repository = "(.*)"$', text, re.MULTILINE)
    assert old is not None
    setting.write_text(text.replace(old[0], f'repository = "{address}"'), encoding="utf-8")
    for name in WITH_ADDRESS:
        page = ROOT / name
        page.write_text(page.read_text(encoding="utf-8").replace(old[1] or "ADDRESS", address), encoding="utf-8")


if __name__ == "__main__":
    set_address(sys.argv[1].rstrip("/"))
