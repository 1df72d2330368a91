"""Tests of the names that apps import."""

import pytest

pytest.importorskip("flwr", reason="flwr is not installed: pip install voxpop-flower")

from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp


def test_repeated_imports_return_the_app_and_not_a_module():
    """A module with the same name as the app would replace the app after the module is imported."""
    for _ in range(2):
        from voxpop_flower import client, client_of, server

        assert type(server) is ServerApp
        assert type(client) is type(client_of()) is ClientApp
        import voxpop_flower.node
        import voxpop_flower.serving  # noqa: F401


def test_other_names_raise_an_attribute_error():
    """A name that is not an app raises an AttributeError, as in any module."""
    import voxpop_flower

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        voxpop_flower.nothing  # noqa: B018
