"""The private state of a series on this machine: users' pools, their remaining budgets, and the scores of all items."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.engine.contract import sample_of
from voxpop.engine.local.weigh import ITEMS_AT_ONCE, item_names, weighing_order
from voxpop.kernels.arrays import Bools, Bytes, Int32s, Int64s, Uint64s
from voxpop.kernels.group import gather_slices
from voxpop.kernels.nights import active_items, fresh_items, joined_pools, sort_items, with_active
from voxpop.kernels.threads import in_order
from voxpop.privacy.individual import Charge
from voxpop.privacy.opening import Opening, opened
from voxpop.privacy.secret import Source
from voxpop.privacy.upcrossing import UNLISTED, NightDecision, from_level
from voxpop.reading.arrow import check_width, int64_array, joined, numbers_of, string_array, text_buffers
from voxpop.reading.limited.memory import MemoryLimit

ORDER_OF_NIGHTS = "series"
BYTES_OF_PAIR, BYTES_OF_USER, BYTES_OF_ITEM = 48, 96, 192
"""The peak memory of a night, in bytes per item of a pool or a row, per user, and per item."""

Add = Callable[[Int64s, Int32s, Int64s, Int64s], None]
Reading = Opening
States = Callable[[Int64s, Int64s, Int64s], Bytes]
"""A function that returns 0 for decided items, 1 for resting items and 2 for active items, from scores, nights of
decision and levels.
"""


class UserBatches(Protocol):
    """The rows of a night, as a protocol.

    Importing its only implementation, `LocalCorpus`, would create a cycle of imports.
    """

    @property
    def tokens(self) -> Int32s:
        """The tokens of all users, concatenated."""

    @property
    def user_start(self) -> Int64s:
        """The position where the tokens of each user begin."""

    @property
    def user_key(self) -> Uint64s:
        """The key of each user."""

    @property
    def vocabulary(self) -> pa.LargeStringArray:
        """The words of the tokens."""

    @property
    def limit(self) -> MemoryLimit | None:
        """The memory limit, if there is one."""


@final
@dataclass(frozen=True, slots=True, repr=False)
class Removed:
    """The numbers of a user's items and nights that were removed from the state.

    Attributes:
        items: The number of items in the user's pool.
        nights: The number of nights on which these items joined the pool.
    """

    items: int
    nights: int


@final
@dataclass(slots=True, repr=False, eq=False)
class NightlyPools:
    """The users in weighing order, each with a pool that only grows, and all items that are in any pool.

    Attributes:
        keys: uint64 (users), a function of the user's id only.
        left: int64 (users), the remaining budget, in units of 2^-40 of the whole budget.
        paid: int64 (users), the payments for the current night.
        items: int32, the pools of all users, concatenated.
        starts: int64 (users + 1), the position where each pool begins.
        nights: int32, the night on which each item joined the pool.
        words: large_string (items), the public list and then other items in order of arrival. Items remain until the
            series ends, even if no user has them.
        scores: int64 (items), the scores after the last night.
        decided: int64 (items), the night after which the item gets no more weight, or 0. An item that is not on the
            public list is released on this night. A listed item is frozen at the highest level.
        levels: int64 (items), the number of levels that a listed item has reached so far; -1 for other items.
        released: int64 (items), the night of the release, or 0.
    """

    keys: Uint64s
    left: Int64s
    paid: Int64s
    items: Int32s
    starts: Int64s
    nights: Int32s
    words: pa.LargeStringArray
    scores: Int64s
    decided: Int64s
    levels: Int64s
    released: Int64s

    @staticmethod
    def empty() -> "NightlyPools":
        """Return the state before the first night, without a public list."""
        none, small = np.empty(0, np.int64), np.empty(0, np.int32)
        return NightlyPools(
            np.empty(0, np.uint64),
            none,
            none,
            small,
            np.zeros(1, np.int64),
            small,
            string_array([]),
            none,
            none,
            none,
            none,
        )

    def recognise(self, listed: Iterable[pa.LargeStringArray]) -> None:
        """Replace the items with the items of a public list.

        These items have noise from the first night on, even if no user has them.

        Args:
            listed: The list, in parts.
        """
        self.words = joined(pa.chunked_array(listed, pa.large_string()))
        self.scores, self.decided, self.levels, self.released = np.zeros((4, len(self.words)), np.int64)

    def take(
        self, corpus: UserBatches, secret: Source, night: int, pool: int, whole: int, past: Callable[[Uint64s], Int64s]
    ) -> None:
        """Add new items to the pools, up to `pool` items per user.

        Items join in order of arrival and, within one night, in the order of a keyed hash.

        Args:
            corpus: The rows of the night.
            secret: The source of the draws.
            night: The number of the night.
            pool: The maximum number of items per user over all nights.
            whole: The budget of a new user.
            past: A function that maps names in draws to scores, which contain the noise of all earlier nights.
        """
        keys, tokens, starts = _by_key(corpus)
        places = self._places(keys)
        # Map ids of the corpus to ids of the state. New words are numbered after the known words.
        known = numbers_of(pc.index_in(corpus.vocabulary, value_set=self.words), missing=-1).astype(np.int32)
        new = np.flatnonzero(known < 0)
        known[new] = len(self.words) + np.arange(new.size, dtype=np.int32)
        ids = np.where(tokens < 0, -1, known[tokens]) if known.size else tokens
        decided = np.concatenate([self.decided, np.zeros(new.size, np.int64)]).astype(np.bool_).view(np.uint8)
        fresh, begins = fresh_items(ids.astype(np.int32), starts, places, self.items, self.starts, decided)
        words = pa.chunked_array([self.words, corpus.vocabulary.take(int64_array(new))]).combine_chunks()
        # A user without remaining budget was removed or cannot contribute any more, so the user's rows are ignored.
        room = np.append(np.where(self.left > 0, pool - np.diff(self.starts), 0), pool)[places]
        fresh, begins = _within(fresh, begins, room, keys, words, secret)
        # From here on, items that joined no pool are ignored.
        joined = np.zeros(len(words), np.bool_)
        joined[: len(self.words)] = True
        joined[fresh] = True
        fresh = (np.cumsum(joined) - 1).astype(np.int32)[fresh]
        added = words.take(int64_array(np.flatnonzero(joined)[len(self.words) :]))
        check_width(len(self.words) + len(added), "items")
        self._merge(keys, places, fresh, begins, secret, night, whole)
        # Add the noise of past nights before states are computed, because an item has the same noise in both of two
        # neighbouring streams.
        self.words = pa.chunked_array([self.words, added]).combine_chunks()
        self.scores = np.concatenate([self.scores, _in_parts(past, item_names(added, secret))])
        none = np.zeros(len(added), np.int64)
        self.decided, self.released = (np.concatenate([each, none]) for each in (self.decided, self.released))
        self.levels = np.concatenate([self.levels, none + UNLISTED])

    def pay(self, charge: Charge, states: States, since: int) -> None:
        """Charge every user with an active item for the night."""
        known = states(self.scores, self.decided, self.levels)
        self.paid = charge.costs(self.left, with_active(self.items, self.starts, self.nights, known, since))
        self.left = self.left - self.paid

    def weigh(self, charge: Charge, states: States, since: int, add: Add) -> Int64s:
        """Return the weight of every item. Each user's bound is the user's payment."""
        histogram = np.zeros(len(self.words), np.int64)
        known = states(self.scores, self.decided, self.levels)
        items, starts = active_items(self.items, self.starts, self.nights, known, since)
        bounds = charge.bounds(self.paid)
        # An array with a single bound would apply to all users, so append a second bound.
        add(histogram, items, starts, bounds if bounds.size != 1 else np.append(bounds, 0))
        return histogram

    def read(self, reading: Reading, weights: Int64s | None, secret: Source, decision: NightDecision) -> None:
        """Add a night's noisy weights to the scores of all items, and decide about all items, even if no user has them.

        The weights are None on a night that was skipped.
        """
        weights = np.zeros(len(self.words), np.int64) if weights is None else weights
        names, scores = item_names(self.words, secret), self.scores

        def part(place: Int64s) -> Int64s:
            after: Int64s = opened(reading, weights[place], names[place], scores[place])
            return after

        self.scores = _in_parts(part, np.arange(len(self.words)))
        self.decided, self.levels = decision(self.scores, self.decided, self.levels)
        self.released = np.where(self.levels == UNLISTED, self.decided, self.released)

    def reached(self, levels: int) -> tuple[int, Int64s]:
        """Return the number of released unlisted items, and the number of listed items at each level from 0 on."""
        listed = self.levels != UNLISTED
        return int(np.count_nonzero(self.decided[~listed])), np.bincount(self.levels[listed], minlength=levels + 1)

    def settle(self, frozen: int, lowest: int, night: int) -> None:
        """Freeze listed items at or above the level `frozen`, and release listed items at or above `lowest`."""
        self.decided = from_level(self.levels, frozen, night, self.decided)
        self.released = from_level(self.levels, lowest, night, self.released)

    def out(self, after: int) -> tuple[pa.LargeStringArray, Int64s, Bools]:
        """Return the items released after a night, the nights of their release, and whether they are listed."""
        chosen = np.flatnonzero(self.released > after)
        return self.words.take(int64_array(chosen)), self.released[chosen], self.levels[chosen] != UNLISTED

    def remove(self, key: int) -> Removed | None:
        """Remove the pool and the budget of a user. Return None if the user has neither.

        The key remains, because later rows must not give the user a second budget. Items and scores also
        remain.
        """
        (place,) = self._places(np.array([key], np.uint64))
        first, stop = self.starts[place : place + 2] if place >= 0 else (0, 0)
        if place < 0 or (first == stop and not self.left[place]):
            return None
        removed = Removed(int(stop - first), np.unique(self.nights[first:stop]).size)
        self.items, self.nights = (np.delete(each, slice(first, stop)) for each in (self.items, self.nights))
        self.starts[place + 1 :] -= stop - first
        self.left[place] = self.paid[place] = 0
        return removed

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the state as arrays."""
        letters, starts = text_buffers(self.words)
        own = {name: getattr(self, name) for name in NightlyPools.__slots__ if name != "words"}
        return {**own, "letters": letters[starts[0] : starts[-1]], "word_starts": starts - starts[0]}

    @staticmethod
    def of(arrays: Mapping[str, np.ndarray[Any, Any]]) -> "NightlyPools":
        """Return the state from the arrays that `arrays` returned."""
        own = {name: arrays[name] for name in NightlyPools.__slots__ if name != "words"}
        size = arrays["word_starts"].size - 1
        starts, letters = (pa.py_buffer(np.ascontiguousarray(arrays[name])) for name in ("word_starts", "letters"))
        return NightlyPools(words=pa.LargeStringArray.from_buffers(size, starts, letters), **own)

    def _places(self, keys: Uint64s) -> Int64s:
        """Return the position of each user in the state, or -1."""
        order = np.argsort(self.keys)
        found = np.searchsorted(self.keys, keys, sorter=order)
        places = np.append(order, 0)[np.minimum(found, order.size)]
        return np.where((found < order.size) & (np.append(self.keys, np.uint64(0))[places] == keys), places, -1)

    def _merge(
        self, keys: Uint64s, places: Int64s, fresh: Int32s, begins: Int64s, secret: Source, night: int, whole: int
    ) -> None:
        everybody = np.concatenate([self.keys, keys[places < 0]])
        order = weighing_order(everybody, secret, ORDER_OF_NIGHTS)
        old = np.where(order < self.keys.size, order, -1)
        tonight = np.full(everybody.size, -1, np.int64)
        tonight[places[places >= 0]] = np.flatnonzero(places >= 0)
        tonight[self.keys.size :] = np.flatnonzero(places < 0)
        pools = joined_pools(old, tonight[order], (self.items, self.starts, self.nights), (fresh, begins), night)
        self.items, self.starts, self.nights = pools
        self.left = np.concatenate([self.left, np.full(int((places < 0).sum()), whole, np.int64)])[order]
        self.keys, self.paid = everybody[order], np.zeros(everybody.size, np.int64)


def require_memory(corpus: UserBatches, pools: NightlyPools) -> None:
    """Raise an error if a night would exceed the memory limit of the corpus."""
    if corpus.limit is not None:
        size = BYTES_OF_PAIR * (corpus.tokens.size + pools.items.size)
        size += BYTES_OF_USER * (corpus.user_key.size + pools.keys.size)
        size += BYTES_OF_ITEM * (len(corpus.vocabulary) + len(pools.words))
        corpus.limit.require(size, "the pools of all users and the scores of all items")


def _by_key(corpus: UserBatches) -> tuple[Uint64s, Int32s, Int64s]:
    """Return users and their tokens in the order of keys. Users with the same key become one user."""
    order = np.argsort(corpus.user_key, kind="stable")
    keys, tokens = corpus.user_key[order], np.empty(corpus.tokens.size, np.int32)
    gather_slices(np.asarray(corpus.tokens), np.asarray(corpus.user_start), order, tokens)
    starts = np.concatenate([[0], np.cumsum(np.diff(corpus.user_start)[order])]).astype(np.int64)
    first = np.append(True, keys[1:] != keys[:-1])[: keys.size]
    starts = np.append(starts[:-1][first], starts[-1])
    sort_items(tokens, starts)
    return keys[first], tokens, starts


def _within(
    items: Int32s, starts: Int64s, room: Int64s, keys: Uint64s, words: pa.LargeStringArray, secret: Source
) -> tuple[Int32s, Int64s]:
    """Return at most `room` items of each user, drawn by a keyed hash of user and item."""
    sizes = np.diff(starts)
    crowded = sizes > room
    if not crowded.any():
        return items, starts
    owner = np.repeat(np.arange(sizes.size), sizes)
    drawn = np.flatnonzero(crowded[owner])
    held, number = np.unique(items[drawn], return_inverse=True)
    names = item_names(words.take(int64_array(held)), secret, parts=1)[:, 0][number]
    priority = secret.draws(sample_of(ORDER_OF_NIGHTS), keys[owner[drawn]], names)[:, 0]
    order = drawn[np.lexsort((priority, owner[drawn]))]
    # The rank is the position of each item among the items of its user.
    rank = np.arange(order.size) - np.searchsorted(owner[order], owner[order])
    kept = np.ones(items.size, np.bool_)
    kept[order] = rank < room[owner[order]]
    return items[kept], np.append(0, np.cumsum(np.minimum(sizes, room))).astype(np.int64)


def _in_parts(work: Callable[[Any], Int64s], values: np.ndarray[Any, Any]) -> Int64s:
    """Return the result of a function for an array, which threads compute in parts."""
    parts = [values[first : first + ITEMS_AT_ONCE] for first in range(0, len(values), ITEMS_AT_ONCE)]
    return np.concatenate([np.empty(0, np.int64), *in_order(work, parts)])
