"""From released grams to the table of a release."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from voxpop.arrays import Int32s
from voxpop.arrow import array_of
from voxpop.ngrams.grams import Grams
from voxpop.release.grams import table_of_tokens


def table_of_grams(words: pa.LargeStringArray, released: Sequence[Grams], *, single: bool) -> pa.Table:
    """Return the table of grams, in canonical order, with every part of every gram.

    Args:
        words: the released tokens by rank.
        released: the grams of each length from 1 on, in order of their tokens.
        single: whether suffixes may be missing, as under single-side pruning.
    """
    lengths = [grams.tokens for grams in released]
    return table_of_tokens(words, downward_closed(lengths) if single else lengths)


def downward_closed(lengths: Sequence[Int32s]) -> list[Int32s]:
    """Add the parts of grams that are missing, as they may be under single-side pruning: a part says nothing new.

    Args:
        lengths: int32 (grams, length) for each length from 1 on; all prefixes are there.

    Returns:
        The same with all suffixes, so with all parts, in order of their tokens.
    """
    closed = list(lengths)
    for index in range(len(closed) - 1, 0, -1):
        longer, shorter = closed[index], closed[index - 1]
        if len(longer) and longer.shape[1] > 1:
            # From long to short, so that what is added at one length has its parts added at the next.
            every = np.unique(np.concatenate([shorter, longer[:, 1:], longer[:, :-1]]), axis=0)
            closed[index - 1] = shorter if len(every) == len(shorter) else every.astype(np.int32)
    return closed


def table_of_rows(vocabulary: pa.LargeStringArray, rows: Sequence[Int32s]) -> pa.Table:
    """Return the table of distinct grams given by tokens of a vocabulary, in any order, one length each."""
    # Only tokens that occur get a rank, in the order of the vocabulary.
    used = np.unique(np.concatenate([np.empty(0, np.int32), *(each.ravel() for each in rows)]))
    ranked = [np.unique(np.searchsorted(used, each).astype(np.int32), axis=0) for each in rows]
    return table_of_tokens(vocabulary.take(array_of(used)), ranked)
