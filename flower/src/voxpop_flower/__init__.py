"""Heavy hitters over Flower, for a few honest organisations.

`client` is the app of a node, and `server` is the app of the server. `client_of` returns the app of a node whose table
is created in code.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voxpop_flower.node import client as client
    from voxpop_flower.node import client_of as client_of
    from voxpop_flower.serving import server as server

__all__ = ["client", "client_of", "server"]


def __getattr__(name: str) -> Any:
    """Import Flower on first use only."""
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"voxpop_flower.{'serving' if name == 'server' else 'node'}"), name)
