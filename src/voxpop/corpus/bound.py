"""User first: a user's items are made distinct and cut to the limit before anybody weighs them."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from voxpop.corpus.draws import Draws
from voxpop.corpus.holdings import Holdings
from voxpop.kernels.bound import gather_distinct, keep_smallest, pairs_over_limit

Task = TypeVar("Task")
Result = TypeVar("Result")

TOKENS_AT_ONCE = 1 << 19
THREADS = int(os.environ.get("VOXPOP_THREADS", min(8, os.cpu_count() or 1)))


BoundedSets = tuple[NDArray[np.int32], NDArray[np.int64]]


@dataclass(slots=True)
class _Scratch:
    """What one thread needs to tell an item it has seen: the last user who held each item."""

    seen: NDArray[np.int32]
    stamp: int = 0


def bounded_sets(
    holdings: Holdings,
    limit: int,
    candidates: NDArray[np.uint8] | None,
    secret: Draws,
    occasion: str,
    *,
    shuffle: bool,
) -> Iterator[BoundedSets]:
    """Yield (items, starts) of users: at most `limit` distinct candidates each, drawn uniformly without replacement.

    A user's draw depends on the secret, the user's key and the user's own items alone, so adding a user moves nobody
    else's. With `shuffle` the users come in the order of the holdings. The sets come in that order whatever the number
    of threads that prepare them ahead.
    """
    mask = np.empty(0, np.uint8) if candidates is None else candidates
    crowded = holdings.user_key.size > 0 and int(np.diff(holdings.user_start).max()) > limit
    names = holdings.draw_names(secret) if crowded else None
    scratches: SimpleQueue[_Scratch] = SimpleQueue()
    for _ in range(THREADS):
        scratches.put(_Scratch(np.full(holdings.size, -1, np.int32)))

    def bound(users: NDArray[np.int64]) -> BoundedSets:
        scratch = scratches.get()
        items, starts = gather_distinct(holdings.ids, holdings.user_start, users, mask, scratch.seen, scratch.stamp)
        scratch.stamp += users.size
        scratches.put(scratch)
        return _cut(names, items, starts, holdings.user_key[users], limit, secret, occasion)

    yield from in_order(bound, _batches(holdings, shuffle=shuffle))


def in_order(work: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
    """Yield `work(task)` in the order of the tasks, a few of them worked on ahead by threads."""
    ahead: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(THREADS) as threads:
        for task in tasks:
            ahead.append(threads.submit(work, task))
            if len(ahead) > 2 * THREADS:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def _cut(
    names: NDArray[np.uint64] | None,
    items: NDArray[np.int32],
    starts: NDArray[np.int64],
    keys: NDArray[np.uint64],
    limit: int,
    secret: Draws,
    occasion: str,
) -> BoundedSets:
    """Draw `limit` items of each user who holds more."""
    if starts.size < 2 or np.diff(starts).max() <= limit:
        return items, starts
    first, second = pairs_over_limit(items, starts, keys, limit)
    named = second if names is None else names[second.view(np.int64)]
    priorities = secret.draws(f"sample/{occasion}", first, named)[:, 0].copy()
    kept = keep_smallest(items, starts, priorities, limit)
    return items[:kept], starts


def user_order(keys: NDArray[np.uint64], secret: Draws, occasion: str) -> NDArray[np.int64]:
    """Return the users by a keyed hash of their keys, ties by place: adding a user does not move the others.

    The lowest bits of each hash make room for the place, since sorting plain numbers is ten times faster than sorting
    places by them.
    """
    bits = np.uint64(keys.size.bit_length())
    hashes = secret.draws(f"order/{occasion}", keys, 0)[:, 0]
    packed = ((hashes >> bits) << bits) | np.arange(keys.size, dtype=np.uint64)
    packed.sort()
    return (packed & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int64)


def _batches(holdings: Holdings, *, shuffle: bool) -> Iterator[NDArray[np.int64]]:
    """Yield the users in order, about `TOKENS_AT_ONCE` tokens at a time."""
    sizes = np.diff(holdings.user_start)
    order = np.arange(sizes.size)
    if shuffle and holdings.order is not None:
        order = holdings.order
        sizes = sizes[order]
    ends = np.cumsum(sizes)
    start = 0
    while start < order.size:
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + TOKENS_AT_ONCE, side="right")))
        yield order[start:stop]
        start = stop
