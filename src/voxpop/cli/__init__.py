"""The command line: `voxpop items`, `ngrams`, `hitters`, `sequences`, `plan`, `show` and `demo`."""

from voxpop.cli.entry import console, main

__all__ = ["console", "main"]
