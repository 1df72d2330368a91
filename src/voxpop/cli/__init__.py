"""The command line: `voxpop items`, `sequences`, `plan`, `show` and `demo`."""

from voxpop.cli.entry import main

__all__ = ["main"]
