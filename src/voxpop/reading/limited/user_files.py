"""Work files of a corpus that does not fit into memory: its arrays user by user, and its vocabulary, merged on disk."""

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import final

import numpy as np
import pyarrow as pa

from voxpop.kernels.arrays import Bools, Int32s, Int64s, Uint64s
from voxpop.kernels.threads import one_ahead
from voxpop.reading.arrow import text_buffers
from voxpop.reading.limited.memory import MemoryLimit
from voxpop.reading.limited.sorter import Heads, Sorter
from voxpop.reading.limited.work_file import strings_of
from voxpop.reading.widths import check_width
from voxpop.reading.words import merge_words

Mapped = tuple[Int32s, Int64s, Uint64s]


@final
class UserFiles:
    """Tokens, where each user's begin, and the users' keys."""

    __slots__ = ("_end", "_keys", "_last", "_starts", "_tokens")

    def __init__(self, limit: MemoryLimit) -> None:
        self._tokens, self._starts, self._keys = limit.file(), limit.file(), limit.file()
        self._last: int | None = None
        self._end = 0

    def append(self, heads: Heads, tokens: Int32s) -> None:
        """Write records in their order; those that follow each other with the same `row` are one user's.

        Not those of the same key: two users may have one, and each of them is a separate user.
        """
        if not heads.size:
            return
        self._tokens.append(tokens)
        rows = heads["row"]
        new = np.ones(rows.size, np.bool_)
        new[1:] = rows[1:] != rows[:-1]
        new[0] = self._last != int(rows[0])
        ends = self._end + np.cumsum(heads["size"])
        self._starts.append((ends - heads["size"])[new].astype(np.int64))
        self._keys.append(heads["user"][new])
        self._last, self._end = int(rows[-1]), int(ends[-1])

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

    __slots__ = ("_data", "_limit", "_names", "_runs", "_starts")

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
