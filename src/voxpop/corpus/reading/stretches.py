"""Rows cut into stretches, each small enough to be encoded in memory."""

from collections.abc import Iterator
from typing import final

import pyarrow as pa

from voxpop.corpus.reading.columns import Rows


@final
class Stretch:
    """Batches of rows until what is held of them reaches a bound.

    Attributes:
        users: whose the rows were that have gone by, in pieces.
        finished: whether the source ended with this stretch.
    """

    __slots__ = ("_held", "_most", "_rows", "finished", "users")

    users: list[pa.Array]
    finished: bool

    def __init__(self, rows: Rows, most: int | None) -> None:
        self._rows, self._most = rows, most
        self._held = 0
        self.users, self.finished = [], False

    def hold(self, size: int) -> None:
        """Say how many bytes the rows of this stretch that have been encoded take so far."""
        self._held = size

    def __iter__(self) -> Iterator[tuple[str, pa.Array]]:
        owners = 0
        for where, users, contents in self._rows:
            self.users.append(users)
            owners += users.nbytes
            yield where, contents
            if self._most is not None and owners + self._held > self._most:
                return
        self.finished = True


def stretches(rows: Rows, most: int) -> Iterator[Stretch]:
    """Yield stretches until the rows end; each must be gone through before the next is asked for."""
    while True:
        stretch = Stretch(rows, most)
        yield stretch
        if stretch.finished:
            return
