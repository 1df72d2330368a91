"""Adaptive rounds over what users hold: pools of distinct items, drawn once, that lose what was decided."""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from voxpop.arrays import Int64s
from voxpop.arrow import int64_array
from voxpop.corpus.draws import Draws
from voxpop.corpus.engine import Decision, EvidenceStep, Outcome, Shares
from voxpop.corpus.histogram import Histogram
from voxpop.corpus.holdings import item_names
from voxpop.corpus.pool_users import PoolUsers
from voxpop.corpus.weigh import BYTES_OF_ID
from voxpop.threads import in_order

if TYPE_CHECKING:
    from voxpop.corpus.corpus import Corpus


ITEMS_AT_ONCE = 1 << 15
"""Items whose noise is drawn together, each such part by a thread."""
BYTES_OF_ITEM = BYTES_OF_ID + 32
"""Bytes that a distinct item takes: its weight, name in draws, evidence, and what became of it."""


class Pools:
    """Every user's undecided items, and what is known of each item.

    An `opening` over at most so many items of each user comes first; then `draw` gives every user a pool; then
    `advance` runs a round over at most so many items of each pool.
    """

    def __init__(self, corpus: "Corpus", secret: Draws) -> None:
        """Lay out the distinct items of every user."""
        self._vocabulary = corpus.vocabulary
        size = len(self._vocabulary)
        if corpus.limit is not None:
            corpus.limit.require(BYTES_OF_ITEM * size, "the weights and the evidence of all distinct tokens")
        # uint64 (items, 2): 128 bits that follow from an item's bytes, so noise is the same wherever an item is held.
        self._names = item_names(self._vocabulary, secret)
        self._found = np.zeros(size, np.bool_)
        self._evidence = np.zeros(size)
        self._users = PoolUsers.of(corpus, self._names[:, 0], secret)

    def opening(self, shares: Shares, limit: int, decision: Decision, pass_name: str) -> None:
        """Weigh at most `limit` items of each user; release what passes."""
        histogram = self._users.weigh(shares, limit, pass_name)
        # Only items with weight: what nobody holds is never asked about.
        ids = np.flatnonzero(histogram)
        words = self._vocabulary.take(int64_array(ids))
        self._decide(Histogram(ids, histogram[ids], words).chosen(decision), released=True)

    def draw(self, size: int, pass_name: str) -> None:
        """Give every user a pool: at most `size` of its undecided items, drawn uniformly without replacement."""
        self._users.draw(size, pass_name)

    def advance(self, shares: Shares, limit: int, step: EvidenceStep, pass_name: str) -> None:
        """Run a round: weigh at most `limit` items of each pool, add to the evidence of every item in any pool."""
        histogram = self._users.weigh(shares, limit, pass_name)
        # Every undecided item of every pool, drawn this time or not: noise on all of them is essential
        # (docs/privacy/adaptive.md, "Shared items").
        ids = np.flatnonzero(self._users.undecided)

        def work(part: Int64s) -> Outcome:
            return step(histogram[part], self._names[part], self._evidence[part])

        # Parts of one size, whoever computes them: draws are by item, so the split changes nothing.
        parts = [ids[first : first + ITEMS_AT_ONCE] for first in range(0, ids.size, ITEMS_AT_ONCE)]
        for part, (evidence, released, dropped) in zip(parts, in_order(work, parts), strict=True):
            # S_r of every item of the part; decided ones are not looked at again.
            self._evidence[part] = evidence
            self._decide(part[released], released=True)
            self._decide(part[dropped], released=False)

    def released(self) -> pa.LargeStringArray:
        """Return what was released, in order of bytes."""
        return self._vocabulary.take(int64_array(np.flatnonzero(self._found)))

    def _decide(self, ids: Int64s, *, released: bool) -> None:
        self._users.undecided[ids] = 0
        self._found[ids] |= released

    def __repr__(self) -> str:
        return "Pools(private)"
