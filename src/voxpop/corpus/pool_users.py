"""The users' side of adaptive rounds: pools of undecided items, and what users give them; the same on every engine."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar, final

import numpy as np

from voxpop.arrays import Int64s, Uint64s
from voxpop.corpus.bound import TOKENS_AT_ONCE, BoundedSets, cut_to_limit, distinct_sets
from voxpop.corpus.draws import Draws
from voxpop.corpus.engine import Shares
from voxpop.corpus.limited.pages import forget_pages
from voxpop.corpus.pool_batches import Batch, Batches
from voxpop.threads import in_order

if TYPE_CHECKING:
    from voxpop.corpus.corpus import Corpus

Result = TypeVar("Result")

ITEMS_BEFORE_FORGETTING = 1 << 24

ORDER = "adaptive rounds/length 1"
"""The name of the one order in which users weigh in all rounds."""


@final
class PoolUsers:
    """Users in the order in which they weigh, each with its undecided items.

    Attributes:
        undecided: uint8 (items), nonzero for items that users may still give to.
    """

    def __init__(self, batches: Batches, names: Uint64s, secret: Draws) -> None:
        """Take users in their order.

        Args:
            batches: the users.
            names: uint64 (items), what draws name an item by.
            secret: source of the samples.
        """
        self.undecided = np.ones(names.size, np.uint8)
        self._batches = batches
        self._names = names
        self._secret = secret

    @staticmethod
    def of(corpus: "Corpus", names: Uint64s, secret: Draws) -> "PoolUsers":
        """Lay out the distinct items of every user, users in the order in which they weigh."""
        batches, holdings, held = Batches(corpus.limit), corpus.holdings(secret, ORDER, ordered=True), 0
        # `shuffle`: in the secret order of users, one for all rounds.
        for batch in distinct_sets(holdings, None, Batch.of, shuffle=True):
            batches.append(batch)
            held += batch.items.size
            if held > ITEMS_BEFORE_FORGETTING:
                # In that order pages are read here and there, so none is done with before the others.
                forget_pages(holdings.ids)
                held = 0
        forget_pages(holdings.ids)
        return PoolUsers(batches, names, secret)

    @staticmethod
    def at(users: Batch, names: Uint64s, secret: Draws) -> "PoolUsers":
        """Take up users that `joined` gave, which are used up."""
        batches, starts, first = Batches(None), users.starts, 0
        while first < users.keys.size:
            # Whole users of about so many items; at least one.
            stop = int(np.searchsorted(starts, starts[first] + TOKENS_AT_ONCE, side="right")) - 1
            stop = max(stop, first + 1)
            begin, end = int(starts[first]), int(starts[stop])
            batches.append(Batch(users.items[begin:end], starts[first : stop + 1] - begin, users.keys[first:stop]))
            first = stop
        return PoolUsers(batches, names, secret)

    def draw(self, size: int, pass_name: str) -> None:
        """Give every user a pool: at most `size` of its undecided items, drawn uniformly without replacement."""
        pooled = np.zeros_like(self.undecided)
        for number, batch in self._each(lambda each: self._cut(each, size, pass_name)):
            # uint8 (items): in somebody's pool.
            pooled[batch.items] = 1
            self._batches.write(number, batch)
        # An item in nobody's pool is never weighed again.
        self.undecided &= pooled

    def weigh(self, shares: Shares, limit: int, pass_name: str) -> Int64s:
        """Return the weight of every item, each user sharing over at most `limit` undecided ones, drawn afresh."""
        # int64 (items), from nothing in each round: evidence remembers, weights do not.
        histogram = np.zeros(self.undecided.size, np.int64)

        def prepare(batch: Batch) -> tuple[Batch, BoundedSets]:
            drawn = self._cut(batch, limit, pass_name)
            return batch, (drawn.items, drawn.starts)

        for number, (batch, sets) in self._each(prepare):
            self._batches.write(number, batch)
            # In order and on this thread: what users give depends on what those before them gave.
            shares.add(histogram, *sets)
        return histogram

    def joined(self) -> Batch:
        """Return all users in one piece."""
        held = [self._batches.read(number) for number in range(len(self._batches))]
        sizes = [np.diff(batch.starts) for batch in held]
        return Batch(
            np.concatenate([np.empty(0, np.int32), *(batch.items for batch in held)]),
            np.cumsum(np.concatenate([np.zeros(1, np.int64), *sizes])),
            np.concatenate([np.empty(0, np.uint64), *(batch.keys for batch in held)]),
        )

    def _each(self, work: Callable[[Batch], Result]) -> Iterator[tuple[int, Result]]:
        """Yield what is made of each batch without its decided items, in order."""

        def prepare(number: int) -> tuple[int, Result]:
            return number, work(self._batches.read(number).undecided(self.undecided))

        return in_order(prepare, range(len(self._batches)))

    def _cut(self, batch: Batch, limit: int, pass_name: str) -> Batch:
        """Return a batch with at most `limit` items of each user."""
        if not batch.keys.size or int(np.diff(batch.starts).max()) <= limit:
            return batch
        items, starts = batch.items.copy(), batch.starts.copy()
        items, starts = cut_to_limit(self._names, items, starts, batch.keys, limit, self._secret, pass_name)
        return Batch(items, starts, batch.keys)

    def __repr__(self) -> str:
        return "PoolUsers(private)"
