"""Private counts of the symbols after contexts, in one sequence per user. Contexts grow by one symbol at a time."""

from typing import TYPE_CHECKING

import numpy as np

from voxpop.engine.contract import CountKind
from voxpop.errors import InternalError
from voxpop.kernels.arrays import Int32s, Int64s
from voxpop.kernels.proved import proved
from voxpop.kernels.sequences import (
    count_children,
    count_following,
    count_variety,
    enter_children,
    lengthen_contexts,
    open_steps,
)
from voxpop.privacy.opening import opened

if TYPE_CHECKING:
    from voxpop.privacy.path_budget import ContextNoise


class MemoryTreeWalk:
    """The walk that counts symbols after contexts, releases noisy counts, and lengthens the contexts.

    The key of symbol `s` after context `n` is `n * width + s`.
    """

    def __init__(self, symbols: Int32s, alphabet: int, max_length: int, places: Int32s | None = None) -> None:
        """Assign the empty context to every step, except to end marks after `max_length` symbols.

        Args:
            symbols: int32, the private sequences from `one_sequence_each`.
            alphabet: The number of symbols.
            max_length: The maximum number of steps of a sequence.
            places: int32 by position, the node of each step's context or -1, to continue another walk; None for a new
                walk.
        """
        self.symbols, self._width = symbols, alphabet + 1
        self.places = np.empty(symbols.size, np.int32) if places is None else places
        if places is None:
            open_steps(symbols, alphabet, max_length, self.places)

    def count_following(self) -> tuple[Int64s, Int64s]:
        """Return the keys of the symbols that follow contexts, and their counts."""
        return count_following(self.symbols, self.places, self._width)

    @proved("sequences.md#proof-for-contexts")
    def count_lengths(self, first: Int64s) -> tuple[Int64s, Int64s]:
        """Return the length classes that occur, and the number of sequences in each class.

        Proof: "The sequence is in one length class, because all classes up to L are released."
        """
        return np.unique(np.searchsorted(first, np.diff(self._starts) - 1, side="right") - 1, return_counts=True)

    def count_variety(self, given: Int64s) -> tuple[Int64s, Int64s]:
        """Return the total number of distinct symbols in all sequences and, for two bins, of repeated symbols."""
        (most, bins), starts = given.tolist(), self._starts
        # End marks are not counted.
        counts = count_variety(self.symbols, starts[:-1], starts[1:] - 1, self._width - 1, most)
        return np.arange(bins), counts[:bins]

    @proved("sequences.md#proof-for-contexts")
    def count_first(self, steps: int) -> None:
        """Count only the first steps of each sequence; see `TreeWalk.count_first`.

        Proof: "Let S be the set of the first K steps of the extra user's sequence, so |S| <= K."
        """
        starts = self._starts
        place = np.arange(self.symbols.size) - np.repeat(starts[:-1], np.diff(starts))
        self.places[place >= steps] = -1

    @property
    def _starts(self) -> Int64s:
        return np.append(0, np.flatnonzero(self.symbols == self._width - 1) + 1)

    def released(self, counted: CountKind, noise: "ContextNoise", *given: Int64s) -> Int64s:
        """Return noisy counts; see `TreeWalk.released`."""
        noisy: Int64s = opened(noise, *getattr(self, f"count_{counted}")(*given))
        return noisy

    def lengthen(self, depth: int, keys: Int64s, longer: Int32s, others: Int32s) -> None:
        """Move each step to a longer context; see `TreeWalk.lengthen`."""
        lengthen_contexts(self.symbols, self.places, depth, self._width, keys, longer, others)

    def grams(self) -> "GramWalk":
        """Return the walk from grams to longer grams of the same sequences."""
        return GramWalk(self.symbols, self._width)


class GramWalk:
    """The walk that counts symbols after grams, releases noisy counts, and continues with longer grams."""

    def __init__(self, symbols: Int32s, width: int) -> None:
        """Assign the empty gram, node 0, to every position except end marks.

        Args:
            symbols: int32, the private sequences from `one_sequence_each`.
            width: The number of symbols, including the end mark.
        """
        self._symbols, self._width, self._depth = symbols, width, 0
        self._places = _opened(symbols, width - 1)
        self._keys = np.empty(0, np.int64)

    def released(self, counted: str, noise: "ContextNoise") -> Int64s:
        """Return the noisy counts of the symbols after the grams."""
        if counted != "children":
            raise InternalError("only the counts of the children of grams exist")
        self._keys, counts = count_children(self._symbols, self._places, self._depth, self._width)
        noisy: Int64s = opened(noise, self._keys, counts)
        return noisy

    @proved("sequences.md#proof-for-grams")
    def enter(self, entries: Int64s, size: int) -> None:
        """Continue with longer grams, in the given order. Positions without a longer gram are excluded.

        Proof: "An occurrence counted at v starts at some position p of S, and the gram of v is then a prefix of the
        symbols from p."

        Args:
            entries: The new grams as `gram * width + symbol`, with `gram` numbered as in the last count.
            size: An upper bound (exclusive) on the entries.
        """
        entered = np.full(size, -1, np.int32)
        entered[entries] = np.arange(entries.size)
        enter_children(self._places, entered[self._keys])
        self._depth += 1


@proved("sequences.md#proof-for-grams")
def _opened(symbols: Int32s, end: int) -> Int32s:
    """Return the node of each position as int32, which is 0 (the root, for the empty gram) or -1 for end marks.

    Proof: "A symbol starts at each of at most L positions. The end mark is only ever the last symbol of a gram, and the
    root has no bin for it"
    """
    return np.where(symbols == end, -1, 0).astype(np.int32)
