"""The server of voxpop, under the name that pyproject.toml gives it."""

from voxpop_flower import server as app

__all__ = ["app"]
