"""The kernel of the paper's gram tree (CAC12) that takes grams as sequences.

Grams are numbered in increasing length. `prefix[g]` and `suffix[g]` are the numbers of g without its last and without
its first symbol; they are -1 for missing grams and for single symbols.
"""

import numpy as np

from voxpop.kernels._jit import jit
from voxpop.kernels.arrays import Bools, Int32s, Int64s


@jit
def take_sequences(prefix: Int32s, suffix: Int32s, counts: Int64s, lengths: Int32s, closed: Bools) -> Bools:
    """Take grams as sequences in decreasing length, and subtract their parts from the counts.

    A gram that occurs m times is taken m times if every shorter gram in it has at least m occurrences left for each of
    its places in the gram. Otherwise it is not taken.

    Args:
        prefix: int32 by gram, the gram without its last symbol.
        suffix: int32 by gram, the gram without its first symbol.
        counts: int64 by gram, changed to the remaining counts.
        lengths: int32 by gram, in increasing order.
        closed: Whether the gram ends in the end mark. Such grams are not sequences.

    Returns:
        The grams that were taken, which occur as often as their counts indicate.
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
            # The parts of this length: the prefix of the first part that is one longer, and the suffixes of all of
            # these.
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
