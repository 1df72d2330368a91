"""Adaptive rounds over pools of the users' undecided items, which are drawn once."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, TypeVar, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.engine.contract import Shares, part_of
from voxpop.engine.local.weigh import (
    BYTES_OF_ID,
    ITEMS_AT_ONCE,
    TOKENS_AT_ONCE,
    Histogram,
    cut_to_limit,
    distinct_sets,
    item_names,
    user_spans,
)
from voxpop.errors import InternalError
from voxpop.kernels.arrays import DROPPED, NOTHING_LISTED, RELEASED, UNDECIDED, Bytes, Int32s, Int64s, Uint64s
from voxpop.kernels.threads import in_order
from voxpop.kernels.weigh import count_listed, keep_undecided
from voxpop.privacy.opening import Opening, opened
from voxpop.privacy.secret import Source
from voxpop.reading.arrow import int64_array, numbers_of
from voxpop.reading.limited.memory import MemoryLimit, forget_pages

if TYPE_CHECKING:
    from voxpop.engine.local.corpus import LocalCorpus
    from voxpop.privacy.cumulative import ScoreStep
    from voxpop.privacy.weightings.capped import CappedDescent


# The pools of users, in batches of several hundred thousand items, are stored in memory or (with a memory limit) in a
# work file.


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Batch:
    """A batch of users, in order.

    Attributes:
        items: int32, the distinct items of each user.
        starts: int64 (users + 1), the first position of each user's items, starting with 0.
        keys: uint64 (users), the key of each user.
        dropped: int64 (users), the number of each user's items that were dropped.
    """

    items: Int32s
    starts: Int64s
    keys: Uint64s
    dropped: Int64s

    @staticmethod
    def of(items: Int32s, starts: Int64s, keys: Uint64s) -> "Batch":
        """Return users with a copy of their items, because the items passed can be a slice of a much larger array."""
        return Batch(items.copy(), starts, keys, np.zeros(keys.size, np.int64))

    def undecided(self, states: Bytes) -> "Batch":
        """Return the batch without decided items and without users who have only decided items.

        This batch is overwritten.
        """
        # The batch is overwritten in place from the front, because it is never read again.
        items, users = keep_undecided(self.items, self.starts, self.keys, self.dropped, states)
        return Batch(self.items[:items], self.starts[: users + 1], self.keys[:users], self.dropped[:users])


@final
class PoolBatches:
    """Numbered batches. Each batch is read, made smaller, and written back."""

    __slots__ = ("_file", "_kept", "_lock", "_places")

    def __init__(self, limit: MemoryLimit | None) -> None:
        self._kept: list[Batch] = []
        self._file = None if limit is None else limit.file()
        self._places: list[tuple[int, int, int]] = []
        self._lock = Lock()  # threads read ahead

    def __len__(self) -> int:
        return len(self._kept) if self._file is None else len(self._places)

    def append(self, batch: Batch) -> None:
        """Append a batch."""
        if self._file is None:
            self._kept.append(batch)
        else:
            self._places.append((self._file.size, 0, 0))
            self.write(len(self) - 1, batch)

    def __iter__(self) -> Iterator[Batch]:
        return map(self.read, range(len(self)))

    def read(self, number: int) -> Batch:
        """Return a batch, which the caller may change."""
        if self._file is None:
            return self._kept[number]
        begin, items, users = self._places[number]
        with self._lock:
            starts = self._file.read(begin, users + 1, np.int64)
            keys = self._file.read(begin + starts.nbytes, users, np.uint64)
            begin += starts.nbytes + keys.nbytes
            dropped = self._file.read(begin, users, np.int64)
            return Batch(self._file.read(begin + dropped.nbytes, items, np.int32), starts, keys, dropped)

    def write(self, number: int, batch: Batch) -> None:
        """Write the rest of a batch, which is never longer than the batch."""
        if self._file is None:
            self._kept[number] = batch
            return
        # The batch keeps its position, because it only becomes smaller.
        begin = self._places[number][0]
        self._places[number] = begin, batch.items.size, batch.keys.size
        with self._lock:
            for each in (batch.starts, batch.keys, batch.dropped, batch.items):
                self._file.write(begin, each)
                begin += each.nbytes


# The code below is the part of adaptive rounds that reads users. This part draws the pools of undecided items and
# computes the users' contributions. All engines use this code.

_PoolResult = TypeVar("_PoolResult")

ITEMS_BEFORE_FORGETTING = 1 << 22

ORDER_OF_POOLS = "adaptive rounds/length 1"
"""The name of the order of users, which all rounds share."""


def count_classes(starts: Iterable[Int64s], edges: Sequence[int]) -> Int64s:
    """Return the number of users in each class by number of items; see `PoolWalk.sizes`."""
    counts = np.zeros(len(edges) + 1, np.int64)
    for each in starts:
        held = np.diff(each)
        counts += np.bincount(np.searchsorted(edges, held[held > 0], side="right"), minlength=counts.size)
    return counts


@final
class PoolUsers:
    """The users and their undecided items, in the order of weighing.

    Attributes:
        states: uint8 (items), whether each item is released, dropped or undecided.
        listed: uint8 (items), nonzero for items of a public list; empty if there is no list.
    """

    def __init__(self, batches: PoolBatches, names: Uint64s, secret: Source) -> None:
        """Store users in the order of weighing.

        Args:
            batches: The users.
            names: uint64 (items), the names of items in draws.
            secret: The source of the samples.
        """
        self.states = np.full(names.size, UNDECIDED, np.uint8)
        self.listed = NOTHING_LISTED
        self._batches = batches
        self._names = names
        self._secret = secret

    @staticmethod
    def of(corpus: "LocalCorpus", names: Uint64s, secret: Source) -> "PoolUsers":
        """Group the distinct items of every user, with users in the order of weighing."""
        batches, holdings, held = PoolBatches(corpus.limit), corpus.holdings(secret, ORDER_OF_POOLS, ordered=True), 0
        # All rounds use the same secret order of users.
        for batch in distinct_sets(holdings, None, Batch.of):
            batches.append(batch)
            held += batch.items.size
            if held > ITEMS_BEFORE_FORGETTING:
                # Reads in this order are scattered, so pages are released only after many reads.
                forget_pages(holdings.ids)
                held = 0
        forget_pages(holdings.ids)
        return PoolUsers(batches, names, secret)

    @staticmethod
    def at(users: Batch, names: Uint64s, secret: Source) -> "PoolUsers":
        """Return the pools of the users that `joined` returned. The caller must not use the batch afterwards."""
        batches, starts = PoolBatches(None), users.starts
        for first, stop in user_spans(starts, TOKENS_AT_ONCE):
            begin, end = int(starts[first]), int(starts[stop])
            mine = slice(first, stop)
            batches.append(
                Batch(users.items[begin:end], starts[first : stop + 1] - begin, users.keys[mine], users.dropped[mine])
            )
        return PoolUsers(batches, names, secret)

    def sizes(self, edges: Sequence[int]) -> Int64s:
        """Return the number of users in each class by number of items."""
        return count_classes((batch.starts for batch in self._batches), edges)

    def draw(self, size: int, pass_name: str) -> None:
        """Give every user a pool of at most `size` undecided items, drawn uniformly without replacement.

        The pool also contains the user's items that are on a public list.
        """
        pooled = np.full_like(self.states, RELEASED)
        for number, batch in self._each(lambda each: self._pool(each, size, pass_name)):
            # uint8 (items). The items of a pool are undecided.
            pooled[batch.items] = UNDECIDED
            self._batches.write(number, batch)
        # An item that is not in any pool is never weighed again.
        self.states = pooled

    def weigh(self, shares: Shares, limit: int, pass_name: str) -> Int64s:
        """Return the weight of every item in the first round. Each user contributes to at most `limit` items."""
        histogram = np.zeros(self.states.size, np.int64)
        for number, (batch, drawn) in self._each(lambda each: (each, self._cut(each, limit, pass_name))):
            self._batches.write(number, batch)
            # Batches run in order and in this thread, because contributions depend on the contributions of earlier
            # users.
            shares.add(histogram, drawn.items, drawn.starts)
        return histogram

    def weigh_pools(self, shares: "CappedDescent", pass_name: str) -> Int64s:
        """Return the weight of every item.

        Each user contributes to undecided items, newly drawn from the user's pool.
        """
        # int64 (items). The weights start at 0 in each round, because only scores accumulate over rounds.
        histogram = np.zeros(self.states.size, np.int64)

        def prepare(batch: Batch) -> tuple[Batch, Batch, Int64s]:
            bits = self._secret.draws(part_of(pass_name), batch.keys, 0)[:, 0] if shares.draws else None
            given = shares.given(np.diff(batch.starts), batch.dropped, bits, self._listed_in(batch))
            return batch, self._cut(batch, shares.limit, pass_name), given

        for number, (batch, drawn, given) in self._each(prepare):
            self._batches.write(number, batch)
            shares.add(histogram, drawn.items, drawn.starts, self.states, given, self.listed)
        return histogram

    def _listed_in(self, batch: Batch) -> Int64s | Literal[0]:
        """Return the number of listed items of each user."""
        if not self.listed.size:
            return 0
        return count_listed(batch.items, batch.starts, self.listed)

    def joined(self) -> Batch:
        """Return all users in one batch."""
        held = list(self._batches)
        sizes = [np.diff(batch.starts) for batch in held]
        return Batch(
            np.concatenate([np.empty(0, np.int32), *(batch.items for batch in held)]),
            np.cumsum(np.concatenate([np.zeros(1, np.int64), *sizes])),
            np.concatenate([np.empty(0, np.uint64), *(batch.keys for batch in held)]),
            np.concatenate([np.empty(0, np.int64), *(batch.dropped for batch in held)]),
        )

    def _each(self, work: Callable[[Batch], _PoolResult]) -> Iterator[tuple[int, _PoolResult]]:
        """Remove decided items from each batch, and apply a function to the batch.

        Yield the number of each batch and the result, in order.
        """

        def prepare(number: int) -> tuple[int, _PoolResult]:
            return number, work(self._batches.read(number).undecided(self.states))

        return in_order(prepare, range(len(self._batches)))

    def _pool(self, batch: Batch, size: int, pass_name: str) -> Batch:
        """Return a batch with all listed items and at most `size` other items of each user."""
        if not self.listed.size:
            return self._cut(batch, size, pass_name)
        kept = self.listed[batch.items] != 0
        # Find the positions of the other items, and the first such position of each user.
        others = np.flatnonzero(~kept)
        starts = np.searchsorted(others, batch.starts).astype(np.int64)
        names, places = self._names[batch.items[others]], np.arange(others.size, dtype=np.int32)
        places, _ = cut_to_limit(names, places, starts, batch.keys, size, self._secret, pass_name)
        kept[others[places]] = True
        ends = np.concatenate([[0], np.cumsum(kept)])
        return Batch(batch.items[kept], ends[batch.starts], batch.keys, batch.dropped)

    def _cut(self, batch: Batch, limit: int, pass_name: str) -> Batch:
        """Return a batch with at most `limit` items of each user."""
        if not batch.keys.size or int(np.diff(batch.starts).max()) <= limit:
            return batch
        items, starts = batch.items.copy(), batch.starts.copy()
        items, starts = cut_to_limit(self._names, items, starts, batch.keys, limit, self._secret, pass_name)
        return Batch(items, starts, batch.keys, batch.dropped)


BYTES_OF_ITEM = BYTES_OF_ID + 32
"""The number of bytes per distinct item, for its weight, its name in draws, its score and its state."""


class Pools:
    """The undecided items of every user, and the state of each item.

    First, `first_round` weighs a bounded number of items of each user. Then `draw` gives every user a pool, and
    `advance` runs each later round, which weighs a bounded number of items of each pool.
    """

    def __init__(self, corpus: "LocalCorpus", secret: Source) -> None:
        """Group the distinct items of every user."""
        self._vocabulary = corpus.vocabulary
        size = len(self._vocabulary)
        if corpus.limit is not None:
            corpus.limit.require(BYTES_OF_ITEM * size, "the weights and the score of all distinct tokens")
        # uint64 (items, 2), 128 bits that are computed from the bytes of the item, so its noise does not depend on the
        # machine.
        self._names = item_names(self._vocabulary, secret)
        self._found = np.zeros(size, np.bool_)
        # uint8 (items), the level of each listed item, or None if there is no list.
        self._levels: Bytes | None = None
        self._score = np.zeros(size)
        self._users = PoolUsers.of(corpus, self._names[:, 0], secret)

    def sizes(self, edges: Sequence[int]) -> Histogram:
        """Count the users by their number of distinct items, before the first round."""
        counts = self._users.sizes(edges)
        return Histogram(np.arange(counts.size), counts)

    def first_round(self, shares: Shares, limit: int, decision: Opening, pass_name: str) -> None:
        """Weigh at most `limit` items of each user, and release the items that pass."""
        histogram = self._users.weigh(shares, limit, pass_name)
        # Only items with weight are tested, so items without users are never tested.
        ids = np.flatnonzero(histogram)
        words = self._vocabulary.take(int64_array(ids))
        released = Histogram(ids, histogram[ids], words).chosen(decision)
        self._decide(released, np.full(released.size, RELEASED, np.uint8))

    def recognise(self, listed: Iterable[pa.LargeStringArray]) -> None:
        """Set a public list, in parts, before pools are drawn.

        The items of this list have no caps, and levels rather than a threshold decide about them.
        """
        known = np.zeros(len(self._vocabulary), np.uint8)
        # Use one call for all parts, because each call builds the hash table of the vocabulary again.
        for places in pc.index_in(pa.chunked_array(listed, pa.large_string()), value_set=self._vocabulary).chunks:
            known[numbers_of(places.drop_null())] = 1
        # The list applies even if no user has a listed item.
        self._users.listed, self._levels = known, np.zeros(known.size, np.uint8)

    def draw(self, size: int, pass_name: str) -> None:
        """Give every user a pool of at most `size` undecided items, drawn uniformly without replacement."""
        self._users.draw(size, pass_name)

    def advance(self, shares: "CappedDescent", step: "ScoreStep", pass_name: str) -> None:
        """Run a round, which weighs items of each pool and updates the score of every undecided item in a pool."""
        histogram = self._users.weigh_pools(shares, pass_name)
        undecided = np.flatnonzero(self._users.states > DROPPED)
        ids = undecided
        if self._levels is not None:
            ids = undecided[self._users.listed[undecided] == 0]
            self._raise(self._levels, undecided[self._users.listed[undecided] != 0], histogram, step)
        # The step applies to all undecided items of all pools, even if no user drew them in this round. Noise on all of
        # these items is essential (docs/privacy/adaptive.md, "Shared items").
        for part, (score, states) in self._opened(step, ids, histogram):
            # The score is Z_r of every item of the part. The scores of decided items are not read again.
            self._score[part] = score
            self._decide(part, states)

    def _raise(self, levels: Bytes, ids: Int64s, histogram: Int64s, step: "ScoreStep") -> None:
        """Update the scores of listed items, and keep the highest level of each item."""
        if step.known is None:
            raise InternalError("a round over a public list has no levels")
        for part, (score, states, reached) in self._opened(step.known, ids, histogram):
            self._score[part], self._users.states[part] = score, states
            levels[part] = np.maximum(levels[part], reached)

    def _opened(self, step: Opening, ids: Int64s, histogram: Int64s) -> Iterator[tuple[Int64s, Any]]:
        def work(part: Int64s) -> Any:
            return opened(step, histogram[part], self._names[part], self._score[part])

        # The size of the parts does not depend on the number of threads. Draws depend only on the item, so the split
        # into parts does not change them.
        parts = [ids[first : first + ITEMS_AT_ONCE] for first in range(0, ids.size, ITEMS_AT_ONCE)]
        return zip(parts, in_order(work, parts), strict=True)

    def released(self) -> pa.LargeStringArray:
        """Return the released items, in the order of their bytes."""
        return self._vocabulary.take(int64_array(np.flatnonzero(self._found)))

    def levels(self) -> tuple[pa.LargeStringArray, Bytes]:
        """Return the listed items in pools that have reached a level, in arbitrary order, and their levels."""
        reached = np.empty(0, np.uint8) if self._levels is None else self._levels
        ids = np.flatnonzero(reached)
        return self._vocabulary.take(int64_array(ids)), reached[ids]

    def _decide(self, ids: Int64s, states: Bytes) -> None:
        self._users.states[ids] = states
        self._found[ids] = states == RELEASED
