"""A hash table that numbers distinct keys in order of first appearance.

The table consists of two arrays. `keys` (int64) contains the key of each number. `slots` (int32) contains the number of
a key or -1 in each slot, and its size is a power of two and at least twice the number of keys. A key is stored in the
slot given by its hash, or in the next free slot after that slot (linear probing). The hash is Fibonacci hashing, which
multiplies the key by 2^64 divided by the golden ratio and takes the upper half.
"""

from typing import Any

import numpy as np

from voxpop.kernels._jit import jit
from voxpop.kernels.arrays import Int32s, Int64s

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_HIGH = np.uint64(32)
FIRST_SLOTS = 1 << 12


@jit
def slot_of(key: Any, keys: Int64s, slots: Int32s) -> Any:
    """Return the slot that contains a key, or the empty slot for it."""
    mask = slots.size - 1
    # Use bits 32 and above of the product, because each of them depends on all lower bits of the key.
    slot = np.int64((np.uint64(key) * _SPREAD) >> _HIGH) & mask
    while slots[slot] >= 0 and keys[slots[slot]] != key:
        slot = (slot + 1) & mask
    return slot


@jit
def slots_for(keys: Int64s, found: int, size: int) -> Int32s:
    """Return a table of `size` slots that contains the first `found` keys."""
    slots = np.full(size, -1, np.int32)
    for number in range(found):
        slots[slot_of(keys[number], keys, slots)] = number
    return slots


@jit
def stretched(values: Int64s, size: int) -> Int64s:
    """Return the values, padded with zeros to `size`."""
    grown = np.zeros(size, np.int64)
    grown[: values.size] = values
    return grown


@jit
def roomier(keys: Int64s, counts: Int64s) -> tuple[Int64s, Int64s, Int32s]:
    """Return a copy of a full table with room for four times as many keys and counts.

    An empty table gets its initial size.
    """
    # There are twice as many slots as keys. At most half of them are full, so runs of full slots remain short.
    size = max(FIRST_SLOTS // 2, 4 * keys.size)
    return stretched(keys, size), stretched(counts, size), slots_for(keys, keys.size, 2 * size)


@jit
def count_pairs(symbols: Int32s, nodes: Int32s, ahead: int, width: int, numbers: Int32s) -> tuple[Int64s, Int64s]:
    """Count the pairs of a node and the symbol `ahead` positions later, over all positions with a node.

    Args:
        symbols: int32, the symbol at each position.
        nodes: int32 by position, the node of the position or -1.
        ahead: The distance from the position to the symbol; 0 for the symbol at the position.
        width: The number of symbols, including the end mark.
        numbers: int32, overwritten by the number of each position's pair. `nodes` itself may be passed, because each
            entry is read before it is written. An empty array disables this output.

    Returns:
        The keys (node * width + symbol), in order of first appearance, and their counts.
    """
    keys, counts, slots = roomier(np.empty(0, np.int64), np.empty(0, np.int64))
    found = 0
    for position in range(nodes.size):
        if nodes[position] < 0:
            continue
        if found == keys.size:
            keys, counts, slots = roomier(keys, counts)
        # The key encodes the pair as a single number.
        key = np.int64(nodes[position]) * width + symbols[position + ahead]
        slot = slot_of(key, keys, slots)
        if slots[slot] < 0:
            slots[slot], keys[found] = found, key
            found += 1
        counts[slots[slot]] += 1
        if numbers.size:
            numbers[position] = slots[slot]
    return keys[:found], counts[:found]
