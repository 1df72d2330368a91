"""Kernels for the pools of a series. A pool contains a user's items from many nights."""

import numpy as np

from voxpop.kernels._jit import jit
from voxpop.kernels.arrays import Bools, Bytes, Int32s, Int64s
from voxpop.kernels.proved import proved


@jit
def sort_items(tokens: Int32s, starts: Int64s) -> None:
    """Sort the items of each user in place. Otherwise their order would depend on the engine that read the rows.

    Args:
        tokens: int32, the items of all users, concatenated.
        starts: int64 (users + 1), where each user's items begin.
    """
    for user in range(starts.size - 1):
        if starts[user + 1] - starts[user] > 1:
            tokens[starts[user] : starts[user + 1]].sort()


@jit
def fresh_items(
    tokens: Int32s, starts: Int64s, places: Int64s, items: Int32s, pool_starts: Int64s, decided: Bytes
) -> tuple[Int32s, Int64s]:
    """Return the distinct items of each of the night's users, except released items and items of the user's pool.

    Args:
        tokens: int32, the items of all users of the night, concatenated; negative for no item.
        starts: int64 (users of the night + 1), where each user's items begin.
        places: int64 (users of the night), the position of each user among the pools, or -1 for a new user.
        items: int32, the pools of all users, concatenated.
        pool_starts: int64 (users + 1), where each pool begins.
        decided: uint8 (items), nonzero for released items.

    Returns:
        The items, and the position where each user's items begin.
    """
    found = np.empty(tokens.size, np.int32)
    ends = np.zeros(starts.size, np.int64)
    seen = np.full(decided.size, -1, np.int32)
    end = 0
    for user in range(places.size):
        if places[user] >= 0:
            for position in range(pool_starts[places[user]], pool_starts[places[user] + 1]):
                seen[items[position]] = user
        for position in range(starts[user], starts[user + 1]):
            item = tokens[position]
            if item >= 0 and decided[item] == 0 and seen[item] != user:
                seen[item] = user
                found[end] = item
                end += 1
        ends[user + 1] = end
    return found[:end], ends


@jit
@proved("series.md#proof")
def joined_pools(
    old: Int64s, fresh: Int64s, pools: tuple[Int32s, Int64s, Int32s], added: tuple[Int32s, Int64s], night: int
) -> tuple[Int32s, Int64s, Int32s]:
    """Return the pools of all users. This night's items follow the earlier items.

    Proof: "x has at most W novel items, because a full pool never has room again"

    Args:
        old: int64 (users), the position of each user among the earlier pools, or -1.
        fresh: int64 (users), the position of each user among this night's users, or -1.
        pools: The items and starts, and the night on which each item joined its pool.
        added: This night's items and starts.
        night: The number of this night.
    """
    items, starts, nights = pools
    more, more_starts = added
    total = items.size + more.size
    new_items, new_nights = np.empty(total, np.int32), np.empty(total, np.int32)
    new_starts = np.zeros(old.size + 1, np.int64)
    end = 0
    for user in range(old.size):
        if old[user] >= 0:
            for position in range(starts[old[user]], starts[old[user] + 1]):
                new_items[end] = items[position]
                new_nights[end] = nights[position]
                end += 1
        if fresh[user] >= 0:
            for position in range(more_starts[fresh[user]], more_starts[fresh[user] + 1]):
                new_items[end] = more[position]
                new_nights[end] = night
                end += 1
        new_starts[user + 1] = end
    return new_items[:end], new_starts, new_nights[:end]


@jit
def active_items(items: Int32s, starts: Int64s, nights: Int32s, states: Bytes, since: int) -> tuple[Int32s, Int64s]:
    """Return the items of each user that get weight, which are the active items and the recently joined resting items.

    Args:
        items: int32, the pools of all users, concatenated.
        starts: int64 (users + 1), where each pool begins.
        nights: int32, the night on which each item joined the user's pool.
        states: uint8 (items), 0 for released items, 1 for resting items, 2 for active items.
        since: The first night that gives weight to its resting items.
    """
    found = np.empty(items.size, np.int32)
    ends = np.zeros(starts.size, np.int64)
    end = 0
    for user in range(starts.size - 1):
        for position in range(starts[user], starts[user + 1]):
            state = states[items[position]]
            if state == 2 or (state == 1 and nights[position] >= since):
                found[end] = items[position]
                end += 1
        ends[user + 1] = end
    return found[:end], ends


@jit
def with_active(items: Int32s, starts: Int64s, nights: Int32s, states: Bytes, since: int) -> Bools:
    """Return which users have an item that `active_items` returns."""
    found = np.zeros(starts.size - 1, np.bool_)
    for user in range(starts.size - 1):
        for position in range(starts[user], starts[user + 1]):
            state = states[items[position]]
            if state == 2 or (state == 1 and nights[position] >= since):
                found[user] = True
                break
    return found
