"""The lengths of searches and audits, which are full in `make trust` (VOXPOP_FULL=1) and otherwise shorter."""

import os

FULL = "VOXPOP_FULL" in os.environ


def at_length(full: int, shorter: int) -> int:
    """Return the full or the shorter length. A shorter run checks the same assertions."""
    return full if FULL else shorter
