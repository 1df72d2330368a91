"""The pools of users, some hundred thousand items at a time: in memory, or in a work file within a limit."""

from dataclasses import dataclass
from threading import Lock
from typing import final

import numpy as np

from voxpop.arrays import Bytes, Int32s, Int64s, Uint64s
from voxpop.corpus.limited.memory import MemoryLimit
from voxpop.kernels.pools import keep_undecided


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Batch:
    """Some users, in order.

    Attributes:
        items: int32, distinct for each user.
        starts: int64 (users + 1), where each user's items begin; the first is 0.
        keys: uint64 (users).
    """

    items: Int32s
    starts: Int64s
    keys: Uint64s

    @staticmethod
    def of(items: Int32s, starts: Int64s, keys: Uint64s) -> "Batch":
        """Return users with items of their own: those given may be the front of an array with room for many more."""
        return Batch(items.copy(), starts, keys)

    def undecided(self, mask: Bytes) -> "Batch":
        """Return the same users without decided items, and without users who have no others; this one is used up."""
        # In place, from the front: what is behind the kept ones is never read again.
        items, users = keep_undecided(self.items, self.starts, self.keys, mask)
        return Batch(self.items[:items], self.starts[: users + 1], self.keys[:users])


@final
class Batches:
    """Batches by number; each is read, made smaller and written back."""

    __slots__ = ("_file", "_kept", "_lock", "_places")

    def __init__(self, limit: MemoryLimit | None) -> None:
        self._kept: list[Batch] = []
        self._file = None if limit is None else limit.file()
        self._places: list[tuple[int, int, int]] = []
        self._lock = Lock()  # threads read ahead

    def __len__(self) -> int:
        return len(self._kept) if self._file is None else len(self._places)

    def append(self, batch: Batch) -> None:
        """Add a batch behind the others."""
        if self._file is None:
            self._kept.append(batch)
        else:
            self._places.append((self._file.size, batch.items.size, batch.keys.size))
            for each in (batch.starts, batch.keys, batch.items):
                self._file.append(each)

    def read(self, number: int) -> Batch:
        """Return a batch, which may be changed."""
        if self._file is None:
            return self._kept[number]
        begin, items, users = self._places[number]
        with self._lock:
            starts = self._file.read(begin, users + 1, np.int64)
            keys = self._file.read(begin + starts.nbytes, users, np.uint64)
            return Batch(self._file.read(begin + starts.nbytes + keys.nbytes, items, np.int32), starts, keys)

    def write(self, number: int, batch: Batch) -> None:
        """Keep what is left of a batch, which is never more than there was."""
        if self._file is None:
            self._kept[number] = batch
            return
        # In its old place: a batch only becomes smaller.
        begin = self._places[number][0]
        self._places[number] = begin, batch.items.size, batch.keys.size
        with self._lock:
            for each in (batch.starts, batch.keys, batch.items):
                self._file.write(begin, each)
                begin += each.nbytes
