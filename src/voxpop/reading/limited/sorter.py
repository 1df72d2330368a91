"""Sort any number of records by key on disk in a bounded amount of memory.

A record consists of a head (two numbers for sorting, and further values) and a slice of int32 values. Records are
assigned to ranges of keys as they arrive. Each range is then read and sorted in memory. A range that is too large for
memory is split again, and records with the same key are split by the other number. Only records that agree in both
numbers cannot be separated in this way. Such records are returned in several blocks in the order of arrival.

If a corpus does not fit into memory, its arrays by user and its vocabulary are merged on disk in work files.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from voxpop.errors import InternalError, MemoryLimitError
from voxpop.kernels.arrays import Bools, Int32s, Int64s, Uint64s
from voxpop.kernels.group import gather_slices, rename
from voxpop.kernels.pairs import FIRST_SLOTS_BITS, number_more_pairs
from voxpop.kernels.threads import one_ahead
from voxpop.reading import arrow as widths
from voxpop.reading.arrow import check_width, text_buffers
from voxpop.reading.limited.memory import MemoryLimit, WorkFile, forget_pages, stored, strings_of
from voxpop.reading.words import merge_words

Heads = NDArray[Any]
Block = tuple[Heads, Int32s]

HEAD = np.dtype([("key", np.uint64), ("other", np.uint64), ("user", np.uint64), ("row", np.int64), ("size", np.int64)])
"""Heads are sorted by key, then other. `row` distinguishes users if both may agree. `size` is the size of the slice."""
SORTED_BY = ("key", "other")
MOST_RANGES = 256
SHARE_OF_SORTER = 8
"""Under a memory limit, a sorter buffers one eighth of the memory, because two sorters and their copies exist at a
time."""
HIGHEST = 2**64 - 1


@final
@dataclass(slots=True)
class _Range:
    """The records of one range of keys, with their positions and sizes."""

    heads: list[Heads] = field(default_factory=list)
    slices: list[Int32s] = field(default_factory=list)
    places: list[tuple[int, int, int]] = field(default_factory=list)
    size: int = 0
    lowest: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SORTED_BY, HIGHEST))
    highest: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SORTED_BY, 0))

    def put(self, heads: Heads, slices: Int32s) -> None:
        """Add records."""
        self.heads.append(heads)
        self.slices.append(slices)
        self.size += heads.nbytes + slices.nbytes
        for name in SORTED_BY:
            self.lowest[name] = min(self.lowest[name], int(heads[name].min()))
            self.highest[name] = max(self.highest[name], int(heads[name].max()))

    def told_apart_by(self) -> str | None:
        """Return the first number that differs between the records, or None for records that agree in both."""
        return next((name for name in SORTED_BY if self.lowest[name] < self.highest[name]), None)


@final
class Sorter:
    """A stable sorter that accepts records and yields sorted blocks."""

    def __init__(
        self,
        limit: MemoryLimit,
        most: int,
        expected: int,
        lowest: int = 0,
        highest: int = HIGHEST,
        by: str = "key",
    ) -> None:
        """Create an empty sorter.

        Args:
            limit: The memory limit, which provides the work files.
            most: The number of bytes to buffer before writing, which is also the maximum size of a range that is sorted
                in memory.
            expected: The approximate number of bytes of all records.
            lowest: A lower bound on the field `by`.
            highest: An upper bound on the field `by`.
            by: The field of a head that determines the range of its record. It is "key", or "other" if all keys are the
                same.
        """
        # If keys are spread evenly, as hashes are, a range has about half of `most` bytes.
        count = min(MOST_RANGES, max(1, -(-2 * expected // most)), highest - lowest + 1)
        self._limit, self._most, self._lowest, self._by = limit, most, lowest, by
        # The width is rounded up, so that the last range reaches the highest key.
        self._width = min((highest - lowest) // count + 1, HIGHEST)
        self._ranges = [_Range() for _ in range(count)]
        self._file: WorkFile | None = None
        self._held = 0

    def add(self, heads: Heads, slices: Int32s) -> None:
        """Add records, given by their heads and their concatenated slices."""
        if not heads.size:
            return
        keys = heads[self._by]
        # uint16 by record, the index of its range. All ranges have the same width.
        dealt = (keys - np.uint64(self._lowest)) // np.uint64(self._width)
        dealt = np.minimum(dealt, np.uint64(len(self._ranges) - 1)).astype(np.uint16)
        starts = np.concatenate([[0], np.cumsum(heads["size"])]).astype(np.int64)
        # The sort is stable here and below, so records that agree in both numbers remain in the order of arrival.
        order = np.argsort(dealt, kind="stable")
        moved = np.empty_like(slices)
        gather_slices(slices, starts, order, moved)
        heads = heads[order]
        ends = np.concatenate([[0], np.cumsum(heads["size"])]).astype(np.int64)
        # (ranges + 1,), the start of each range's records.
        cuts = np.concatenate([[0], np.cumsum(np.bincount(dealt, minlength=len(self._ranges)))])
        for each, (begin, end) in zip(self._ranges, pairwise(cuts.tolist()), strict=True):
            if begin < end:
                each.put(heads[begin:end], moved[ends[begin] : ends[end]])
        self._held += heads.nbytes + moved.nbytes
        if self._held > self._most:
            self._flush()

    def blocks(self) -> Iterator[Block]:
        """Yield all records in order. A block contains one whole range, or records that agree in both numbers."""
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
        """Write the buffered records, one range after another."""
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
        """Yield the records of a range in the order of arrival."""
        for begin, count, size in each.places:
            if self._file is None:
                raise InternalError("records of a sorter were requested from a file that was never written")
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
        # Use the smallest and the largest number of the records, so that ranges become narrower each time.
        finer = Sorter(self._limit, self._most, each.size, each.lowest[by], each.highest[by], by)
        for heads, slices in self._parts(each):
            finer.add(heads, slices)
        each.heads, each.slices = [], []
        yield from finer.blocks()


def _sorted(heads: Heads, slices: Int32s) -> Block:
    """Return the records sorted by key, then by the other number. Ties remain in the order of arrival."""
    keys, others = heads["key"], heads["other"]
    order = np.argsort(keys, kind="stable")
    # The second number matters only for equal keys, which are rare because keys are hashes.
    same = np.diff(keys[order]) == 0
    # These keys are equal, but differ in the other number.
    if (same & (np.diff(others[order]) != 0)).any():
        order = np.lexsort((others, keys))
    starts = np.concatenate([[0], np.cumsum(heads["size"])]).astype(np.int64)
    moved = np.empty_like(slices)
    gather_slices(slices, starts, order, moved)
    return heads[order], moved


# Passes over the positions of a corpus on disk. Each step reads a few million positions and then releases their pages.

_SORTED_AT_ONCE = 1 << 21
BYTES_OF_PAIR = 48
"""The bytes per pair while the table of pairs grows: 16 for the new table, 24 for both lists, 8 spare."""


def copied(ids: Int32s, limit: MemoryLimit, ranks: Int32s | None = None) -> Int32s:
    """Return a mapped copy that passes may change, with nonnegative ids replaced by `ranks[id]`."""

    def parts() -> Iterator[Int32s]:
        for begin, end in _spans(ids.size):
            part = np.asarray(ids[begin:end])
            if ranks is not None:
                named = np.empty(part.size, np.int32)
                rename(part, ranks, named)
                part = named
            yield part
            forget_pages(ids, begin, end)

    return stored(parts(), limit)


def rename_all(ids: Int32s, ranks: Int32s) -> None:
    """Write `ranks[id]` for every nonnegative id, in place."""
    for begin, end in _spans(ids.size):
        rename(ids[begin:end], ranks, ids[begin:end])
        forget_pages(ids, begin, end)


def number_within(
    ids: Int32s, partners: Int32s, offset: int, need: Int64s, estimates: Int64s, limit: MemoryLimit
) -> Int64s:
    """Number all pairs as `number_pairs` does, but in a table within the memory limit, and return their names.

    Raises:
        MemoryLimitError: If there are more distinct pairs than the table can store within the limit.
        InputError: If there are more distinct pairs than 32-bit numbers can count.
    """
    names = np.empty(1 << (FIRST_SLOTS_BITS - 1), np.int64)
    table = np.zeros(1 << FIRST_SLOTS_BITS, np.uint32)
    # This bound counts pairs, not bytes.
    most, count = min(limit.room // BYTES_OF_PAIR, widths.MOST_NUMBERS), 0
    for begin, end in _spans(ids.size):
        # Partners may be beyond the span, because the last gram of one part can extend into the next part.
        span = (begin, end, ids.size)
        names, count, table = number_more_pairs(ids, partners, offset, span, need, estimates, names, count, table, most)
        if count < 0:
            widths.check_width(names.size + (names.size == widths.MOST_NUMBERS), "distinct phrases of one length")
            what = "the distinct phrases of users of one length"
            limit.require(2 * names.size * BYTES_OF_PAIR, what)
            raise MemoryLimitError(
                "the distinct phrases of one length do not fit into memory. "
                "Use a machine with more memory, or a lower limit."
            )
        forget_pages(ids, begin, end)
        forget_pages(partners, begin, end)
    return names[:count]


def _spans(size: int) -> Iterator[tuple[int, int]]:
    for begin in range(0, size, _SORTED_AT_ONCE):
        yield begin, min(begin + _SORTED_AT_ONCE, size)


Mapped = tuple[Int32s, Int64s, Uint64s]


@final
class UserFiles:
    """Work files with the tokens, the start of each user's tokens, and the users' keys."""

    def __init__(self, limit: MemoryLimit) -> None:
        self._tokens, self._starts, self._keys = limit.file(), limit.file(), limit.file()
        self._last: Any = None
        self._end = 0

    def append(self, heads: Heads, tokens: Int32s) -> None:
        """Write records in their order. Consecutive records that differ only in size belong to one user."""
        if not heads.size:
            return
        self._tokens.append(tokens)
        who = heads[["key", "other", "user", "row"]]
        new = np.ones(who.size, np.bool_)
        new[1:] = who[1:] != who[:-1]
        new[0] = self._last != who[0].item()
        ends = self._end + np.cumsum(heads["size"])
        self._starts.append((ends - heads["size"])[new].astype(np.int64))
        self._keys.append(heads["user"][new])
        self._last, self._end = who[-1].item(), int(ends[-1])

    def mapped(self) -> Mapped:
        """Return the arrays of tokens, starts (one more than users) and keys."""
        self._starts.append(np.array([self._end], np.int64))
        arrays = self._tokens.mapped(np.int32), self._starts.mapped(np.int64), self._keys.mapped(np.uint64)
        for file in (self._tokens, self._starts, self._keys):
            file.close()
        return arrays


def in_key_order(sorter: Sorter, limit: MemoryLimit) -> Mapped:
    """Return the mapped users of a sorter in the order of their keys."""
    files = UserFiles(limit)
    for heads, tokens in one_ahead(sorter.blocks()):
        files.append(heads, tokens)
    return files.mapped()


SHARE_OF_HEADS = 32
"""The next words of all runs together take at most this fraction (1/32) of the memory. A merge needs several copies."""


@final
@dataclass(slots=True)
class _Run:
    """A sorted list of distinct words, and the position of the merge in this list."""

    starts: int
    data: int
    words: int
    done: int = 0
    head: pa.Array = field(default_factory=lambda: pa.nulls(0, pa.large_string()))


@final
class WordRuns:
    """Lists of words. Each list is sorted by bytes and has no duplicates."""

    def __init__(self, limit: MemoryLimit) -> None:
        self._limit = limit
        self._starts, self._data, self._names = limit.file(), limit.file(), limit.file()
        self._runs: list[_Run] = []

    def add(self, words: pa.LargeStringArray) -> None:
        """Add one list."""
        letters, starts = text_buffers(words)
        data = self._data.append(letters[starts[0] : starts[-1]])
        self._runs.append(_Run(self._starts.append(starts - starts[0]), data, len(words)))

    def merged(self) -> pa.LargeStringArray:
        """Return all distinct words in order as a mapped array. Afterwards, `names` is available."""
        starts, data = self._limit.file(), self._limit.file()
        starts.append(np.zeros(1, np.int64))
        count = 0
        while unmerged := [run for run in self._runs if run.done < run.words]:
            block, names = merge_words(*self._next(unmerged))
            check_width(count + len(block), "distinct words or items")
            letters, own = text_buffers(block)
            # Convert positions within the block to positions in the whole vocabulary.
            starts.append(own[1:] - own[0] + data.size)
            data.append(letters[own[0] : own[-1]])
            for run, mine in zip(unmerged, names, strict=True):
                # Names are int32 with four bytes each, in the order of the run's words.
                self._names.write(_names_of(run) + 4 * run.done, mine + np.int32(count))
                run.done += len(mine)
            count += len(block)
        self._data.close()
        vocabulary = strings_of(starts, data)
        starts.close()
        data.close()
        return vocabulary

    def names(self, number: int) -> Int32s:
        """Return the position in the vocabulary of each word of a list, given the index of the list."""
        run = self._runs[number]
        return self._names.read(_names_of(run), run.words, np.int32)

    def _next(self, runs: list[_Run]) -> tuple[list[pa.Array], list[Bools]]:
        """Return all words of each run up to the smallest last word of an incomplete head."""
        most = self._limit.room // (SHARE_OF_HEADS * len(runs))
        for run in runs:
            self._read_on(run, most)
        beyond = [run for run in runs if run.done + len(run.head) < run.words]
        # No run can still contain an unread word below this word.
        last = min((run.head[-1].as_py() for run in beyond), default=None)
        taken = []
        for run in runs:
            count = len(run.head) if last is None else bisect_right(run.head, last, key=lambda word: word.as_py())
            taken.append(run.head[:count])
            run.head = run.head[count:]
        return taken, [np.ones(len(each), np.bool_) for each in taken]

    def _read_on(self, run: _Run, most: int) -> None:
        """Refill the head of a run that is less than half full.

        Heads are refilled before they are empty. Otherwise a run with one remaining word would delay all other runs,
        and the number of merges would be the number of blocks of all runs.
        """
        at = run.done + len(run.head)
        if at < run.words and (not len(run.head) or run.head.nbytes < most // 2):
            run.head = pa.concat_arrays([run.head, self._block(run, at, most)])

    def _block(self, run: _Run, at: int, most: int) -> pa.Array:
        """Return the next words of a run, at least one. Including their starts, the words have about `most` bytes."""
        # A start takes eight bytes, so more words never fit.
        count = max(1, min(most // 8, run.words - at))
        starts = self._starts.read(run.starts + 8 * at, count + 1, np.int64)
        # The total bytes of the first words for each number of words, including their starts.
        sizes = starts - starts[0] + 8 * np.arange(count + 1)
        count = max(1, int(np.searchsorted(sizes, most, side="right")) - 1)
        own = starts[: count + 1] - starts[0]
        data = self._data.read(run.data + int(starts[0]), int(own[-1]), np.uint8)
        return pa.LargeStringArray.from_buffers(count, pa.py_buffer(own), pa.py_buffer(data))


def _names_of(run: _Run) -> int:
    """Return the position of a run's names.

    Names are half as wide as the starts of the words, and in the same order.
    """
    return run.starts // 2
