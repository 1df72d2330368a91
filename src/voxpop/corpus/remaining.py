"""The items of a corpus, round after round: what was released is left out of later rounds."""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from voxpop.arrow import int64_array
from voxpop.corpus.draws import Draws
from voxpop.corpus.histogram import Histogram
from voxpop.corpus.weigh import Shares

if TYPE_CHECKING:
    from voxpop.corpus.corpus import Corpus


class Remaining:
    """A walk through rounds: `weigh` what is left, `leave_out` what was released."""

    def __init__(self, corpus: "Corpus") -> None:
        self._corpus = corpus
        self._left = np.ones(len(corpus.vocabulary), np.uint8)

    def weigh(self, shares: Shares, limit: int, secret: Draws, occasion: str) -> Histogram:
        """Let every user share its weight over at most `limit` distinct items that are left."""
        candidates = None if self._left.all() else self._left
        return self._corpus.weigh(shares, limit, candidates, secret, occasion)

    def leave_out(self, ids: NDArray[np.int64]) -> None:
        """Forget the ids that the last weighing released."""
        self._left[ids] = 0

    def released(self) -> pa.LargeStringArray:
        """Return what was left out, in order of bytes."""
        return self._corpus.vocabulary.take(int64_array(np.flatnonzero(self._left == 0)))
