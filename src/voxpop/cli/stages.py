"""What the operator sees while a command runs; nothing of it enters a release."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Say on a terminal what is being done and how long it took; elsewhere nothing."""
    if not sys.stderr.isatty():
        yield
        return
    begun = perf_counter()
    sys.stderr.write(f"{name} ...")
    sys.stderr.flush()
    try:
        yield
        sys.stderr.write(f" {perf_counter() - begun:.1f} s")
    finally:
        sys.stderr.write("\n")
