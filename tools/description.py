"""The description on a package index: README.md for readers without a checkout, and the addresses of the project.

The address of the repository is set once, as `repository` in `[tool.voxpop]` of pyproject.toml. If it is empty, no
address is published: links become plain text and pictures are left out, so that no link leads to a missing page.
`hatch_build.py` calls this module whenever a wheel or an sdist is built.
"""

import re
from collections.abc import Mapping
from typing import Any

PICTURE = re.compile(r"!\[[^\]]*\]\((?!https?:)([^)]+)\)")
LINKED_PICTURE = re.compile(rf"\[{PICTURE.pattern}\]\([^)]+\)")
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|mailto:|#)[^)]+\)")
TARGET = re.compile(r"\]\((?!https?:|mailto:|#)([^)]+)\)")
PAGES = {"Documentation": "docs/index.md", "Changelog": "CHANGELOG.md", "Security": "SECURITY.md"}


def address_of(pyproject: Mapping[str, Any]) -> str:
    """Return the address of the repository without a slash at its end; empty if it is not set."""
    address: str = pyproject["tool"]["voxpop"]["repository"]
    return address.rstrip("/")


def urls(address: str) -> dict[str, str]:
    """Return the addresses of the project, by name; none without a repository."""
    if not address:
        return {}
    return {"Homepage": address} | {name: f"{address}/blob/main/{page}" for name, page in PAGES.items()}


def described(text: str, address: str) -> str:
    """Return a page without links that only work in a checkout.

    Args:
        text: text of README.md.
        address: address of the repository, or empty.
    """
    if not address:
        return LINK.sub(r"\1", PICTURE.sub("", LINKED_PICTURE.sub("", text)))
    text = PICTURE.sub(lambda found: found[0].replace(f"({found[1]})", f"({address}/raw/main/{found[1]})"), text)
    return TARGET.sub(rf"]({address}/blob/main/\1)", text)
