"""Counts of the symbols after contexts that grow by one symbol at a time, in one sequence per user. All private."""

import numpy as np

from voxpop.engine.contract import CountKind
from voxpop.errors import InternalError
from voxpop.kernels.arrays import Int32s, Int64s
from voxpop.kernels.sequences import (
    count_children,
    count_following,
    count_variety,
    enter_children,
    lengthen_contexts,
    open_steps,
)
from voxpop.privacy.opening import opened
from voxpop.privacy.path_budget import ContextNoise


class MemoryTreeWalk:
    """Count the symbols after the contexts, release the noisy counts, and `lengthen` the contexts.

    Symbol `s` after context `n` has the key `n * width + s`.
    """

    def __init__(self, symbols: Int32s, alphabet: int, max_length: int, places: Int32s | None = None) -> None:
        """Put every step under the empty context, but no end mark behind `max_length` symbols.

        Args:
            symbols: int32, from `one_sequence_each`: private.
            alphabet: number of symbols.
            max_length: maximum number of steps of a sequence.
            places: of another walk, to go on where it was: int32 by position, the node of the step's context, or -1.
        """
        self.symbols, self._width = symbols, alphabet + 1
        self.places = np.empty(symbols.size, np.int32) if places is None else places
        if places is None:
            open_steps(symbols, alphabet, max_length, self.places)

    def count_following(self) -> tuple[Int64s, Int64s]:
        """Return the keys of the symbols that follow contexts, and their counts."""
        return count_following(self.symbols, self.places, self._width)

    def count_lengths(self, first: Int64s) -> tuple[Int64s, Int64s]:
        """Return the classes of length that occur, and the number of sequences of each."""
        return np.unique(np.searchsorted(first, np.diff(self._starts) - 1, side="right") - 1, return_counts=True)

    def count_variety(self, given: Int64s) -> tuple[Int64s, Int64s]:
        """Return the numbers of distinct and, for two bins, of repeated symbols of all sequences, by bin."""
        (most, bins), starts = given.tolist(), self._starts
        # Without end marks.
        counts = count_variety(self.symbols, starts[:-1], starts[1:] - 1, self._width - 1, most)
        return np.arange(bins), counts[:bins]

    def count_first(self, steps: int) -> None:
        """Count only the first steps of each sequence; see `TreeWalk.count_first`."""
        starts = self._starts
        place = np.arange(self.symbols.size) - np.repeat(starts[:-1], np.diff(starts))
        self.places[place >= steps] = -1

    @property
    def _starts(self) -> Int64s:
        return np.append(0, np.flatnonzero(self.symbols == self._width - 1) + 1)

    def released(self, counted: CountKind, noise: ContextNoise, *given: Int64s) -> Int64s:
        """Count and add noise; see `TreeWalk.released`."""
        noisy: Int64s = opened(noise, *getattr(self, f"count_{counted}")(*given))
        return noisy

    def lengthen(self, depth: int, keys: Int64s, longer: Int32s, others: Int32s) -> None:
        """Move each step to a longer context; see `TreeWalk.lengthen`."""
        lengthen_contexts(self.symbols, self.places, depth, self._width, keys, longer, others)

    def grams(self) -> "GramWalk":
        """Return the walk from grams to longer grams of the same sequences."""
        return GramWalk(self.symbols, self._width)


class GramWalk:
    """Count the symbols after grams, release the noisy counts, and `enter` longer grams."""

    def __init__(self, symbols: Int32s, width: int) -> None:
        """Let the empty gram, node 0, start at every position but the end marks.

        Args:
            symbols: int32, from `one_sequence_each`: private.
            width: number of symbols and the end mark.
        """
        self._symbols, self._width, self._depth = symbols, width, 0
        self._places = _opened(symbols, width - 1)
        self._keys = np.empty(0, np.int64)

    def released(self, counted: str, noise: ContextNoise) -> Int64s:
        """Count the symbols after the grams, and add noise."""
        if counted != "children":
            raise InternalError("grams have no other counts than those of their children")
        self._keys, counts = count_children(self._symbols, self._places, self._depth, self._width)
        noisy: Int64s = opened(noise, self._keys, counts)
        return noisy

    def enter(self, entries: Int64s, size: int) -> None:
        """Go on to longer grams, in the given order; positions without one are left out.

        Args:
            entries: gram * width + symbol, of the grams counted last.
            size: these are below it.
        """
        entered = np.full(size, -1, np.int32)
        entered[entries] = np.arange(entries.size)
        enter_children(self._places, entered[self._keys])
        self._depth += 1


def _opened(symbols: Int32s, end: int) -> Int32s:
    """Return int32 by position, the node whose gram starts there: the root, and -1 for end marks."""
    return np.where(symbols == end, -1, 0).astype(np.int32)
