"""The node of voxpop, under the name that pyproject.toml gives it."""

from voxpop_flower import client as app

__all__ = ["app"]
