"""The shares of each user's keys, row by row, that are on a public list: the one query that counts repeated keys."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.engine.local.weigh import user_spans
from voxpop.kernels.arrays import Int32s, Int64s
from voxpop.reading.arrow import numbers_of
from voxpop.reading.limited.memory import forget_pages
from voxpop.reading.typed_keys import column_numbers

AT_ONCE = 1 << 22
"""Numbers of a table of users and classes: 32 MiB."""


def add_row_shares(
    tokens: Int32s,
    user_start: Int64s,
    vocabulary: pa.LargeStringArray,
    listed: pa.LargeStringArray,
    columns: int,
    unit: int,
) -> Int64s:
    """Return, for each column, the sums over users of the shares of their keys on the list and not on it.

    Args:
        tokens: of a corpus of typed keys.
        user_start: of it.
        vocabulary: of it.
        listed: the tokens on the list.
        columns: number of columns.
        unit: of the shares, which are rounded down.

    Returns:
        int64 (2 columns): on the list and not on it, column after column.
    """
    column = column_numbers(vocabulary, columns)
    known = numbers_of(pc.is_in(vocabulary, value_set=listed).cast(pa.int8()))
    # int64 (tokens + 1): the class of each token; joint keys and the end of a row, -1, have the last.
    width = 2 * columns + 1
    classes = np.append(np.where(column < 0, 2 * columns, 2 * column + (known == 0)), 2 * columns).astype(np.int64)
    total = np.zeros((columns, 2), np.int64)
    for first, stop in user_spans(user_start, max(1, AT_ONCE // width)):
        begin, end = int(user_start[first]), int(user_start[stop])
        users = np.repeat(np.arange(stop - first), np.diff(user_start[first : stop + 1]))
        cells = users * width + classes[tokens[begin:end]]
        counts = np.bincount(cells, minlength=(stop - first) * width).reshape(-1, width)[:, :-1]
        counts = counts.reshape(-1, columns, 2)
        whole = counts.sum(axis=2, keepdims=True)
        total += (counts * unit // np.maximum(whole, 1)).sum(axis=0)
        forget_pages(tokens, begin, end)
    return total.reshape(-1)
