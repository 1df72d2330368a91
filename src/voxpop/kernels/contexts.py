"""Kernels that count what follows each context, contexts growing backwards, and draw from the chances that result.

Symbols are 0 to end - 1, with `end` behind each sequence. A step is a position of a symbol or of an end mark; its
context of length d is the d symbols before it. What lies before a sequence's first symbol is written `end` too.
"""

from typing import Any

import numpy as np

from voxpop.arrays import Bools, Floats, Int32s, Int64s, Uint64s
from voxpop.kernels._jit import jit

SPREAD = np.uint64(0x9E3779B97F4A7C15)
HIGH = np.uint64(32)
STEP = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)


@jit
def open_steps(symbols: Int32s, end: int, most: int, nodes: Int32s) -> None:
    """Put every step under the root, node 0, but no end mark behind `most` symbols: so a sequence has `most` at most.

    Args:
        symbols: int32, each sequence with its end mark.
        end: the end mark.
        most: most symbols of a sequence.
        nodes: int32 by position, written.
    """
    length = 0
    for position in range(symbols.size):
        if symbols[position] == end:
            nodes[position] = 0 if length < most else -1
            length = 0
        else:
            nodes[position] = 0
            length += 1


@jit
def _slot_of(key: Any, keys: Int64s, slots: Int32s) -> Any:
    """Return the slot that holds a key, or the empty one where it belongs."""
    mask = slots.size - 1
    slot = np.int64((np.uint64(key) * SPREAD) >> HIGH) & mask
    while slots[slot] >= 0 and keys[slots[slot]] != key:
        slot = (slot + 1) & mask
    return slot


@jit
def count_following(symbols: Int32s, nodes: Int32s, width: int) -> tuple[Int64s, Int64s]:
    """Count (node, symbol) over all steps with a node.

    Args:
        symbols: int32.
        nodes: int32 by position, or -1.
        width: number of symbols and the end mark.

    Returns:
        keys (node * width + symbol), by first appearance, and counts.
    """
    size = 1 << 12
    slots = np.full(size, -1, np.int32)
    keys = np.empty(size // 2, np.int64)
    counts = np.empty(size // 2, np.int64)
    found = 0
    for position in range(nodes.size):
        if nodes[position] < 0:
            continue
        if 2 * found >= size:
            size *= 4
            slots = np.full(size, -1, np.int32)
            keys = np.concatenate((keys, np.empty(size // 2 - keys.size, np.int64)))
            counts = np.concatenate((counts, np.empty(size // 2 - counts.size, np.int64)))
            for pair in range(found):
                slots[_slot_of(keys[pair], keys, slots)] = pair
        key = np.int64(nodes[position]) * width + symbols[position]
        slot = _slot_of(key, keys, slots)
        if slots[slot] < 0:
            slots[slot] = found
            keys[found] = key
            counts[found] = 0
            found += 1
        counts[slots[slot]] += 1
    return keys[:found], counts[:found]


@jit
def lengthen_contexts(
    symbols: Int32s, nodes: Int32s, depth: int, width: int, keys: Int64s, longer: Int32s, others: Int32s
) -> None:
    """Move each step to the node of its context with one symbol more before it.

    Args:
        symbols: int32.
        nodes: int32 by position, of contexts of this depth, or -1; overwritten.
        depth: length of those contexts.
        width: number of symbols and the end mark.
        keys: node * width + the symbol before, distinct.
        longer: int32 by key, the node that they lead to.
        others: int32 by node, where a step goes whose symbol before has no key; -1 for nowhere.
    """
    size = 16
    while size < 2 * keys.size:
        size *= 2
    slots = np.full(size, -1, np.int32)
    for number in range(keys.size):
        slots[_slot_of(keys[number], keys, slots)] = number
    for position in range(nodes.size):
        node = nodes[position]
        if node < 0:
            continue
        place = position - 1 - depth
        before = symbols[place] if place >= 0 else width - 1
        slot = _slot_of(np.int64(node) * width + before, keys, slots)
        nodes[position] = longer[slots[slot]] if slots[slot] >= 0 else others[node]


@jit
def _node_of(history: Int32s, first: int, stop: int, begun: bool, width: int, child: Int32s, others: Int32s) -> Any:
    """Return the node of the longest context that `history[first:stop]` ends in; `begun` if it is a whole beginning."""
    node = 0
    place = stop
    while True:
        if place > first:
            place -= 1
            before = history[place]
        elif begun:
            before = width - 1
        else:
            return node
        longer = child[node * width + before]
        if longer < 0:
            return others[node] if others[node] >= 0 else node
        node = longer
        if before == width - 1:
            return node


@jit
def nodes_of(rows: Int32s, lengths: Int64s, begun: Bools, width: int, tree: tuple[Int32s, Int32s]) -> Int32s:
    """Return the node of each history.

    Args:
        rows: int32 (histories, most), symbols, the latest last, counted from the left.
        lengths: int64 by history.
        begun: by history, whether it is all that a sequence has so far.
        width: number of symbols and the end mark.
        tree: child (int32 by node * width + symbol before, -1 for none) and others (int32 by node).

    Returns:
        int32 by history.
    """
    child, others = tree
    found = np.empty(lengths.size, np.int32)
    for row in range(lengths.size):
        found[row] = _node_of(rows[row], 0, lengths[row], begun[row], width, child, others)
    return found


@jit
def _uniform(state: Uint64s) -> Any:
    """Return a number in [0, 1) and move the generator (splitmix64) on."""
    state[0] += STEP
    mixed = state[0]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * SECOND
    mixed = mixed ^ (mixed >> np.uint64(31))
    return np.float64(mixed >> np.uint64(11)) * 2.0**-53


@jit
def draw_contexts(
    seeds: Uint64s, most: int, width: int, sums: Floats, tree: tuple[Int32s, Int32s], symbols_out: Int32s, sizes: Int64s
) -> int:
    """Draw whole sequences, without end marks.

    Args:
        seeds: uint64, one per sequence; overwritten.
        most: most symbols of a sequence.
        width: number of symbols and the end mark.
        sums: float64 (nodes * width), running sums of the chances at each node; each node's last is 1.
        tree: child and others, as in `nodes_of`.
        symbols_out: int32, written; room for `most` symbols per seed.
        sizes: int64 by seed, written.

    Returns:
        How many symbols were written.
    """
    child, others = tree
    size = 0
    for number in range(seeds.size):
        state = seeds[number : number + 1]
        begin = size
        while size - begin < most:
            row = np.int64(_node_of(symbols_out, begin, size, True, width, child, others)) * width
            place = _uniform(state)
            low, high = 0, width - 1
            while low < high:
                middle = (low + high) // 2
                if sums[row + middle] > place:
                    high = middle
                else:
                    low = middle + 1
            if low == width - 1:
                break
            symbols_out[size] = low
            size += 1
        sizes[number] = size - begin
    return size
