"""What every user holds at one length: one id per position, user by user."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from voxpop.corpus.memory import MemoryLimit


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Holdings:
    """The private side of one weighing.

    Attributes:
        ids: int32, the item or gram at each position; negative where there is none.
        user_start: int64 (users + 1), where each user's positions begin.
        user_key: uint64 (users), a function of the user's id alone.
        size: ids are below it.
        order: int64 (users), the order in which they weigh where it matters; None for that of the corpus.
        names: int64 (size), what an id stands for in draws, the same on every engine; None where ids themselves are.
        limit: how much memory weighing them may take; None for as much as it needs.
    """

    ids: NDArray[np.int32]
    user_start: NDArray[np.int64]
    user_key: NDArray[np.uint64]
    size: int
    order: NDArray[np.int64] | None = None
    names: NDArray[np.int64] | None = None
    limit: "MemoryLimit | None" = None

    def names_of(self, ids: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return what ids stand for in draws."""
        return ids if self.names is None else self.names.view(np.uint64)[ids.view(np.int64)]

    def __repr__(self) -> str:
        return "Holdings(private)"
