"""Adaptive rounds over what users hold: pools of distinct items, drawn once, that lose what was decided."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from voxpop.arrow import int64_array, text_buffers
from voxpop.corpus.bound import BoundedSets, cut_to_limit, distinct_sets
from voxpop.corpus.draws import WORDS, Draws
from voxpop.corpus.engine import Decision, EvidenceStep, Outcome, Shares
from voxpop.corpus.histogram import Histogram
from voxpop.corpus.holdings import WORDS_AT_ONCE
from voxpop.corpus.pool_batches import Batch, Batches
from voxpop.corpus.weigh import BYTES_OF_ID
from voxpop.threads import in_order

if TYPE_CHECKING:
    from voxpop.corpus.corpus import Corpus

Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
Result = TypeVar("Result")

ITEMS_AT_ONCE = 1 << 15
"""Items whose noise is drawn together, each such part by a thread."""
BYTES_OF_ITEM = BYTES_OF_ID + 32
"""Bytes that a distinct item takes: its weight, name in draws, evidence, and what became of it."""
ORDER = "adaptive rounds/length 1"
"""The occasion of the one order in which users weigh in all rounds."""


class Pools:
    """Every user's undecided items, users in the order in which they weigh.

    An `opening` over at most so many items of each user comes first; then `draw` gives every user a pool; then
    `advance` runs a round over at most so many items of each pool.
    """

    def __init__(self, corpus: "Corpus", secret: Draws) -> None:
        """Lay out the distinct items of every user."""
        self._vocabulary = corpus.vocabulary
        size = len(self._vocabulary)
        if corpus.limit is not None:
            corpus.limit.require(BYTES_OF_ITEM * size, "the weights and the evidence of all distinct tokens")
        self._secret = secret
        self._names = item_names(self._vocabulary, secret)
        self._undecided = np.ones(size, np.uint8)
        self._found = np.zeros(size, np.bool_)
        self._evidence = np.zeros(size)
        self._batches = Batches(corpus.limit)
        for batch in distinct_sets(corpus.holdings(secret, ORDER, ordered=True), None, Batch, shuffle=True):
            self._batches.append(batch)

    def opening(self, shares: Shares, limit: int, decision: Decision, occasion: str) -> None:
        """Weigh at most `limit` items of each user; release what passes."""
        histogram = self._weigh(shares, limit, occasion)
        ids = np.flatnonzero(histogram)
        words = self._vocabulary.take(int64_array(ids))
        self._decide(Histogram(ids, histogram[ids], words).chosen(decision), released=True)

    def draw(self, size: int, occasion: str) -> None:
        """Give every user a pool: at most `size` of its undecided items, drawn uniformly without replacement."""
        pooled = np.zeros_like(self._undecided)
        for number, batch in self._each(lambda each: self._cut(each, size, occasion)):
            pooled[batch.items] = 1
            self._batches.write(number, batch)
        self._undecided &= pooled

    def advance(self, shares: Shares, limit: int, step: EvidenceStep, occasion: str) -> None:
        """Run a round: weigh at most `limit` items of each pool, add to the evidence of every item in any pool."""
        histogram = self._weigh(shares, limit, occasion)
        ids = np.flatnonzero(self._undecided)

        def work(part: Int64s) -> Outcome:
            return step(histogram[part], self._names[part], self._evidence[part])

        parts = [ids[first : first + ITEMS_AT_ONCE] for first in range(0, ids.size, ITEMS_AT_ONCE)]
        for part, (evidence, released, dropped) in zip(parts, in_order(work, parts), strict=True):
            self._evidence[part] = evidence
            self._decide(part[released], released=True)
            self._decide(part[dropped], released=False)

    def released(self) -> pa.LargeStringArray:
        """Return what was released, in order of bytes."""
        return self._vocabulary.take(int64_array(np.flatnonzero(self._found)))

    def _decide(self, ids: Int64s, *, released: bool) -> None:
        self._undecided[ids] = 0
        self._found[ids] |= released

    def _weigh(self, shares: Shares, limit: int, occasion: str) -> Int64s:
        """Return the weight of every item, each user sharing over at most `limit` undecided ones, drawn afresh."""
        histogram = np.zeros(self._undecided.size, np.int64)

        def prepare(batch: Batch) -> tuple[Batch, BoundedSets]:
            drawn = self._cut(batch, limit, occasion)
            return batch, (drawn.items, drawn.starts)

        for number, (batch, sets) in self._each(prepare):
            self._batches.write(number, batch)
            shares.add(histogram, *sets)
        return histogram

    def _each(self, work: Callable[[Batch], Result]) -> Iterator[tuple[int, Result]]:
        """Yield what is made of each batch without its decided items, in order."""

        def prepare(number: int) -> tuple[int, Result]:
            return number, work(self._batches.read(number).undecided(self._undecided))

        return in_order(prepare, range(len(self._batches)))

    def _cut(self, batch: Batch, limit: int, occasion: str) -> Batch:
        """Return a batch with at most `limit` items of each user."""
        if not batch.keys.size or int(np.diff(batch.starts).max()) <= limit:
            return batch
        items, starts = batch.items.copy(), batch.starts.copy()
        names = self._names[:, 0]
        items, starts = cut_to_limit(names, items, starts, batch.keys, limit, self._secret, occasion)
        return Batch(items, starts, batch.keys)

    def __repr__(self) -> str:
        return "Pools(private)"


def item_names(words: pa.LargeStringArray, secret: Draws) -> Words:
    """Return 128 bits (n, 2) for each item, by which all its draws name it: the same wherever it is held."""
    letters, starts = text_buffers(words)
    names = np.empty((len(words), 2), np.uint64)
    for first in range(0, len(words), WORDS_AT_ONCE):
        mine = starts[first : first + WORDS_AT_ONCE + 1]
        names[first : first + WORDS_AT_ONCE] = secret.text_draws(WORDS, letters, mine)
    return names
