"""Where uniform bits come from, as the private side sees it, and what its draws are called.

The names stand here once: memory, limited memory and Spark derive their keys from them, so a user draws the same
samples and has the same place on all three.
"""

from typing import Protocol

from voxpop.arrays import Bytes, Int64s, Uint64s

ALL_LENGTHS = "all lengths"
"""The name of the one order that a walk through lengths has."""
WORDS = "words"
"""The purpose under which words get the 64 bits that samples name them by."""


class Draws(Protocol):
    """Whatever yields uniform bits by purpose: the secret of the release."""

    def draws(self, purpose: str, first: Uint64s, second: Uint64s | int) -> Uint64s:
        """Return (n, 2) uniform 64-bit words, a function of the purpose and of each (first, second)."""

    def text_draws(self, purpose: str, data: Bytes, starts: Int64s) -> Uint64s:
        """Return (n, 2) uniform 64-bit words, a function of the purpose and of the bytes of each text."""


def sample_of(pass_name: str) -> str:
    """Return the purpose of the samples of one weighing."""
    return f"sample/{pass_name}"


def order_of(pass_name: str) -> str:
    """Return the purpose of one order of users."""
    return f"order/{pass_name}"
