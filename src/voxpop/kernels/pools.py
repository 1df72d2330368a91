"""Kernels for pools: the undecided items of every user, user after user."""

from voxpop.arrays import Bytes, Int32s, Int64s, Uint64s
from voxpop.kernels._jit import jit


@jit
def keep_undecided(items: Int32s, starts: Int64s, keys: Uint64s, undecided: Bytes) -> tuple[int, int]:
    """Forget decided items, and users without any others, in place and in order.

    Args:
        items: int32, user j holds `items[starts[j]:starts[j + 1]]`; overwritten from the front.
        starts: int64 (users + 1), the first 0; overwritten from the front.
        keys: uint64 (users), overwritten from the front.
        undecided: uint8 (vocabulary), nonzero for items that stay.

    Returns:
        How many items and how many users are left.
    """
    end = users = 0
    begin = 0
    for j in range(keys.size):
        stop = starts[j + 1]
        first = end
        # `end` never passes `position`: what is overwritten has been read.
        for position in range(begin, stop):
            item = items[position]
            if undecided[item]:
                items[end] = item
                end += 1
        if end > first:
            keys[users] = keys[j]
            starts[users] = first
            users += 1
        begin = stop
    starts[users] = end
    return end, users
