"""What every user holds at one length: one id per position, user by user."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from voxpop.arrays import Int32s, Int64s, Uint64s
from voxpop.arrow import text_buffers
from voxpop.corpus.draws import WORDS, Draws

if TYPE_CHECKING:
    from voxpop.corpus.limited.memory import MemoryLimit

WORDS_AT_ONCE = 1 << 17
"""Words named together: their draws take 42 MB then, and 147 for two million at once."""


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
        words: large_string (size), the items themselves at length 1: draws name them by their bytes, for ids depend on
            what else is held; None elsewhere.
    """

    ids: Int32s
    user_start: Int64s
    user_key: Uint64s
    size: int
    order: Int64s | None = None
    names: Int64s | None = None
    limit: "MemoryLimit | None" = None
    words: pa.LargeStringArray | None = None

    def draw_names(self, secret: Draws) -> Uint64s | None:
        """Return what ids stand for in draws by id, None where ids themselves do.

        Words get 64 bits of their draw. Two words of one user that got the same would be kept or cut together in a
        sample, which the proof allows: a sample may be any function of the user's own items.
        """
        if self.words is not None:
            return item_names(self.words, secret, parts=1)[:, 0]
        # left * 2^32 + partner is below 2^63, so the sign plays no part.
        return None if self.names is None else self.names.view(np.uint64)

    def __repr__(self) -> str:
        return "Holdings(private)"


def item_names(words: pa.LargeStringArray, secret: Draws, parts: int = 2) -> Uint64s:
    """Return 128 bits (n, 2) for each item, by which all its draws name it: the same wherever it is held.

    Args:
        words: large_string (n), the items.
        secret: source of the bits.
        parts: how many of the two parts of 64 bits are kept, the more significant first.
    """
    letters, starts = text_buffers(words)
    names = np.empty((len(words), parts), np.uint64)
    for first in range(0, len(words), WORDS_AT_ONCE):
        mine = starts[first : first + WORDS_AT_ONCE + 1]
        # A function of the bytes and the secret: ids differ between engines, names do not.
        names[first : first + WORDS_AT_ONCE] = secret.text_draws(WORDS, letters, mine)[:, :parts]
    return names
