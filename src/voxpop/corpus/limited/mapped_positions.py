"""Passes over the positions of a corpus on disk: a few million at a time, whose pages are given back behind each."""

from collections.abc import Iterator

import numpy as np

from voxpop.arrays import Int32s, Int64s
from voxpop.corpus import widths
from voxpop.corpus.limited.memory import MemoryLimit
from voxpop.corpus.limited.pages import forget_pages
from voxpop.errors import MemoryLimitError
from voxpop.kernels.group import rename
from voxpop.kernels.pairs import FIRST_SLOTS_BITS, number_more_pairs, rename_range

AT_ONCE = 1 << 21
BYTES_OF_PAIR = 48
"""Bytes that a pair takes while the table that numbers pairs grows: 16 the new table, 24 both lists, 8 to spare."""


def copied(ids: Int32s, limit: MemoryLimit, ranks: Int32s | None = None) -> Int32s:
    """Return a mapped copy, which passes may change; ids are replaced by `ranks[id]`, negative ones stay."""
    file = limit.file()
    for begin, end in _spans(ids.size):
        part = np.asarray(ids[begin:end])
        if ranks is not None:
            named = np.empty(part.size, np.int32)
            rename(part, ranks, named)
            part = named
        file.append(part)
        forget_pages(ids, begin, end)
    mapped: Int32s = file.mapped(np.int32)
    file.close()
    return mapped


def rename_all(ids: Int32s, ranks: Int32s) -> None:
    """Write `ranks[id]` for every id, in place; negative ids stay."""
    for begin, end in _spans(ids.size):
        rename_range(ids, begin, end, ranks)
        forget_pages(ids, begin, end)


def number_within(
    ids: Int32s, partners: Int32s, offset: int, need: Int64s, estimates: Int64s, limit: MemoryLimit
) -> Int64s:
    """Number all pairs as `number_pairs` does, in a table that stays within the limit; return their names.

    Raises:
        MemoryLimitError: if there are more distinct pairs than the table may hold.
        InputError: if there are more than 32 bits can number.
    """
    names = np.empty(1 << (FIRST_SLOTS_BITS - 1), np.int64)
    table = np.zeros(1 << FIRST_SLOTS_BITS, np.uint32)
    # Pairs, not bytes.
    most, count = min(limit.room // BYTES_OF_PAIR, widths.MOST_NUMBERS), 0
    for begin, end in _spans(ids.size):
        # Partners may lie beyond the span: the last gram of one part goes on in the next.
        span = (begin, end, ids.size)
        names, count, table = number_more_pairs(ids, partners, offset, span, need, estimates, names, count, table, most)
        if count < 0:
            widths.check_width(names.size + (names.size == widths.MOST_NUMBERS), "distinct phrases of one length")
            what = "the distinct phrases that users hold of one length (far fewer with NGrams(prevote=False))"
            limit.require(2 * names.size * BYTES_OF_PAIR, what)
            raise MemoryLimitError("the distinct phrases that users hold of one length do not fit into memory.")
        forget_pages(ids, begin, end)
        forget_pages(partners, begin, end)
    return names[:count]


def _spans(size: int) -> Iterator[tuple[int, int]]:
    for begin in range(0, size, AT_ONCE):
        yield begin, min(begin + AT_ONCE, size)
