"""The node of voxpop, under the name that pyproject.toml gives it."""

from voxpop.mechanisms.heavy_hitters.flower import client as app

__all__ = ["app"]
