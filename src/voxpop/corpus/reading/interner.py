"""Distinct words and their provisional ids, for one thread."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from voxpop.arrays import Bytes, Int32s, Int64s, Uint32s, Uint64s
from voxpop.arrow import int64_array, string_array, text_buffers
from voxpop.corpus.reading.code_points import ascii_letters, fill_page, shared_table
from voxpop.kernels.words import DONE, MISSING_PAGE, cut_words, refill, unpack
from voxpop.segmenting import normal_form

HEADS = (
    np.frombuffer(b"http://", np.uint8),
    np.frombuffer(b"https://", np.uint8),
    np.frombuffer(b"www.", np.uint8),
)
LETTERS = ascii_letters()
SLOW_DOCUMENT = -2
Documents = tuple[Int32s, Int64s]


@dataclass(slots=True)
class WordInterner:
    """Words met so far; ids count up from 0 in order of first appearance."""

    slots: Uint64s = field(default_factory=lambda: np.zeros(1 << 16, np.uint64))
    word_start: Int64s = field(default_factory=lambda: np.zeros((1 << 14) + 1, np.int64))
    arena: Uint64s = field(default_factory=lambda: np.empty(1 << 16, np.uint64))
    counts: Int64s = field(default_factory=lambda: np.zeros(2, np.int64))
    table: Uint32s = field(default_factory=shared_table)

    def cut(self, texts: pa.Array) -> Documents:
        """Return the word ids of each text followed by -1, and where each text's ids end (one more, from 0)."""
        data, starts = text_buffers(texts)
        ids, ends = self._run(data, starts, normal=False)
        slow, self.counts[1] = int(self.counts[1]), 0
        return self._mend(texts, ids, ends) if slow else (ids, ends)

    @property
    def size(self) -> int:
        """Bytes held."""
        return self.slots.nbytes + self.word_start.nbytes + self.arena.nbytes

    def vocabulary(self) -> pa.Array:
        """Return the words by id."""
        words = int(self.counts[0])
        # Eight bytes for each number of the arena: at least what the words take without their filling.
        data = np.empty(8 * int(self.word_start[words]), np.uint8)
        starts = np.zeros(words + 1, np.int64)
        unpack(self.arena, self.word_start, words, data, starts)
        return pa.LargeStringArray.from_buffers(words, pa.py_buffer(starts), pa.py_buffer(data[: starts[-1]]))

    def _run(self, data: Bytes, starts: Int64s, *, normal: bool) -> Documents:
        """Run the kernel, growing arrays and filling in pages where it stops for them."""
        # A text of n bytes has at most n / 2 + 1 words, and one -1 behind them.
        ids = np.empty(int(starts[-1] - starts[0]) // 2 + 2 * starts.size, np.int32)
        ends = np.zeros(starts.size, np.int64)
        reason, document = -1, 0
        while reason != DONE:
            reason, document, code = cut_words(
                data,
                starts,
                document,
                LETTERS,
                self.table,
                HEADS,
                normal,
                self.slots,
                self.word_start,
                self.arena,
                self.counts,
                ids,
                ends,
            )
            if reason == MISSING_PAGE:
                fill_page(self.table, code)
            elif reason != DONE:
                self._grow(int(starts[document + 1] - starts[document]))
        return ids[: ends[-1]], ends

    def _grow(self, size: int) -> None:
        """Make room for a document of `size` bytes, at least doubling what is too small."""
        words = int(self.counts[0])
        wanted = words + size // 2 + 2
        used = int(self.word_start[words])
        if used + size + 16 > self.arena.size:
            self.arena = _widened(self.arena, 2 * (used + size + 16))
        if 4 * wanted > self.slots.size or wanted >= self.word_start.size - 1:
            # A power of two of at least twice the words: at most half full.
            places = 1 << (2 * wanted).bit_length()
            self.word_start = _widened(self.word_start, places + 1)
            self.slots = np.zeros(2 * places, np.uint64)
            refill(self.arena, self.word_start, words, self.slots)

    def _mend(self, texts: pa.Array, ids: Int32s, ends: Int64s) -> Documents:
        """Cut the slow texts again in normal form, and put them in their places."""
        sizes = np.diff(ends)
        # A slow text left -2 alone.
        slow = np.flatnonzero((sizes == 1) & (ids[ends[:-1]] == SLOW_DOCUMENT))
        normal = [normal_form(text) for text in texts.take(int64_array(slow)).to_pylist()]
        mended_ids, mended_ends = self._run(*text_buffers(string_array(normal)), normal=True)
        sizes[slow] = np.diff(mended_ends)
        new_ends = np.concatenate([[0], np.cumsum(sizes)])
        from_slow = np.zeros(sizes.size, np.bool_)
        from_slow[slow] = True
        # By id of the result: whether it comes from a text that was cut again.
        is_mended = np.repeat(from_slow, sizes)
        result = np.empty(new_ends[-1], np.int32)
        result[is_mended] = mended_ids
        result[~is_mended] = ids[ids != SLOW_DOCUMENT]
        return result, new_ends


def _widened(array: NDArray, size: int) -> NDArray:  # type: ignore[type-arg]
    """Return a longer copy."""
    longer = np.empty(max(size, array.size), array.dtype)
    longer[: array.size] = array
    return longer
