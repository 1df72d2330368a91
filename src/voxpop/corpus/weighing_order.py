"""The order in which users weigh: one rule for memory, limited memory and Spark.

A user's place is given by 64 bits of a keyed hash of the user's key, and where two users share them by the key itself:
both are functions of the user's id and the secret alone. Nothing else decides, neither where a user's rows lie nor how
many users there are nor which file or machine holds them. So a user more moves none of the others, which is what the
proof of every sequential weighting starts from (docs/privacy/set-union.md).
"""

import numpy as np

from voxpop.arrays import Bools, Int64s, Uint64s
from voxpop.corpus.draws import Draws, order_of

Keys = Uint64s


def order_hashes(keys: Keys, secret: Draws, pass_name: str) -> Keys:
    """Return what users are ordered by first: uint64 by user, a keyed hash of its key."""
    return secret.draws(order_of(pass_name), keys, 0)[:, 0].copy()


def weighing_order(keys: Keys, secret: Draws, pass_name: str) -> Int64s:
    """Return the places of users in the order in which they weigh: by (hash, key), both of 64 bits.

    Users of one key, whose ids are strings that a fixed 64-bit hash does not tell apart, come in the order of their
    places. A user more changes the places of others, but not which of two comes first.

    Sorting numbers is faster than sorting places by them, so the lowest bits of each hash make room for the place, and
    users whose other bits agree, of whom there are few, are sorted anew by all bits. That takes 1.1 times as long as
    comparing 33 bits alone, which put 64 of 2^20 users elsewhere, and a fourth to an eighth of `np.lexsort` (at 2^23
    and 2^20 users: 0.31 s and 25 ms on a busy machine, half of what the draws take).

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

    How many bits were compared depends on the number of users. Nothing of that is left: users of one run keep the
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
