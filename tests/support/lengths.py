"""How long a search or an audit runs: at full length in `make trust` (VOXPOP_FULL=1), and shorter elsewhere."""

import os

FULL = "VOXPOP_FULL" in os.environ


def at_length(full: int, shorter: int) -> int:
    """Return one of two lengths; a shorter run asserts the same."""
    return full if FULL else shorter
