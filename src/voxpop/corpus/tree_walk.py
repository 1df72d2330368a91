"""One sequence per user, and how often grams occur in them, one symbol longer at a time."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from voxpop.arrays import Int32s, Int64s
from voxpop.kernels.contexts import count_following, lengthen_contexts, open_steps
from voxpop.kernels.sequences import count_children, enter_children, open_root

Rows = TypeVar("Rows")


class MemoryTreeWalk:
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
        # int32 by position: the node whose gram (or context) stands there.
        self._places = np.empty(sequences.size, np.int32)
        self._keys = np.empty(0, np.int64)
        open_root(sequences, alphabet, self._places)

    @classmethod
    def at(cls, symbols: Int32s, places: Int32s, alphabet: int) -> "MemoryTreeWalk":
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
        # keys: node * width + symbol, by first appearance.
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
        # By counted key: its place among the new nodes, -1 where it is none of them.
        at = np.minimum(np.searchsorted(wanted, self._keys), wanted.size - 1)
        enter_children(self._places, np.where(wanted[at] == self._keys, at, -1).astype(np.int32))

    def open_steps(self, max_length: int) -> None:
        """Begin anew for contexts: every step is under the root, but no end mark behind `max_length` symbols."""
        open_steps(self._symbols, self._width - 1, max_length, self._places)

    def count_following(self) -> tuple[Int64s, Int64s]:
        """Return the keys of the symbols that follow contexts, and how often."""
        return count_following(self._symbols, self._places, self._width)

    def released_following(self, noise: Callable[[Int64s, Int64s], Rows]) -> Rows:
        """Count what follows the contexts, and return what noise leaves of it."""
        return noise(*self.count_following())

    def lengthen(self, depth: int, keys: Int64s, longer: Int32s, others: Int32s) -> None:
        """Move each step to a longer context; see `voxpop.kernels.contexts.lengthen_contexts`.

        Args:
            depth: length of the contexts until now.
            keys: node * width + the symbol before it, distinct.
            longer: int32 by key.
            others: int32 by node, -1 where steps before which nothing was found are no longer counted.
        """
        lengthen_contexts(self._symbols, self._places, depth, self._width, keys, longer, others)
