"""One sequence per user, and how often grams occur in them, one symbol longer at a time."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from voxpop.kernels.sequences import count_children, enter_children, open_root

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Rows = TypeVar("Rows")


class Counting:
    """A walk down a tree: `count` what continues its nodes, let noise be added, `enter` those that are continued.

    What continues node `n` with symbol `s` has the key `n * width + s`.
    """

    def __init__(self, sequences: Int32s, alphabet: int) -> None:
        """Begin at the root.

        Args:
            sequences: from `one_sequence_each`: private.
            alphabet: number of symbols.
        """
        self._symbols = sequences
        self._width = alphabet + 1
        self._places = np.empty(sequences.size, np.int32)
        self._keys = np.empty(0, np.int64)
        open_root(sequences, alphabet, self._places)

    @classmethod
    def at(cls, symbols: Int32s, places: Int32s, alphabet: int) -> "Counting":
        """Go on from where another one was."""
        counting = cls(symbols[:0], alphabet)
        counting._symbols, counting._places = symbols, places
        return counting

    @property
    def symbols(self) -> Int32s:
        """int32 by position."""
        return self._symbols

    @property
    def places(self) -> Int32s:
        """int32 by position, the node whose gram starts there, or -1."""
        return self._places

    def count(self, depth: int) -> tuple[Int64s, Int64s]:
        """Return the keys that occur below nodes of this depth, and how often."""
        self._keys, counts = count_children(self._symbols, self._places, depth, self._width)
        return self._keys, counts

    def released(self, depth: int, noise: Callable[[Int64s, Int64s], Rows]) -> Rows:
        """Count below nodes of this depth, and return what noise leaves of it."""
        return noise(*self.count(depth))

    def enter(self, depth: int, wanted: Int64s) -> None:
        """Put each position under the node whose gram starts there, one symbol longer than those last counted.

        Args:
            depth: of those last counted.
            wanted: rising keys: the new nodes.
        """
        at = np.minimum(np.searchsorted(wanted, self._keys), wanted.size - 1)
        enter_children(self._places, np.where(wanted[at] == self._keys, at, -1).astype(np.int32))
