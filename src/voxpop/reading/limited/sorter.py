"""Sort records by key on disk: any number of them, in a bounded amount of memory.

A record is a head (two numbers for sorting and distinguishing, and further values) and a slice of int32. Records are
dealt out to ranges of keys as they come, each range is read back in turn and sorted in memory, and a range that is too
large for that is dealt out again; records of one single key by the other number. Only records that agree in both cannot
be told apart so; they are handed on as they came, some at a time.

The work files of a corpus that does not fit into memory contain its arrays user by user and its vocabulary, merged on
disk.
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
"""Sorted by key, then other; `row` distinguishes users where both may agree; `size` is that of the slice."""
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
                raise InternalError("records of a sorter were looked for in a file that was never written")
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

_SORTED_AT_ONCE = 1 << 21
BYTES_OF_PAIR = 48
"""Bytes that a pair takes while the table that numbers pairs grows: 16 the new table, 24 both lists, 8 to spare."""


def copied(ids: Int32s, limit: MemoryLimit, ranks: Int32s | None = None) -> Int32s:
    """Return a mapped copy, which passes may change; ids are replaced by `ranks[id]`, negative ones stay."""

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
    """Write `ranks[id]` for every id, in place; negative ids stay."""
    for begin, end in _spans(ids.size):
        rename(ids[begin:end], ranks, ids[begin:end])
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
    """Tokens, where each user's begin, and the users' keys."""

    def __init__(self, limit: MemoryLimit) -> None:
        self._tokens, self._starts, self._keys = limit.file(), limit.file(), limit.file()
        self._last: Any = None
        self._end = 0

    def append(self, heads: Heads, tokens: Int32s) -> None:
        """Write records in their order; those that follow each other and agree in all but size are one user's."""
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
        """Return the arrays: tokens, starts (one more than users) and keys."""
        self._starts.append(np.array([self._end], np.int64))
        arrays = self._tokens.mapped(np.int32), self._starts.mapped(np.int64), self._keys.mapped(np.uint64)
        for file in (self._tokens, self._starts, self._keys):
            file.close()
        return arrays


def in_key_order(sorter: Sorter, limit: MemoryLimit) -> Mapped:
    """Return the users of a sorter by their keys, mapped."""
    files = UserFiles(limit)
    for heads, tokens in one_ahead(sorter.blocks()):
        files.append(heads, tokens)
    return files.mapped()


SHARE_OF_HEADS = 32
"""The next words of all runs together hold this part of the room: merging them takes several copies."""


@final
@dataclass(slots=True)
class _Run:
    """One sorted list of distinct words, and the position of the merge in it."""

    starts: int
    data: int
    words: int
    done: int = 0
    head: pa.Array = field(default_factory=lambda: pa.nulls(0, pa.large_string()))


@final
class WordRuns:
    """Lists of words, sorted by their bytes and distinct within each."""

    def __init__(self, limit: MemoryLimit) -> None:
        self._limit = limit
        self._starts, self._data, self._names = limit.file(), limit.file(), limit.file()
        self._runs: list[_Run] = []

    def add(self, words: pa.LargeStringArray) -> None:
        """Keep one more list."""
        letters, starts = text_buffers(words)
        data = self._data.append(letters[starts[0] : starts[-1]])
        self._runs.append(_Run(self._starts.append(starts - starts[0]), data, len(words)))

    def merged(self) -> pa.LargeStringArray:
        """Return all words, sorted and distinct, mapped; from then on `names` answers."""
        starts, data = self._limit.file(), self._limit.file()
        starts.append(np.zeros(1, np.int64))
        count = 0
        while unmerged := [run for run in self._runs if run.done < run.words]:
            block, names = merge_words(*self._next(unmerged))
            check_width(count + len(block), "distinct words or items")
            letters, own = text_buffers(block)
            # From places within the block to places in the whole.
            starts.append(own[1:] - own[0] + data.size)
            data.append(letters[own[0] : own[-1]])
            for run, mine in zip(unmerged, names, strict=True):
                # int32: four bytes a name, in the order of the run's words.
                self._names.write(_names_of(run) + 4 * run.done, mine + np.int32(count))
                run.done += len(mine)
            count += len(block)
        self._data.close()
        vocabulary = strings_of(starts, data)
        starts.close()
        data.close()
        return vocabulary

    def names(self, number: int) -> Int32s:
        """Return the place in the vocabulary of each word of a list, by the list's number."""
        run = self._runs[number]
        return self._names.read(_names_of(run), run.words, np.int32)

    def _next(self, runs: list[_Run]) -> tuple[list[pa.Array], list[Bools]]:
        """Return from each run all words up to the first point that some run is not read beyond."""
        most = self._limit.room // (SHARE_OF_HEADS * len(runs))
        for run in runs:
            self._read_on(run, most)
        beyond = [run for run in runs if run.done + len(run.head) < run.words]
        # Up to here no run can bring a smaller word that has not been read.
        last = min((run.head[-1].as_py() for run in beyond), default=None)
        taken = []
        for run in runs:
            count = len(run.head) if last is None else bisect_right(run.head, last, key=lambda word: word.as_py())
            taken.append(run.head[:count])
            run.head = run.head[count:]
        return taken, [np.ones(len(each), np.bool_) for each in taken]

    def _read_on(self, run: _Run, most: int) -> None:
        """Fill up the head of a run that is half empty.

        Not only where nothing is left: then the others, one of which gives its last word at a time, would hold back
        all, and there would be as many merges as blocks of all runs.
        """
        at = run.done + len(run.head)
        if at < run.words and (not len(run.head) or run.head.nbytes < most // 2):
            run.head = pa.concat_arrays([run.head, self._block(run, at, most)])

    def _block(self, run: _Run, at: int, most: int) -> pa.Array:
        """Read the next words of a run: about that number of bytes with their starts, and at least one word."""
        # A beginning takes eight bytes, so more words than that never fit.
        count = max(1, min(most // 8, run.words - at))
        starts = self._starts.read(run.starts + 8 * at, count + 1, np.int64)
        # Bytes of the first words up to each number, with their beginnings.
        sizes = starts - starts[0] + 8 * np.arange(count + 1)
        count = max(1, int(np.searchsorted(sizes, most, side="right")) - 1)
        own = starts[: count + 1] - starts[0]
        data = self._data.read(run.data + int(starts[0]), int(own[-1]), np.uint8)
        return pa.LargeStringArray.from_buffers(count, pa.py_buffer(own), pa.py_buffer(data))


def _names_of(run: _Run) -> int:
    """Return where the names of a run lie: they are half as wide as its starts, and in the same order."""
    return run.starts // 2
