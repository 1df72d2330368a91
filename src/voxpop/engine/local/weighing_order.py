"""The order in which users weigh: one rule for memory, limited memory and Spark.

A user's place is given by 64 bits of a keyed hash of the user's key, and where two users share them by the key itself:
both are functions only of the user's id and the secret. Nothing else decides: neither the position of a user's rows nor
the number of users nor the file or machine. So an additional user moves none of the others; the proof of every
sequential weighting starts from this fact (docs/privacy/set-union.md).
"""

from collections.abc import Iterator

import numpy as np

from voxpop.engine.contract import Draws, order_of
from voxpop.engine.local.weigh import user_spans
from voxpop.kernels.arrays import Int32s, Int64s, Uint64s
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

    Args:
        keys: uint64 (users), a function of each user's id.
        secret: source of the hash.
        pass_name: which order this is.

    Returns:
        int64 (users), a permutation.
    """
    hashes = order_hashes(keys, secret, pass_name)
    order = np.argsort(hashes)
    if (np.diff(hashes[order]) == 0).any():
        # By hash, then key, then place: lexsort's last argument comes first, and it is stable.
        order = np.lexsort((keys, hashes))
    return order


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
    for first, last in user_spans(user_start, most):
        begin, end = int(user_start[first]), int(user_start[last])
        for place in range(begin, max(end, begin + 1), most):
            yield first, last, place, min(place + most, end)
