"""The kernel that takes grams as sequences, for the gram tree of the paper CAC12.

Grams are numbered in order of increasing length. `prefix[g]` is the number of g without its last symbol, and
`suffix[g]` is the number of g without its first symbol. Both are -1 for missing grams and for single symbols.
"""

import numpy as np

from voxpop.kernels._jit import jit
from voxpop.kernels.arrays import Bools, Int32s, Int64s


@jit
def take_sequences(prefix: Int32s, suffix: Int32s, counts: Int64s, lengths: Int32s, closed: Bools) -> Bools:
    """Take grams as sequences in order of decreasing length, and subtract their parts from the counts.

    A gram that occurs m times is taken m times if the remaining count of every shorter gram in it is at least m for
    each place where the shorter gram occurs. Otherwise the gram is not taken.

    Args:
        prefix: int32 by gram, the index of the gram without its last symbol.
        suffix: int32 by gram, the index of the gram without its first symbol.
        counts: int64 by gram, overwritten by the remaining counts.
        lengths: int32 by gram, the length of the gram, in increasing order.
        closed: For each gram, whether it ends in the end mark. The kernel does not take such grams as sequences.

    Returns:
        The grams that were taken. Each gram is taken as often as its count indicates.
    """
    taken = np.zeros(prefix.size, np.bool_)
    # A gram of L symbols has L (L + 1) / 2 parts, including itself.
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
            # The parts of this length are the prefix of the first part that is one symbol longer, and the suffixes of
            # all parts that are one symbol longer.
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
            # A part that occurs twice in the gram is subtracted twice.
            counts[parts[place]] -= many
            lacking = lacking or counts[parts[place]] < 0
        # Restore the counts of all parts if one of them was too small.
        if lacking:
            for place in range(1, size):
                counts[parts[place]] += many
        else:
            taken[gram] = True
    return taken
