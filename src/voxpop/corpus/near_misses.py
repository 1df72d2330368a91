"""Candidates set aside at every length, to be weighed once more all together: who holds which of them is private."""

from typing import TYPE_CHECKING

import numpy as np

from voxpop.arrays import Int32s, Int64s, Uint64s
from voxpop.corpus.bound import distinct_sets
from voxpop.corpus.holdings import Holdings

if TYPE_CHECKING:
    from voxpop.corpus.limited.memory import MemoryLimit


USERS_AT_ONCE = 1 << 18


class NearMisses:
    """By length and user, the distinct candidates set aside; numbered over all lengths in the order they came."""

    def __init__(self, limit: "MemoryLimit | None") -> None:
        """Begin with none.

        Args:
            limit: how much memory they may take; None for as much as they need.
        """
        self._limit = limit
        self._items: list[Int32s] = []
        self._starts: list[Int64s] = []
        self.size = 0

    def add(self, holdings: Holdings, ranks: Int32s, size: int) -> None:
        """Set candidates of one length aside.

        Args:
            holdings: what users hold at this length.
            ranks: int32, by id of this length its place among these candidates, or -1.
            size: how many there are, held by somebody or not.
        """
        items, counts = [], []
        wanted = (ranks >= 0).view(np.uint8)
        for mine, starts in distinct_sets(holdings, wanted, lambda items, starts, _: (items, starts), shuffle=False):
            # In the order in which they first stand in the user's documents: the same on every engine.
            # By number over all lengths.
            items.append(ranks[mine] + np.int32(self.size))
            counts.append(np.diff(starts))
        self._items.append(self._stored(items))
        # (users + 1,), of this length.
        self._starts.append(np.concatenate([[0], np.cumsum(np.concatenate([np.empty(0, np.int64), *counts]))]))
        self.size += size

    @classmethod
    def of(cls, items: Int32s, starts: Int64s, size: int) -> "NearMisses":
        """Go on from what `joined` gave.

        Args:
            items: int32, of one user after the other.
            starts: int64 (users + 1).
            size: how many candidates there are.
        """
        found = cls(None)
        found._items, found._starts, found.size = [items], [starts], size
        return found

    def joined(self, users: int) -> tuple[Int32s, Int64s]:
        """Return what every user holds of all lengths, the shortest first, and where it begins."""
        holdings = self.holdings(np.empty(users, np.uint64))
        return holdings.ids, holdings.user_start

    def holdings(self, user_key: Uint64s) -> Holdings:
        """Return what every user holds of all lengths, the shortest first."""
        sizes = sum((np.diff(starts) for starts in self._starts), np.zeros(user_key.size, np.int64))
        user_start = np.concatenate([[0], np.cumsum(sizes)])
        spans = range(0, user_key.size, USERS_AT_ONCE)
        ids = self._stored([self._joined(first, first + USERS_AT_ONCE, user_start) for first in spans])
        return Holdings(ids, user_start, user_key, self.size, limit=self._limit)

    def _joined(self, first: int, stop: int, user_start: Int64s) -> Int32s:
        """Lay the candidates of some users side by side."""
        begin = user_start[first:stop]
        ids = np.empty(int(user_start[min(stop, user_start.size - 1)] - begin[0]), np.int32)
        place = begin - begin[0]
        for items, starts in zip(self._items, self._starts, strict=True):
            own = starts[first : stop + 1]
            counts = np.diff(own)
            shift = np.repeat(place[: counts.size] - (own[:-1] - own[0]), counts)
            ids[shift + np.arange(shift.size)] = items[own[0] : own[-1]]
            place = place[: counts.size] + counts
        return ids

    def _stored(self, parts: list[Int32s]) -> Int32s:
        """Return arrays as one: within a limit, on disk."""
        if self._limit is None:
            return np.concatenate([np.empty(0, np.int32), *parts])
        file = self._limit.file()
        for part in parts:
            file.append(part)
        mapped: Int32s = file.mapped(np.int32)
        file.close()
        return mapped

    def __repr__(self) -> str:
        return "NearMisses(private)"
