"""Import the fixture `voxpop` of tests/cli, which runs the command line."""

from cli.conftest import voxpop

__all__ = ["voxpop"]
