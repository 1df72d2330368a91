"""Kernels that count what follows each context, contexts growing backwards, and draw from the chances that result.

Symbols are 0 to end - 1, with `end` behind each sequence. A step is a position of a symbol or of an end mark; its
context of length d is the d symbols before it. What lies before a sequence's first symbol is written `end` too.
"""

from typing import Any

import numpy as np

from voxpop.arrays import Bools, Floats, Int32s, Int64s, Uint64s
from voxpop.kernels._jit import jit
from voxpop.kernels.numbering import count_pairs, slot_of, slots_for
from voxpop.kernels.uniform import uniform


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
            # A sequence of `most` symbols has no step for its end: a user has at most `most` steps, which is what noise
            # is scaled for (docs/privacy/sequences.md, "Contexts").
            nodes[position] = 0 if length < most else -1
            length = 0
        else:
            nodes[position] = 0
            length += 1


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
    return count_pairs(symbols, nodes, 0, width, np.empty(0, np.int32))


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
    # A power of two, at most half full.
    while size < 2 * keys.size:
        size *= 2
    slots = slots_for(keys, keys.size, size)
    for position in range(nodes.size):
        node = nodes[position]
        if node < 0:
            continue
        # The symbol right before a context of length `depth`. Another sequence's end mark there means: nothing before.
        place = position - 1 - depth
        before = symbols[place] if place >= 0 else width - 1
        slot = slot_of(np.int64(node) * width + before, keys, slots)
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
        # No node of its own: the node "others" counts it, or else the context itself.
        if longer < 0:
            return others[node] if others[node] >= 0 else node
        node = longer
        # The beginning is reached; nothing lies before it.
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
            # The context of what was drawn so far in this sequence; `begin` is where it starts.
            row = np.int64(_node_of(symbols_out, begin, size, True, width, child, others)) * width
            place = uniform(state)
            low, high = 0, width - 1
            while low < high:
                middle = (low + high) // 2
                # Inversion by bisection: the first symbol whose running sum exceeds a uniform number.
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
