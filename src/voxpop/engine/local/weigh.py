"""The weighing of a corpus. Every user divides a weight among at most `limit` distinct candidates."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TypeVar

import numpy as np
import pyarrow as pa

from voxpop.engine.contract import WORDS_PASS, Shares, order_of, sample_of
from voxpop.errors import InternalError
from voxpop.kernels.arrays import Bytes, Int32s, Int64s, Texts, Uint64s
from voxpop.kernels.group import gather_slices
from voxpop.kernels.pairs import mark_met, table_of
from voxpop.kernels.proved import proved
from voxpop.kernels.threads import THREADS, in_order
from voxpop.kernels.weigh import gather_distinct, keep_smallest, pairs_over_limit
from voxpop.privacy.opening import Opening, opened
from voxpop.privacy.secret import Source
from voxpop.reading.arrow import check_width, int64_array, text_buffers
from voxpop.reading.limited.memory import MemoryLimit, forget_pages, release_unused
from voxpop.reading.limited.sorter import HEAD, SHARE_OF_SORTER, Mapped, Sorter, in_key_order

ITEMS_AT_ONCE = 1 << 15
"""The number of items per batch of noise. Each thread draws one batch at a time."""

# The private input contains the ids of every user at one length, one id per position, concatenated over users.

WORDS_AT_ONCE = 1 << 17
"""The number of words per batch of names. A batch needs 42 MB for draws. Two million words at once would need 147 MB.
"""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Holdings:
    """The private input of one weighing.

    Attributes:
        ids: int32, the item or gram at each position; negative for no item.
        user_start: int64 (users + 1), the first position of each user.
        user_key: uint64 (users), a function of the user's id only.
        size: An upper bound (exclusive) on the ids.
        names: int64 (size), the name of each id in draws, which does not depend on the engine, or None if ids are their
            own names.
        limit: The memory limit of weighing; None for unlimited memory.
        words: large_string (size), the items at length 1. Draws use the bytes of these items as names, because ids
            depend on the other items. This attribute is None for longer grams.
        order: int64 (users), the users in weighing order, or None if users are stored in this order.
    """

    ids: Int32s
    user_start: Int64s
    user_key: Uint64s
    size: int
    names: Int64s | None = None
    limit: MemoryLimit | None = None
    words: pa.LargeStringArray | None = None
    order: Int64s | None = None

    def draw_names(self, secret: Source) -> Uint64s | None:
        """Return the name of each id in draws, or None if ids are their own names.

        The name of a word is 64 bits of its draw. If two words of one user had the same bits, a sample would keep or
        omit both. The proof allows this, because a sample may be any function of the user's own items.
        """
        if self.words is not None:
            return item_names(self.words, secret, parts=1)[:, 0]
        # left * 2^32 + partner is below 2^63, so the sign bit is 0.
        return None if self.names is None else self.names.view(np.uint64)


def item_names(words: pa.LargeStringArray, secret: Source, parts: int = 2) -> Uint64s:
    """Return the 128 bits (n, 2) that identify each item in random draws.

    These bits depend only on the item and the secret.

    Args:
        words: large_string (n), the items.
        secret: The source of the bits.
        parts: The number of 64-bit parts to return (1 or 2), the more significant part first.
    """
    letters, starts = text_buffers(words)
    names = np.empty((len(words), parts), np.uint64)
    for first in range(0, len(words), WORDS_AT_ONCE):
        mine = starts[first : first + WORDS_AT_ONCE + 1]
        # Names depend only on the bytes and the secret. Ids differ between engines, but names do not.
        names[first : first + WORDS_AT_ONCE] = secret.text_draws(WORDS_PASS, letters, mine)[:, :parts]
    return names


# Before each user's items are weighed, repeated items are removed, and the remaining items are cut to the limit.

_WeighTask = TypeVar("_WeighTask")
_WeighResult = TypeVar("_WeighResult")

TOKENS_AT_ONCE = 1 << 19
FEW_TOKENS_AT_ONCE = 1 << 16
"""The batch size with a memory limit. It is smaller because a draw from a user with too many items needs 100 bytes per
item.
"""


BoundedSets = tuple[Int32s, Int64s]


@dataclass(slots=True)
class _Scratch:
    """A marker for repeated items, which belongs to one thread.

    For each item, the marker contains the last user who had it.
    """

    seen: Int32s
    stamp: int = 0


def bounded_sets(
    holdings: Holdings, limit: int, candidates: Bytes | None, secret: Source, pass_name: str
) -> Iterator[BoundedSets]:
    """Yield (items, starts) for batches of users, with at most `limit` distinct candidates per user, drawn uniformly.

    Items are drawn without replacement. A user's draw depends only on the secret, the user's key and the user's own
    items, so adding a user changes no other user's draw. The sets are in the order of users for any number of threads.
    """
    # A user has at most as many distinct items as positions, so no draw is needed if no user has more positions than
    # the limit.
    crowded = holdings.user_key.size > 0 and int(np.diff(holdings.user_start).max()) > limit
    # Computing names costs one draw per item, so compute them only if a user exceeds the limit.
    names = holdings.draw_names(secret) if crowded else None

    def bound(items: Int32s, starts: Int64s, keys: Uint64s) -> BoundedSets:
        return cut_to_limit(names, items, starts, keys, limit, secret, pass_name)

    yield from distinct_sets(holdings, candidates, bound)


def distinct_sets(
    holdings: Holdings,
    candidates: Bytes | None,
    then: Callable[[Int32s, Int64s, Uint64s], _WeighResult],
) -> Iterator[_WeighResult]:
    """For each batch of users, in order, yield the result of `then` on (items, starts, keys) of all candidates."""
    check_width(holdings.user_key.size, "users")  # the marker stores users as 32-bit numbers
    # uint8 (ids), nonzero for candidates; empty if every id is a candidate.
    mask = np.empty(0, np.uint8) if candidates is None else candidates
    scratches: SimpleQueue[_Scratch] = SimpleQueue()
    for _ in range(THREADS if holdings.limit is None else 1):
        scratches.put(_Scratch(np.full(holdings.size, -1, np.int32)))

    def distinct(users: Int64s) -> _WeighResult:
        scratch = scratches.get()
        items, starts = _distinct(holdings, users, mask, scratch)
        # The next users of this thread get larger marks than the previous users.
        scratch.stamp += users.size
        scratches.put(scratch)
        return then(items, starts, holdings.user_key[users])

    yield from in_order(distinct, _batches(holdings))


def _distinct(holdings: Holdings, users: Int64s, mask: Bytes, scratch: _Scratch) -> BoundedSets:
    """Return the distinct items of a batch of users. A single user with very many positions is read in parts."""
    ids, user_start = holdings.ids, holdings.user_start
    begin, end = int(user_start[users[0]]), int(user_start[users[-1] + 1])
    # Read the batch in one pass, unless it is a single user with more than four batches of tokens.
    if users.size > 1 or end - begin <= 4 * TOKENS_AT_ONCE:
        items, starts = gather_distinct(ids, user_start, users, mask, scratch.seen, scratch.stamp)
    else:
        parts, alone = [], np.zeros(1, np.int64)
        for place in range(begin, end, TOKENS_AT_ONCE):
            span = np.array([place, min(place + TOKENS_AT_ONCE, end)], np.int64)
            # All parts share one marker, so later parts skip items that an earlier part has seen.
            parts.append(gather_distinct(ids, span, alone, mask, scratch.seen, scratch.stamp)[0])
            forget_pages(ids, place, int(span[1]))
        items = np.concatenate(parts)
        starts = np.array([0, items.size], np.int64)
    if holdings.order is None:
        forget_pages(ids, begin, end)
    return items, starts


def cut_to_limit(
    names: Uint64s | None,
    items: Int32s,
    starts: Int64s,
    keys: Uint64s,
    limit: int,
    secret: Source,
    pass_name: str,
) -> BoundedSets:
    """Draw `limit` items for each user who has more than `limit`."""
    if starts.size < 2 or np.diff(starts).max() <= limit:
        return items, starts
    # No draw is needed for users within the limit.
    first, second = pairs_over_limit(items, starts, keys, limit)
    # Draws use the name of the item, which does not depend on the engine, instead of its number.
    named = second if names is None else names[second.view(np.int64)]
    # uint64 by (user key, item), so a user's draw does not depend on other users (docs/privacy/randomness.md).
    priorities = secret.draws(sample_of(pass_name), first, named)[:, 0].copy()
    kept = keep_smallest(items, starts, priorities, limit)
    return items[:kept], starts


def _batches(holdings: Holdings) -> Iterator[Int64s]:
    """Yield batches of users in order. Both the number of tokens and the number of users in a batch are limited."""
    most = TOKENS_AT_ONCE if holdings.limit is None else FEW_TOKENS_AT_ONCE
    if holdings.order is not None:
        for first, stop in user_spans(_starts_in(holdings.order, holdings.user_start), most):
            yield holdings.order[first:stop]
        return
    for first, stop in user_spans(holdings.user_start, most):
        yield np.arange(first, stop)
        forget_pages(holdings.user_start, 0, first)
        forget_pages(holdings.user_key, 0, first)


def _starts_in(order: Int64s, user_start: Int64s) -> Int64s:
    """Return the first position of each user after the users are stored in this order."""
    return np.concatenate([[0], np.cumsum(np.diff(user_start)[order])]).astype(np.int64)


def user_spans(user_start: Int64s, most: int) -> Iterator[tuple[int, int]]:
    """Yield spans (first user, end) with at most `most` positions and users, but at least one whole user."""
    first, users = 0, user_start.size - 1
    while first < users:
        stop = int(np.searchsorted(user_start, user_start[first] + most, side="right")) - 1
        stop = min(max(stop, first + 1), first + most, users)
        yield first, stop
        first = stop


# The code below stores the private weights of the items that have at least one user.

IDS_AT_ONCE = 1 << 17
"""The maximum number of items in a batch. Their draws need 42 MB. Two million items at once would need 147 MB."""


@dataclass(frozen=True, slots=True, repr=False)
class Histogram:
    """The weight of each item of the bounded sets. Other items are not included.

    Attributes:
        _ids: int64 (support), the ids in increasing order, or the names of grams in any order (`MemoryLengthWalk`).
        _weights: int64 (support), the positive weights, in units of the weighting's grid.
        _words: large_string (support), the items if draws name them by their bytes, or None otherwise.
    """

    _ids: Int64s
    _weights: Int64s
    _words: pa.LargeStringArray | None = None

    def chosen(self, decision: Opening) -> Int64s:
        """Return the ids that pass the decision, in increasing order.

        Args:
            decision: The decision about each item.
        """
        nobody = np.empty(0, np.int64)
        return self.noisy_levels(decision, nobody, nobody)[0]

    def noisy_levels(self, levels: Opening, spurious_names: Int64s, theirs: Int64s) -> tuple[Int64s, Int64s]:
        """Return the ids with a level above 0, in increasing order, and their levels.

        Args:
            levels: A function that returns the number of cutpoints that each item with weight reaches. For a decision,
                the number is 1 if the item passes.
            spurious_names: The ids, in increasing order, that are returned with a level if they have no weight.
            theirs: int64 (spurious), the level of each of these ids.
        """
        # A simulated hit counts only for an item without weight. Otherwise the item's own noise decides
        # (docs/privacy/ngrams.md, "Simulation").
        table, somebodys = table_of(spurious_names), np.zeros(spurious_names.size, np.uint8)

        def grade(part: tuple[Int64s, Int64s, Texts | None]) -> tuple[Int64s, Int64s]:
            weights, ids, texts = part
            mark_met(ids, table, somebodys)
            each = opened(levels, weights, ids, texts).astype(np.int64, copy=False)
            return ids[each > 0], each[each > 0]

        # Draws depend on names, not on batches or threads. Draws that are named by bytes need more memory, so a single
        # thread computes them.
        work = in_order(grade, self._parts()) if self._words is None else map(grade, self._parts())
        graded = list(work)
        nobodys = somebodys == 0
        ids_of = [spurious_names[nobodys], *(ids for ids, _ in graded)]
        levels_of = [theirs[nobodys], *(reached for _, reached in graded)]
        # Sort the names, so that their order does not reveal which of them are simulated.
        names = np.concatenate(ids_of)
        order = np.argsort(names)
        return names[order], np.concatenate(levels_of)[order]

    def _parts(self) -> Iterator[tuple[Int64s, Int64s, Texts | None]]:
        """Yield weights, ids and texts in batches."""
        texts = None if self._words is None else text_buffers(self._words)
        for start in range(0, self._ids.size, IDS_AT_ONCE):
            stop = min(start + IDS_AT_ONCE, self._ids.size)
            some = None if texts is None else (texts[0], texts[1][start : stop + 1])
            yield self._weights[start:stop], self._ids[start:stop], some

    def texts(self, ids: Int64s) -> pa.LargeStringArray:
        """Return the words of ids that passed at length 1."""
        if self._words is None:
            raise InternalError("words were requested for ids that identify grams instead of words")
        # At length 1, ids are sorted, so bisection finds their positions.
        return self._words.take(int64_array(np.searchsorted(self._ids, ids)))

    @proved("ngrams.md#proof")
    def measured(self, noise: Opening, size: int) -> Int64s:
        """Return the noisy weight of every id below `size`, including ids without weight.

        Proof: "Weights are defined on the whole public set, and are zero for candidates without users."
        """
        # Shape (names,), including names without users, because otherwise their absence would be published.
        weights = np.zeros(size, np.int64)
        weights[self._ids] = self._weights
        noisy: Int64s = opened(noise, weights, np.arange(size))
        return noisy


_NAMES_AT_ONCE = 1 << 20
BYTES_OF_ID = 48
"""The peak memory per distinct item, in bytes, for the weight, the last user, the result, and pages of the name."""


def weigh(
    holdings: Holdings,
    shares: Shares,
    limit: int,
    candidates: Bytes | None,
    secret: Source,
    pass_name: str,
    bounds: Int64s | None = None,
) -> Histogram:
    """Return the histogram of the bounded sets, computed in one pass over the positions.

    Args:
        holdings: The private items of every user.
        shares: The weighting, with its grid and cutoff.
        limit: The maximum number of items per user.
        candidates: uint8 (ids), nonzero for items that may be drawn, or None if every item may be drawn. The argument
            depends only on public outputs.
        secret: The source of the sample and of the order of users.
        pass_name: The name of this pass in the release, such as "round 0/length 1". Every pass makes new draws.
        bounds: int64 (users) in stored order, the contribution bound of each user, as charged, or None if the bound is
            1 for every user.

    Returns:
        The weights of exactly those items that are in at least one bounded set.
    """
    if holdings.limit is not None:
        holdings.limit.require(BYTES_OF_ID * holdings.size, "the weights of all distinct tokens or pairs")
    # int64 (ids), in units of the weighting's grid. Sums are exact, so the order matters only to sequential weightings.
    histogram, weighed = np.zeros(holdings.size, np.int64), 0
    for items, starts in bounded_sets(holdings, limit, candidates, secret, pass_name):
        if bounds is None:
            shares.add(histogram, items, starts)
        else:
            shares.add(histogram, items, starts, bounds[weighed : weighed + starts.size - 1])
        weighed += starts.size - 1
    if bounds is not None and weighed != bounds.size:
        raise InternalError("users would be weighed with the bounds of other users")
    # Only the support of the bounded sets may be queried.
    if holdings.names is not None:
        return Histogram(*_supported(holdings.names, histogram))
    ids, words = np.flatnonzero(histogram), holdings.words
    if words is not None and ids.size < len(words):
        words = words.take(int64_array(ids))
    return Histogram(ids, histogram[ids], words)


def _supported(names: Int64s, weights: Int64s) -> tuple[Int64s, Int64s]:
    """Return the names and weights of items with positive weight. This overwrites `weights`."""
    found, end = np.empty(np.count_nonzero(weights), np.int64), 0
    for begin in range(0, names.size, _NAMES_AT_ONCE):
        mine = weights[begin : begin + _NAMES_AT_ONCE]
        held = np.flatnonzero(mine)
        found[end : end + held.size] = names[begin : begin + _NAMES_AT_ONCE][held]
        # Compact the arrays in place, which avoids a second copy of hundreds of millions of pairs.
        weights[end : end + held.size] = mine[held]
        end += held.size
    return found, weights[:end] if 2 * end > names.size else weights[:end].copy()


# The code below determines the order in which users give weight. The same rule applies in memory, with a memory limit
# and on Spark.
#
# Users are sorted by 64 bits of a keyed hash of the user's key, and then by the key itself. Both depend only on the
# user's id and the secret. The position of a user's rows, the number of users, the file and the machine have no
# influence. Therefore an additional user does not reorder the other users. The proof of every sequential weighting
# starts from this fact (docs/privacy/set-union.md).


def order_hashes(keys: Uint64s, secret: Source, pass_name: str) -> Uint64s:
    """Return the first of the two sort keys of users, a keyed hash of each user's key, as uint64 (users)."""
    return secret.draws(order_of(pass_name), keys, 0)[:, 0].copy()


@proved("randomness.md#the-order-of-users")
def weighing_order(keys: Uint64s, secret: Source, pass_name: str) -> Int64s:
    """Return the users in the order of weighing, which is sorted by (hash, key), both of 64 bits.

    Proof: "So the order of two users is a function of the secret and these two users."

    Users with the same key (string ids with equal fixed 64-bit hashes) remain in the given order. An additional user
    changes the positions of other users, but not which of two other users is first.

    Args:
        keys: uint64 (users), a function of each user's id.
        secret: The source of the hash.
        pass_name: The name of this order.

    Returns:
        int64 (users), a permutation.
    """
    hashes = order_hashes(keys, secret, pass_name)
    order = np.argsort(hashes)
    if (np.diff(hashes[order]) == 0).any():
        # Sort by hash, then key, then position. The last argument of lexsort is its primary key, and lexsort is stable.
        order = np.lexsort((keys, hashes))
    return order


_WEIGHED_AT_ONCE = 1 << 22
"""The number of positions that a thread moves before it releases pages of a mapped corpus."""


def in_weighing_order(
    tokens: Int32s, user_start: Int64s, user_key: Uint64s, limit: MemoryLimit | None, secret: Source, pass_name: str
) -> Mapped:
    """Return the users sorted by `weighing_order`, in memory or (with a memory limit) in mapped files.

    Passes then read memory in order. This order is twice as fast as a random order in every pass.
    """
    if limit is None:
        order = weighing_order(user_key, secret, pass_name)
        starts = _starts_in(order, user_start)
        moved = np.empty(tokens.size, np.int32)

        def gather(span: tuple[int, int]) -> None:
            first, stop = span
            gather_slices(tokens, user_start, order[first:stop], moved[starts[first] : starts[stop]])

        for _ in in_order(gather, user_spans(starts, _WEIGHED_AT_ONCE)):
            forget_pages(tokens)
        return moved, starts, user_key[order]
    # This is the buffer size, in bytes. Each addition to the sorter is at most a sixteenth of it.
    most = limit.room // SHARE_OF_SORTER
    sorter = Sorter(limit, most, tokens.nbytes + HEAD.itemsize * user_key.size)
    for first, last in user_spans(user_start, most // 16):
        heads = np.zeros(last - first, HEAD)
        heads["user"] = heads["other"] = user_key[first:last]
        # Users are in the order of set union, by 64 bits of a keyed hash and then by user key. This order does not
        # depend on where users are stored (docs/privacy/set-union.md).
        heads["key"] = order_hashes(heads["user"], secret, pass_name)
        heads["row"] = np.arange(first, last)
        begin, end = int(user_start[first]), int(user_start[last])
        # A user with more than one block is added in several parts.
        for place in range(begin, max(end, begin + 1), most // 16):
            stop = min(place + most // 16, end)
            heads["size"] = np.diff(user_start[first : last + 1]) if last - first > 1 else stop - place
            sorter.add(heads, np.asarray(tokens[place:stop]))
            forget_pages(tokens, place, stop)
        forget_pages(user_start, first, last)
        forget_pages(user_key, first, last)
    mapped = in_key_order(sorter, limit)
    release_unused()
    return mapped
