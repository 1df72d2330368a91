"""States of partitions, kept for as long as somebody needs them."""

import weakref
from contextlib import nullcontext
from typing import TYPE_CHECKING

from voxpop.spark.planning import as_written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Holder:
    """Keeps partitions on their executors, in memory or on local disk, for as long as it lives.

    Of the states given to it the last two are kept: the one before is what the last is made from until it is made.
    Where nothing is made before the end, all have to be. Blocks that are lost with an executor are made again, from
    what is kept or from the source.
    """

    def __init__(self, most: int | None = 2) -> None:
        self._most = most
        self._held: list[DataFrame] = []
        weakref.finalize(self, _let_all_go, self._held)

    def hold(self, state: "DataFrame", *, theirs: bool = False) -> "DataFrame":
        """Keep a new state, and let go of the one before the last, or of none.

        Args:
            state: what is kept from when it is made.
            theirs: whether a query of somebody else is part of it, which is planned as the session says.
        """
        from pyspark import StorageLevel

        with nullcontext() if theirs else as_written(state.sparkSession):
            state = state.persist(StorageLevel.MEMORY_AND_DISK)
        self._held.append(state)
        if self._most is not None and len(self._held) > self._most:
            self._held.pop(0).unpersist()
        return state


def _let_all_go(held: "list[DataFrame]") -> None:
    for state in held:
        try:
            state.unpersist()
        except Exception:  # the session may have ended before
            return
