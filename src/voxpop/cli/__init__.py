"""The command line."""

from voxpop.cli.entry import console, main

__all__ = ["console", "main"]
