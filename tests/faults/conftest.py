"""The command line, as in tests/cli."""

from cli.conftest import voxpop

__all__ = ["voxpop"]
