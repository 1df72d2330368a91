"""The items of a corpus, round after round: what was released is left out of later rounds."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from voxpop.arrays import Bytes, Int64s
from voxpop.arrow import int64_array
from voxpop.corpus.draws import Draws
from voxpop.corpus.engine import Shares
from voxpop.corpus.histogram import Histogram

Weigh = Callable[[Shares, int, Bytes | None, Draws, str], Histogram]
"""`Corpus.weigh`."""


class MemoryRoundWalk:
    """A walk through rounds: `weigh` what is left, `leave_out` what was released."""

    def __init__(self, weigh: Weigh, vocabulary: pa.LargeStringArray) -> None:
        """Begin with all items left; `weigh` is that of the corpus whose vocabulary it is."""
        self._weigh = weigh
        self._vocabulary = vocabulary
        self._left = np.ones(len(vocabulary), np.uint8)

    def weigh(self, shares: Shares, limit: int, secret: Draws, pass_name: str) -> Histogram:
        """Let every user share its weight over at most `limit` distinct items that are left."""
        # uint8 (vocabulary): a function of what was released.
        candidates = None if self._left.all() else self._left
        return self._weigh(shares, limit, candidates, secret, pass_name)

    def leave_out(self, ids: Int64s) -> None:
        """Forget the ids that the last weighing released."""
        self._left[ids] = 0

    def released(self) -> pa.LargeStringArray:
        """Return what was left out, in order of bytes."""
        return self._vocabulary.take(int64_array(np.flatnonzero(self._left == 0)))
