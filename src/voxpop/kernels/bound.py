"""Kernels that bound what one user contributes: distinct items first, then at most `limit` of them."""

import numpy as np

from voxpop.arrays import Bytes, Int32s, Int64s, Uint64s
from voxpop.kernels._jit import jit


@jit
def gather_distinct(
    tokens: Int32s, user_start: Int64s, users: Int64s, candidates: Bytes, seen: Int32s, stamp: int
) -> tuple[Int32s, Int64s]:
    """List the distinct candidate items of each user, in order of first appearance.

    Args:
        tokens: int32, one id per token; negative ids separate documents.
        user_start: int64 (n_users + 1), where each user's tokens begin.
        users: int64, the users to read, in the order wanted.
        candidates: uint8 (vocabulary), nonzero where an item may be chosen; empty means every item.
        seen: int32 (vocabulary), scratch that holds no value in `stamp .. stamp + len(users)`; written.
        stamp: int, the mark of the first of `users`.

    Returns:
        items (int32) and starts (int64, len(users) + 1): user `users[j]` has `items[starts[j]:starts[j + 1]]`.
    """
    most = 0
    for j in range(users.size):
        # An upper bound on the pairs: every token its own item.
        most += user_start[users[j] + 1] - user_start[users[j]]
    items = np.empty(most, np.int32)
    starts = np.empty(users.size + 1, np.int64)
    filter_items = candidates.size > 0
    end = 0
    for j in range(users.size):
        starts[j] = end
        mark = stamp + j
        for position in range(user_start[users[j]], user_start[users[j] + 1]):
            item = tokens[position]
            # Every user has a mark of its own, so `seen` need not be cleared from user to user.
            if item < 0 or seen[item] == mark:
                continue
            seen[item] = mark
            if filter_items and candidates[item] == 0:
                continue
            items[end] = item
            end += 1
    starts[users.size] = end
    return items[:end], starts


@jit
def pairs_over_limit(items: Int32s, starts: Int64s, keys: Uint64s, limit: int) -> tuple[Uint64s, Uint64s]:
    """List (user key, item) for every item of the users who hold more than `limit`, in order."""
    total = 0
    for j in range(starts.size - 1):
        if starts[j + 1] - starts[j] > limit:
            total += starts[j + 1] - starts[j]
    first = np.empty(total, np.uint64)
    second = np.empty(total, np.uint64)
    end = 0
    for j in range(starts.size - 1):
        if starts[j + 1] - starts[j] <= limit:
            continue
        for position in range(starts[j], starts[j + 1]):
            # (user key, item): what a draw is named by, so it depends on the user and the item alone
            # (docs/privacy/randomness.md).
            first[end] = keys[j]
            second[end] = np.uint64(items[position])
            end += 1
    return first, second


@jit
def _smallest(values: Uint64s, rank: int) -> np.uint64:
    """Return the value of the given rank (0 is the smallest), reordering the values: Hoare's selection."""
    low, high = 0, values.size - 1
    while low < high:
        pivot = values[(low + high) // 2]
        left, right = low, high
        while left <= right:
            while values[left] < pivot:
                left += 1
            while values[right] > pivot:
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                left += 1
                right -= 1
        if rank <= right:
            high = right
        elif rank >= left:
            low = left
        else:
            break
    chosen: np.uint64 = values[rank]
    return chosen


@jit
def keep_smallest(items: Int32s, starts: Int64s, priorities: Uint64s, limit: int) -> int:
    """Keep the `limit` items of smallest priority of every user who holds more, in place and in order.

    Args:
        items: int32, as from `gather_distinct`; overwritten from the front.
        starts: int64, as from `gather_distinct`; overwritten with the new starts.
        priorities: uint64, one per pair that `pairs_over_limit` listed.
        limit: int, most items of one user.

    Returns:
        The number of items kept; `items[:kept]` and `starts` describe the bounded sets.
    """
    end = 0
    drawn = 0
    begin = starts[0]
    for j in range(starts.size - 1):
        stop = starts[j + 1]
        held = stop - begin
        starts[j] = end
        if held <= limit:
            for position in range(begin, stop):
                items[end] = items[position]
                end += 1
        else:
            mine = priorities[drawn : drawn + held]
            drawn += held
            # The `limit` smallest of independent uniform priorities are a uniform sample without replacement.
            last = _smallest(mine.copy(), limit - 1)
            kept = 0
            for offset in range(held):
                # Two items of equal priority at the border: the first ones are kept, so it is never more than `limit`.
                if mine[offset] <= last and kept < limit:
                    items[end] = items[begin + offset]
                    end += 1
                    kept += 1
        begin = stop
    starts[starts.size - 1] = end
    return end
