"""Sort records by key on disk: any number of them, in a bounded amount of memory.

A record is a head (two numbers for sorting and distinguishing, and further values) and a slice of int32. Records are
dealt out to ranges of keys as they come, each range is read back in turn and sorted in memory, and a range that is too
large for that is dealt out again; records of one single key by the other number. Only records that agree in both cannot
be told apart so; they are handed on as they came, some at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from voxpop.errors import InternalError, MemoryLimitError
from voxpop.kernels.arrays import Int32s, Int64s
from voxpop.kernels.group import gather_slices, rename
from voxpop.kernels.pairs import FIRST_SLOTS_BITS, number_more_pairs, rename_range
from voxpop.reading import widths
from voxpop.reading.limited.memory import MemoryLimit, forget_pages
from voxpop.reading.limited.work_file import WorkFile

Heads = NDArray[Any]
Block = tuple[Heads, Int32s]

HEAD = np.dtype([("key", np.uint64), ("other", np.uint64), ("user", np.uint64), ("row", np.int64), ("size", np.int64)])
"""Sorted by key, then other; `row` distinguishes users where both agree; `size` is that of the slice."""
SORTED_BY = ("key", "other")
MOST_RANGES = 256
SHARE_OF_SORTER = 8
"""A sorter holds this part of the room under a limit: two of them and their copies work at a time."""
HIGHEST = 2**64 - 1


@final
@dataclass(slots=True)
class _Range:
    """The records of one range of keys: their places and sizes."""

    heads: list[Heads] = field(default_factory=list)
    slices: list[Int32s] = field(default_factory=list)
    places: list[tuple[int, int, int]] = field(default_factory=list)
    size: int = 0
    lowest: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SORTED_BY, HIGHEST))
    highest: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SORTED_BY, 0))

    def put(self, heads: Heads, slices: Int32s) -> None:
        """Take in records."""
        self.heads.append(heads)
        self.slices.append(slices)
        self.size += heads.nbytes + slices.nbytes
        for name in SORTED_BY:
            self.lowest[name] = min(self.lowest[name], int(heads[name].min()))
            self.highest[name] = max(self.highest[name], int(heads[name].max()))

    def told_apart_by(self) -> str | None:
        """Return the first number in which the records differ, None where they agree in both."""
        return next((name for name in SORTED_BY if self.lowest[name] < self.highest[name]), None)


@final
class Sorter:
    """Records in, sorted blocks out; stable."""

    __slots__ = ("_by", "_file", "_held", "_limit", "_lowest", "_most", "_ranges", "_width")

    def __init__(
        self,
        limit: MemoryLimit,
        most: int,
        expected: int,
        lowest: int = 0,
        highest: int = HIGHEST,
        by: str = "key",
    ) -> None:
        """Get ready.

        Args:
            limit: where work files are made.
            most: bytes that may be held before they are written, and the largest range that is sorted in memory.
            expected: bytes of all records, about.
            lowest: no key is below it.
            highest: no key is above it.
            by: which number records are dealt out by; "other" where all keys are the same.
        """
        # Ranges of about half the memory limit, if keys are spread evenly; hashes are.
        count = min(MOST_RANGES, max(1, -(-2 * expected // most)), highest - lowest + 1)
        self._limit, self._most, self._lowest, self._by = limit, most, lowest, by
        # Rounded up, so that the last range reaches the highest key.
        self._width = min((highest - lowest) // count + 1, HIGHEST)
        self._ranges = [_Range() for _ in range(count)]
        self._file: WorkFile | None = None
        self._held = 0

    def add(self, heads: Heads, slices: Int32s) -> None:
        """Take in records: their heads, and their slices one behind the other."""
        if not heads.size:
            return
        keys = heads[self._by]
        # uint16 by record: its range, all of one width.
        dealt = (keys - np.uint64(self._lowest)) // np.uint64(self._width)
        dealt = np.minimum(dealt, np.uint64(len(self._ranges) - 1)).astype(np.uint16)
        starts = np.concatenate([[0], np.cumsum(heads["size"])]).astype(np.int64)
        # Stable here and below: records that agree in both numbers stay as they came.
        order = np.argsort(dealt, kind="stable")
        moved = np.empty_like(slices)
        gather_slices(slices, starts, order, moved)
        heads = heads[order]
        ends = np.concatenate([[0], np.cumsum(heads["size"])]).astype(np.int64)
        # (ranges + 1,), where each range's records begin.
        cuts = np.concatenate([[0], np.cumsum(np.bincount(dealt, minlength=len(self._ranges)))])
        for each, (begin, end) in zip(self._ranges, pairwise(cuts.tolist()), strict=True):
            if begin < end:
                each.put(heads[begin:end], moved[ends[begin] : ends[end]])
        self._held += heads.nbytes + moved.nbytes
        if self._held > self._most:
            self._flush()

    def blocks(self) -> Iterator[Block]:
        """Yield all records, sorted; a block holds whole ranges, or records that agree in both numbers."""
        if self._file is not None:
            self._flush()
        for number, each in enumerate(self._ranges):
            self._ranges[number] = _Range()
            if each.size <= self._most:
                if each.size:
                    yield _sorted(*self._whole(each))
            elif (by := each.told_apart_by()) is None:
                yield from self._parts(each)
            else:
                yield from self._divided(each, by)
        if self._file is not None:
            self._file.close()

    def _flush(self) -> None:
        """Write the buffered records, range after range."""
        if self._file is None:
            self._file = self._limit.file()
        for each in self._ranges:
            if each.heads:
                heads, slices = np.concatenate(each.heads), np.concatenate(each.slices)
                each.places.append((self._file.append(heads), heads.size, slices.size))
                self._file.append(slices)
                each.heads, each.slices = [], []
        self._held = 0

    def _parts(self, each: _Range) -> Iterator[Block]:
        """Yield the records of a range as they came."""
        for begin, count, size in each.places:
            if self._file is None:
                raise InternalError("records of a sorter were looked for in a file that was never written.")
            heads = self._file.read(begin, count, HEAD)
            yield heads, self._file.read(begin + heads.nbytes, size, np.int32)
        if each.heads:
            yield np.concatenate(each.heads), np.concatenate(each.slices)

    def _whole(self, each: _Range) -> Block:
        parts = list(self._parts(each))
        if len(parts) == 1:
            return parts[0]
        return np.concatenate([heads for heads, _ in parts]), np.concatenate([slices for _, slices in parts])

    def _divided(self, each: _Range, by: str) -> Iterator[Block]:
        # Between the lowest and the highest number that came, so ranges become narrower each time.
        finer = Sorter(self._limit, self._most, each.size, each.lowest[by], each.highest[by], by)
        for heads, slices in self._parts(each):
            finer.add(heads, slices)
        each.heads, each.slices = [], []
        yield from finer.blocks()


def _sorted(heads: Heads, slices: Int32s) -> Block:
    """Sort by key, then other, ties as they came."""
    keys, others = heads["key"], heads["other"]
    order = np.argsort(keys, kind="stable")
    # A second number is sorted by only where keys agree, which hashes hardly do.
    same = np.diff(keys[order]) == 0
    # Ties of the key that the other number resolves.
    if (same & (np.diff(others[order]) != 0)).any():
        order = np.lexsort((others, keys))
    starts = np.concatenate([[0], np.cumsum(heads["size"])]).astype(np.int64)
    moved = np.empty_like(slices)
    gather_slices(slices, starts, order, moved)
    return heads[order], moved


# Passes over the positions of a corpus on disk: a few million at a time, whose pages are given back behind each.

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
            what = "the distinct phrases that users hold of one length"
            limit.require(2 * names.size * BYTES_OF_PAIR, what)
            raise MemoryLimitError("the distinct phrases that users hold of one length do not fit into memory.")
        forget_pages(ids, begin, end)
        forget_pages(partners, begin, end)
    return names[:count]


def _spans(size: int) -> Iterator[tuple[int, int]]:
    for begin in range(0, size, AT_ONCE):
        yield begin, min(begin + AT_ONCE, size)
