"""The order in which users weigh: one rule for memory, limited memory and Spark.

A user's place is given by 64 bits of a keyed hash of the user's key, and where two users share them by the key itself:
both are functions only of the user's id and the secret. Nothing else decides: neither the position of a user's rows nor
the number of users nor the file or machine. So an additional user moves none of the others; the proof of every
sequential weighting starts from this fact (docs/privacy/set-union.md).
"""

from collections.abc import Iterator

import numpy as np

from voxpop.engine.contract import Draws, order_of
from voxpop.kernels.arrays import Bools, Int32s, Int64s, Uint64s
from voxpop.kernels.group import gather_slices
from voxpop.reading.limited.memory import MemoryLimit, forget_pages, release_unused
from voxpop.reading.limited.sorter import HEAD, SHARE_OF_SORTER, Mapped, Sorter, in_key_order

Keys = Uint64s


def order_hashes(keys: Keys, secret: Draws, pass_name: str) -> Keys:
    """Return the first sort key of users: uint64 by user, a keyed hash of its key."""
    return secret.draws(order_of(pass_name), keys, 0)[:, 0].copy()


def weighing_order(keys: Keys, secret: Draws, pass_name: str) -> Int64s:
    """Return the places of users in the order in which they weigh: by (hash, key), both of 64 bits.

    Users of one key, whose ids are strings with equal fixed 64-bit hashes, come in the order of their places. A user
    more changes the places of others, but not which of two comes first.

    Sorting numbers is faster than sorting places by them, so the lowest bits of each hash make room for the place, and
    users whose other bits agree, of whom there are few, are sorted anew by all bits. That takes 1.1 times as long as
    comparing only 33 bits, which put 64 of 2^20 users elsewhere, and a fourth to an eighth of `np.lexsort` (at 2^23 and
    2^20 users: 0.31 s and 25 ms on a busy machine, half the time of the draws).

    Args:
        keys: uint64 (users), a function of each user's id.
        secret: source of the hash.
        pass_name: which order this is.

    Returns:
        int64 (users), a permutation.
    """
    hashes = order_hashes(keys, secret, pass_name)
    # As many low bits as places need: hash above, place below.
    bits = np.uint64(max(keys.size - 1, 1).bit_length())
    low = (np.uint64(1) << bits) - np.uint64(1)
    packed = (hashes & ~low) | np.arange(keys.size, dtype=np.uint64)
    packed.sort()
    order = (packed & low).astype(np.int64)
    # Neighbours that differ in nothing but their places agree in all bits that were compared.
    _mend(order, (packed[1:] ^ packed[:-1]) <= low, hashes, keys)
    return order


def _mend(order: Int64s, same: Bools, hashes: Keys, keys: Keys) -> None:
    """Sort users anew whose compared bits are those of the one before, by all bits and then by key.

    The number of compared bits depends on the number of users. Nothing of that is left: users of one run keep the
    places of the run, so sorting all of them together gives the order that comparing whole numbers would have given.
    """
    if not same.any():
        return
    in_run = np.zeros(order.size, np.bool_)
    in_run[1:] = same
    in_run[:-1] |= same
    users = np.sort(order[in_run])
    # By hash, then key: lexsort's last argument comes first.
    order[in_run] = users[np.lexsort((keys[users], hashes[users]))]


def in_weighing_order(
    tokens: Int32s, user_start: Int64s, user_key: Keys, limit: MemoryLimit | None, secret: Draws, pass_name: str
) -> Mapped:
    """Return the same users in the order that `weighing_order` gives: in memory, or mapped within a limit.

    Passes then read memory in order, which is twice as fast as following a random order each time.
    """
    if limit is None:
        order = weighing_order(user_key, secret, pass_name)
        starts = np.concatenate([[0], np.cumsum(np.diff(user_start)[order])]).astype(np.int64)
        moved = np.empty(tokens.size, np.int32)
        gather_slices(tokens, user_start, order, moved)
        return moved, starts, user_key[order]
    # Bytes; a sixteenth of it at a time goes in.
    most = limit.room // SHARE_OF_SORTER
    sorter = Sorter(limit, most, tokens.nbytes + HEAD.itemsize * user_key.size)
    for first, last, begin, end in user_blocks(user_start, most // 16):
        heads = np.zeros(last - first, HEAD)
        heads["user"] = heads["other"] = user_key[first:last]
        # The order of set union: by 64 bits of a keyed hash, then by user key, wherever users lie
        # (docs/privacy/set-union.md).
        heads["key"] = order_hashes(heads["user"], secret, pass_name)
        heads["row"] = np.arange(first, last)
        heads["size"] = np.diff(user_start[first : last + 1]) if last - first > 1 else end - begin
        sorter.add(heads, np.asarray(tokens[begin:end]))
        forget_pages(tokens, begin, end)
        forget_pages(user_start, first, last)
        forget_pages(user_key, first, last)
    mapped = in_key_order(sorter, limit)
    release_unused()
    return mapped


def user_blocks(user_start: Int64s, most: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield (first user, end, first position, end): whole users up to `most` of positions and of users together.

    A user who holds more comes in several separate blocks.
    """
    users = user_start.size - 1
    first = 0
    while first < users:
        begin = int(user_start[first])
        # The last user who ends within `most` positions.
        last = int(np.searchsorted(user_start, begin + most, side="right")) - 1
        last = min(last, first + most, users)
        if last > first:
            yield first, last, begin, int(user_start[last])
            first = last
        else:
            end = int(user_start[first + 1])
            for place in range(begin, end, most):
                yield first, first + 1, place, min(place + most, end)
            first += 1
