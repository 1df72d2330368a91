"""Kernels of the paper's gram tree (CAC12): consistent chances, and grams joined into sequences.

In the tree of released grams a node without an entry falls back to its Markov neighbour.

A node is a gram whose continuations were released: `symbols[starts[v]:starts[v + 1]]`, rising, with their `chances` and
with the node that each leads to (`child`, -1 for none). Node 0 is the root. A symbol without an entry has the chance
`rest[v]` where that is at least 0, and otherwise `factor[v]` times the chance it has at `neighbour[v]`, the node of the
longest proper suffix of v's gram.

For `join_grams` and `take_sequences` grams are numbered shortest first. `prefix[g]` and `suffix[g]` are the numbers
of g without its last and without its first symbol, -1 if there is none (or for single symbols).
"""

from typing import Any

import numpy as np

from voxpop.kernels._jit import jit
from voxpop.kernels.arrays import Bools, Floats, Int32s, Int64s

Back = tuple[Int32s, Floats, Floats]  # neighbour, rest, factor by node


@jit
def entry_of(node: Any, symbol: Any, starts: Int64s, symbols: Int32s) -> Any:
    """Return the place of a symbol among a node's entries, or -1."""
    low, high = starts[node], starts[node + 1]
    while low < high:
        middle = (low + high) // 2
        if symbols[middle] < symbol:
            low = middle + 1
        else:
            high = middle
    return low if low < starts[node + 1] and symbols[low] == symbol else -1


@jit
def chance_of(node: Any, symbol: Any, starts: Int64s, symbols: Int32s, chances: Floats, back: Back) -> Any:
    """Return the chance of a symbol at a node."""
    neighbour, rest, factor = back
    # P_v(x) is the entry's chance; else rest(v) where that is known; else factor(v) P_neighbour(x), and so on to the
    # root.
    product = 1.0
    while True:
        entry = entry_of(node, symbol, starts, symbols)
        if entry >= 0:
            return product * chances[entry]
        if rest[node] >= 0.0:
            return product * rest[node]
        product *= factor[node]
        node = neighbour[node]


@jit
def step_of(node: Any, symbol: Any, starts: Int64s, symbols: Int32s, child: Int32s, neighbour: Int32s) -> Any:
    """Return the node of the longest suffix of a node's gram and one more symbol."""
    while True:
        entry = entry_of(node, symbol, starts, symbols)
        if entry >= 0 and child[entry] >= 0:
            return child[entry]
        if node == 0:
            return 0
        node = neighbour[node]


@jit
def follow(at: Int32s, by: Int32s, starts: Int64s, symbols: Int32s, child: Int32s, neighbour: Int32s) -> Int32s:
    """Return where each symbol of `by` leads from each node of `at`.

    Args:
        at: int32 (n), nodes.
        by: int32 (n), one symbol for each.
        starts: int64 (nodes + 1).
        symbols: int32 by entry.
        child: int32 by entry.
        neighbour: int32 by node.

    Returns:
        int32 (n), the node of the longest suffix of each node's gram and its symbol.
    """
    reached = np.empty(at.size, np.int32)
    for number in range(at.size):
        reached[number] = step_of(at[number], by[number], starts, symbols, child, neighbour)
    return reached


@jit
def make_consistent(
    first: int, width: int, counts: Int64s, totals: Floats, starts: Int64s, symbols: Int32s, chances: Floats, back: Back
) -> None:
    """Make the entries of the nodes from `first` on consistent with their parents, as published (CAC12, 4.3.4).

    Where the neighbour is not the root, symbols without an entry get A(x) = S P(x) / P(V+), for S the sum of the noisy
    counts A of the entries V+ and P the neighbour's chances. Divided by the sum over all symbols, S / P(V+), that is
    P(x), and entries get A / S times P(V+). Where it is the root, the node's total less S is shared
    evenly among symbols without an entry.

    Args:
        first: the first node to change; those before are consistent.
        width: number of symbols and the end mark.
        counts: int64 by entry, noisy, at least 0, with a positive sum at every node but the root.
        totals: float64 by node, the consistent count of its gram.
        starts: int64 (nodes + 1).
        symbols: int32 by entry.
        chances: float64 by entry, written from `first` on.
        back: neighbour (int32), rest and factor (float64, written from `first` on) by node.
    """
    neighbour, rest, factor = back
    for node in range(first, starts.size - 1):
        total = 0.0
        for entry in range(starts[node], starts[node + 1]):
            total += counts[entry]
        # The number of symbols without an entry. `mass` is the sum over symbols with one, P(V+) in the text above.
        missing = width - (starts[node + 1] - starts[node])
        mass = 1.0
        rest[node] = 0.0
        factor[node] = 1.0
        if missing > 0 and neighbour[node] > 0:
            mass = 0.0
            for entry in range(starts[node], starts[node + 1]):
                mass += chance_of(neighbour[node], symbols[entry], starts, symbols, chances, back)
            # A rest of -1 sends symbols without an entry to the neighbour, with factor 1: their chance is P(x) itself.
            rest[node] = -1.0 if mass > 0.0 else 0.0
            mass = min(mass, 1.0) if mass > 0.0 else 1.0
        elif missing > 0 and node > 0 and total < totals[node]:
            # Where the neighbour is not the root: the node's total less S, shared evenly.
            mass = total / totals[node]
            rest[node] = (1.0 - mass) / missing
        for entry in range(starts[node], starts[node + 1]):
            # A(x) / S times P(V+).
            chances[entry] = counts[entry] / total * mass if total > 0.0 else 0.0


@jit
def likeliest(wanted: Bools, width: int, starts: Int64s, symbols: Int32s, chances: Floats, back: Back) -> Floats:
    """Return the largest chance of any symbol at each wanted node, 0 elsewhere."""
    neighbour, rest, factor = back
    largest = np.zeros(wanted.size, np.float64)
    for node in range(wanted.size):
        if not wanted[node]:
            continue
        best = 0.0
        other = node
        product = 1.0
        while True:
            for entry in range(starts[other], starts[other + 1]):
                if product * chances[entry] > best:
                    # It counts only if no nearer node has an entry for it.
                    best = max(best, chance_of(node, symbols[entry], starts, symbols, chances, back))
            if rest[other] >= 0.0:
                break
            product *= factor[other]
            other = neighbour[other]
        # Symbols without an entry anywhere on the way share the last node's rest.
        if product * rest[other] > best:
            for symbol in range(width):
                best = max(best, chance_of(node, symbol, starts, symbols, chances, back))
                if best >= product * rest[other]:
                    break
        largest[node] = best
    return largest


@jit
def join_grams(
    prefix: Int32s, suffix: Int32s, counts: Int64s, first: int, begins: Int64s
) -> tuple[Int32s, Int32s, Int64s]:
    """Join grams of the longest length that overlap in all but one symbol.

    Args:
        prefix: int32 by gram, rising among the longest.
        suffix: int32 by gram.
        counts: int64 by gram.
        first: the first of the longest grams; they are the last ones.
        begins: int64 (grams + 1), the longest grams with prefix p are `begins[p]` to `begins[p + 1]`.

    Returns:
        prefix, suffix and count of the grams one symbol longer that are expected at least once.
    """
    found = 0
    room = 1 << 12
    new_prefix = np.empty(room, np.int32)
    new_suffix = np.empty(room, np.int32)
    new_counts = np.empty(room, np.int64)
    for gram in range(first, prefix.size):
        middle = suffix[gram]
        if middle < 0 or counts[middle] <= 0:
            continue
        for other in range(begins[middle], begins[middle + 1]):
            # c(xmy) = c(xm) c(my) / c(m): the Markov estimate, rounded down (CAC12, 4.3.5).
            expected = np.int64(np.float64(counts[gram]) * np.float64(counts[other]) / np.float64(counts[middle]))
            if expected < 1:
                continue
            if found == room:
                room *= 2
                new_prefix = np.concatenate((new_prefix, np.empty(found, np.int32)))
                new_suffix = np.concatenate((new_suffix, np.empty(found, np.int32)))
                new_counts = np.concatenate((new_counts, np.empty(found, np.int64)))
            new_prefix[found] = gram
            new_suffix[found] = other
            new_counts[found] = expected
            found += 1
    return new_prefix[:found], new_suffix[:found], new_counts[:found]


@jit
def take_sequences(prefix: Int32s, suffix: Int32s, counts: Int64s, lengths: Int32s, closed: Bools) -> Bools:
    """Take grams as sequences, longest first, and subtract their parts from the counts.

    A gram that occurs m times is taken m times if every shorter gram in it is left at least m times for each of its
    occurrences in it; otherwise not at all.

    Args:
        prefix: int32 by gram.
        suffix: int32 by gram.
        counts: int64 by gram, changed to the remaining counts.
        lengths: int32 by gram, never falling.
        closed: whether the gram ends in the end mark; such grams are no sequences.

    Returns:
        The grams that were taken; their counts are the numbers of occurrences.
    """
    taken = np.zeros(prefix.size, np.bool_)
    # A gram of L symbols has L (L + 1) / 2 parts, itself among them.
    parts = np.empty(lengths.max() * (lengths.max() + 1) // 2 if lengths.size else 0, np.int32)
    for gram in range(prefix.size - 1, -1, -1):
        many = counts[gram]
        if closed[gram] or many <= 0:
            continue
        size = 1
        parts[0] = gram
        begin = 0
        complete = True
        for _ in range(lengths[gram] - 1):
            # The grams of this length in it: the prefix of the first longer one, and the suffix of each.
            above = size
            parts[size] = prefix[parts[begin]]
            size += 1
            for place in range(begin, above):
                parts[size] = suffix[parts[place]]
                size += 1
            for place in range(above, size):
                complete = complete and parts[place] >= 0
            if not complete:
                break
            begin = above
        if not complete:
            continue
        lacking = False
        for place in range(1, size):
            # `many` for each occurrence: a part that comes twice in the gram is taken twice.
            counts[parts[place]] -= many
            lacking = lacking or counts[parts[place]] < 0
        # All or nothing: restore the counts that were taken.
        if lacking:
            for place in range(1, size):
                counts[parts[place]] += many
        else:
            taken[gram] = True
    return taken
