"""The three arrays of a corpus as work files, written user after user."""

from typing import final

import numpy as np

from voxpop.arrays import Int32s, Int64s, Uint64s
from voxpop.corpus.limited.memory import MemoryLimit
from voxpop.corpus.limited.sorter import Heads, Sorter
from voxpop.threads import one_ahead

Mapped = tuple[Int32s, Int64s, Uint64s]


@final
class UserFiles:
    """Tokens, where each user's begin, and the users' keys."""

    __slots__ = ("_end", "_keys", "_last", "_starts", "_tokens")

    def __init__(self, limit: MemoryLimit) -> None:
        self._tokens, self._starts, self._keys = limit.file(), limit.file(), limit.file()
        self._last: int | None = None
        self._end = 0

    def append(self, heads: Heads, tokens: Int32s) -> None:
        """Write records in their order; those that follow each other with the same `row` are one user's.

        Not those of the same key: two users may have one, and each of them is a user of its own.
        """
        if not heads.size:
            return
        self._tokens.append(tokens)
        rows = heads["row"]
        new = np.ones(rows.size, np.bool_)
        new[1:] = rows[1:] != rows[:-1]
        new[0] = self._last != int(rows[0])
        ends = self._end + np.cumsum(heads["size"])
        self._starts.append((ends - heads["size"])[new].astype(np.int64))
        self._keys.append(heads["user"][new])
        self._last, self._end = int(rows[-1]), int(ends[-1])

    def mapped(self) -> Mapped:
        """Return the arrays: tokens, starts (one more than users) and keys."""
        self._starts.append(np.array([self._end], np.int64))
        arrays = self._tokens.mapped(np.int32), self._starts.mapped(np.int64), self._keys.mapped(np.uint64)
        for file in (self._tokens, self._starts, self._keys):
            file.close()
        return arrays


def in_key_order(sorter: Sorter, limit: MemoryLimit) -> Mapped:
    """Return the users of a sorter by their keys, mapped."""
    files = UserFiles(limit)
    for heads, tokens in one_ahead(sorter.blocks()):
        files.append(heads, tokens)
    return files.mapped()
