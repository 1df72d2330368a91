"""The part of the build that depends on one setting: the long description and the project's addresses."""

import sys
import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))  # an isolated build does not have the checkout on its path

from tools.description import address_of, described, urls  # noqa: E402


class CustomMetadataHook(MetadataHookInterface):
    """The hook that sets the fields that are dynamic in pyproject.toml."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set `readme` and `urls`."""
        address = address_of(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8")))
        text = described((ROOT / "README.md").read_text(encoding="utf-8"), address)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = urls(address)
