"""The node of voxpop, under the name that pyproject.toml gives it."""

from voxpop.mechanisms.heavy_hitters.flower import client_app

app = client_app.app
