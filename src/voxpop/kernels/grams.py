"""Kernels of the paper's gram tree (CAC12): grams joined into longer ones, and taken as sequences.

Grams are numbered shortest first. `prefix[g]` and `suffix[g]` are the numbers of g without its last and without its
first symbol, -1 if there is none (or for single symbols).
"""

import numpy as np

from voxpop.kernels._jit import jit
from voxpop.kernels.arrays import Bools, Int32s, Int64s


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
