"""User first: a user's items are made distinct and cut to the limit before anybody weighs them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TypeVar

import numpy as np

from voxpop.arrays import Bytes, Int32s, Int64s, Uint64s
from voxpop.corpus.draws import Draws, sample_of
from voxpop.corpus.holdings import Holdings
from voxpop.corpus.limited.pages import forget_pages
from voxpop.corpus.widths import check_width
from voxpop.kernels.bound import gather_distinct, keep_smallest, pairs_over_limit
from voxpop.threads import THREADS, in_order

Task = TypeVar("Task")
Result = TypeVar("Result")

TOKENS_AT_ONCE = 1 << 19
FEW_TOKENS_AT_ONCE = 1 << 16
"""Within a memory limit: drawing from a user who holds too many items takes a hundred bytes for each of them."""


BoundedSets = tuple[Int32s, Int64s]


@dataclass(slots=True)
class _Scratch:
    """What one thread needs to tell an item it has seen: the last user who held each item."""

    seen: Int32s
    stamp: int = 0


def bounded_sets(
    holdings: Holdings,
    limit: int,
    candidates: Bytes | None,
    secret: Draws,
    pass_name: str,
    *,
    shuffle: bool,
) -> Iterator[BoundedSets]:
    """Yield (items, starts) of users: at most `limit` distinct candidates each, drawn uniformly without replacement.

    A user's draw depends on the secret, the user's key and the user's own items alone, so adding a user moves nobody
    else's. With `shuffle` the users come in the order of the holdings. The sets come in that order whatever the number
    of threads that prepare them ahead.
    """
    # Positions bound distinct items: where no user has more of them than the limit nothing is drawn.
    crowded = holdings.user_key.size > 0 and int(np.diff(holdings.user_start).max()) > limit
    # Names cost a draw for each item: only where somebody is cut.
    names = holdings.draw_names(secret) if crowded else None

    def bound(items: Int32s, starts: Int64s, keys: Uint64s) -> BoundedSets:
        return cut_to_limit(names, items, starts, keys, limit, secret, pass_name)

    yield from distinct_sets(holdings, candidates, bound, shuffle=shuffle)


def distinct_sets(
    holdings: Holdings,
    candidates: Bytes | None,
    then: Callable[[Int32s, Int64s, Uint64s], Result],
    *,
    shuffle: bool,
) -> Iterator[Result]:
    """Yield what `then` makes of (items, starts, keys) of users: all distinct candidates of each, in order."""
    check_width(holdings.user_key.size, "users")  # whose items were seen is marked by numbers of 32 bits
    # uint8 (ids), nonzero for candidates; empty for all.
    mask = np.empty(0, np.uint8) if candidates is None else candidates
    scratches: SimpleQueue[_Scratch] = SimpleQueue()
    for _ in range(THREADS if holdings.limit is None else 1):
        scratches.put(_Scratch(np.full(holdings.size, -1, np.int32)))

    def distinct(users: Int64s) -> Result:
        scratch = scratches.get()
        items, starts = _distinct(holdings, users, mask, scratch)
        # Marks of this thread's next users begin behind those of the last ones.
        scratch.stamp += users.size
        scratches.put(scratch)
        return then(items, starts, holdings.user_key[users])

    if holdings.order is None or not shuffle:
        yield from in_order(distinct, _batches_as_they_are(holdings))
    else:
        yield from in_order(distinct, _batches(holdings, holdings.order))


def _distinct(holdings: Holdings, users: Int64s, mask: Bytes, scratch: _Scratch) -> BoundedSets:
    """Return the distinct items of users; of one user with a great many positions a part at a time."""
    ids, user_start = holdings.ids, holdings.user_start
    begin, end = int(user_start[users[0]]), int(user_start[users[-1] + 1])
    # One pass, unless a single user holds more than four batches.
    if users.size > 1 or end - begin <= 4 * TOKENS_AT_ONCE:
        items, starts = gather_distinct(ids, user_start, users, mask, scratch.seen, scratch.stamp)
    else:
        parts, alone = [], np.zeros(1, np.int64)
        for place in range(begin, end, TOKENS_AT_ONCE):
            span = np.array([place, min(place + TOKENS_AT_ONCE, end)], np.int64)
            # One mark for all parts: what a part has seen the next one skips.
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
    secret: Draws,
    pass_name: str,
) -> BoundedSets:
    """Draw `limit` items of each user who holds more."""
    if starts.size < 2 or np.diff(starts).max() <= limit:
        return items, starts
    # Only of users who hold too many: nobody else's items are drawn.
    first, second = pairs_over_limit(items, starts, keys, limit)
    # By what an item is called on every engine, not by its number here.
    named = second if names is None else names[second.view(np.int64)]
    # uint64 by (user key, item): the draw of a user does not depend on anybody else (docs/privacy/randomness.md).
    priorities = secret.draws(sample_of(pass_name), first, named)[:, 0].copy()
    kept = keep_smallest(items, starts, priorities, limit)
    return items[:kept], starts


def _batches(holdings: Holdings, order: Int64s) -> Iterator[Int64s]:
    """Yield the users in an order, about `TOKENS_AT_ONCE` tokens at a time."""
    # (users,), positions up to and with each user, in the order in which they weigh.
    ends = np.cumsum(np.diff(holdings.user_start)[order])
    start = 0
    while start < order.size:
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + TOKENS_AT_ONCE, side="right")))
        yield order[start:stop]
        start = stop


def _batches_as_they_are(holdings: Holdings) -> Iterator[Int64s]:
    """Yield the users as they lie, about so many tokens and at most as many users at a time."""
    user_start, start = holdings.user_start, 0
    most = TOKENS_AT_ONCE if holdings.limit is None else FEW_TOKENS_AT_ONCE
    while start < user_start.size - 1:
        stop = int(np.searchsorted(user_start, user_start[start] + most, side="right")) - 1
        stop = min(max(start + 1, stop), start + most)
        yield np.arange(start, stop)
        forget_pages(user_start, 0, start)
        forget_pages(holdings.user_key, 0, start)
        start = stop
