"""What the operator sees while a command runs; nothing of it enters a release."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Say on a terminal, once it is done, how long a stage took; elsewhere nothing."""
    begun = perf_counter()
    yield
    if sys.stderr.isatty():
        sys.stderr.write(f"{name}: {perf_counter() - begun:.1f} s\n")
