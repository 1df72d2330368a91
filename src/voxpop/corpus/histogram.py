"""The weights of the items that somebody holds: private."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from voxpop.arrays import Bools, Int64s, Texts
from voxpop.arrow import int64_array, text_buffers
from voxpop.errors import InternalError
from voxpop.kernels.pairs import mark_met, table_of
from voxpop.threads import in_order

IDS_AT_ONCE = 1 << 17
"""Items that are decided together: draws for their bytes take 42 MB then, and 147 for two million at once."""

Decision = Callable[[Int64s, Int64s, Texts | None], Bools]
"""Which items pass: of weights, of names and of the items' bytes, the last two for draws."""
LevelRule = Callable[[Int64s, Int64s, Texts | None], Int64s]
"""How many cutpoints items reach: of the same."""


@dataclass(frozen=True, slots=True, repr=False)
class Histogram:
    """Weight by item, for the items of the bounded sets and for no others.

    Attributes:
        ids: int64 (support), which items: ids in rising order, or names of grams (see `MemoryLengthWalk`) in any order.
        weights: int64 (support), positive, in units of the weighting's grid.
        words: large_string (support), the items themselves where draws name them by their bytes; else None.
    """

    ids: Int64s
    weights: Int64s
    words: pa.LargeStringArray | None = None

    def chosen(self, decision: Decision) -> Int64s:
        """Return the ids that pass, rising.

        Args:
            decision: which of the items pass.
        """
        # Draws are by name, so parts may be of any size.
        parts = [ids[decision(weights, ids, texts)] for weights, ids, texts in self._parts()]
        return np.sort(np.concatenate([np.empty(0, np.int64), *parts]))

    def noisy_levels(self, levels: LevelRule, spurious_names: Int64s, theirs: Int64s) -> tuple[Int64s, Int64s]:
        """Return the ids of a level above 0, rising, and their levels.

        Args:
            levels: how many cutpoints each of the items with weight reaches.
            spurious_names: ids that have a level where they have no weight, rising.
            theirs: int64 (spurious), which level.
        """
        # A simulated hit counts only where there is no weight: elsewhere the item's own noise decides
        # (docs/privacy/ngrams.md, "Simulation").
        table, somebodys = table_of(spurious_names), np.zeros(spurious_names.size, np.uint8)

        def grade(part: tuple[Int64s, Int64s, Texts | None]) -> tuple[Int64s, Int64s]:
            weights, ids, texts = part
            mark_met(ids, table, somebodys)
            each = levels(weights, ids, texts)
            return ids[each > 0], each[each > 0]

        # Draws are by name, so neither parts nor threads change them; those of bytes need memory, one part at a time.
        work = in_order(grade, self._parts()) if self.words is None else map(grade, self._parts())
        graded = list(work)
        nobodys = somebodys == 0
        ids_of = [spurious_names[nobodys], *(ids for ids, _ in graded)]
        levels_of = [theirs[nobodys], *(reached for _, reached in graded)]
        # Sorted, so nothing tells which of them were simulated.
        names = np.concatenate(ids_of)
        order = np.argsort(names)
        return names[order], np.concatenate(levels_of)[order]

    def _parts(self) -> Iterator[tuple[Int64s, Int64s, Texts | None]]:
        """Yield weights, ids and texts, some at a time."""
        texts = None if self.words is None else text_buffers(self.words)
        for start in range(0, self.ids.size, IDS_AT_ONCE):
            stop = min(start + IDS_AT_ONCE, self.ids.size)
            some = None if texts is None else (texts[0], texts[1][start : stop + 1])
            yield self.weights[start:stop], self.ids[start:stop], some

    def texts(self, ids: Int64s) -> pa.LargeStringArray:
        """Return the words of ids that passed, at length 1."""
        if self.words is None:
            raise InternalError("texts were asked of weights whose ids are numbers of grams.")
        # At length 1 ids rise, so places are found by bisection.
        return self.words.take(int64_array(np.searchsorted(self.ids, ids)))

    def measured(self, noise: Callable[[Int64s, Int64s], Int64s], size: int) -> Int64s:
        """Return the noisy weight of every id below `size`, also of those without weight."""
        # (names,): also those that nobody holds, or their absence would be published.
        weights = np.zeros(size, np.int64)
        weights[self.ids] = self.weights
        return noise(weights, np.arange(size))

    def __repr__(self) -> str:
        return "Histogram(private)"
