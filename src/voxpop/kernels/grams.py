"""The kernel of the paper's gram tree (CAC12) that takes grams as sequences.

Grams are numbered shortest first. `prefix[g]` and `suffix[g]` are the numbers of g without its last and without its
first symbol, -1 if there is none (or for single symbols).
"""

import numpy as np

from voxpop.kernels._jit import jit
from voxpop.kernels.arrays import Bools, Int32s, Int64s


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
