"""Conversion of the words of texts to ids.

Each thread collects distinct words, and their lists become one sorted vocabulary.
"""

import unicodedata
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from voxpop.kernels.arrays import Bools, Bytes, Int32s, Int64s, Uint32s, Uint64s
from voxpop.kernels.words import ADDRESS, BUILT, DONE, IGNORED, MISSING_PAGE, SLOW, WORD, cut_words, refill, unpack
from voxpop.reading.arrow import array_of, check_width, int64_array, numbers_of, string_array, text_buffers
from voxpop.reading.segmenting import APOSTROPHES, IN_ADDRESS, is_ignored, kind_of_character, words

# The class of each Unicode code point in the word tokenizer. The table is computed in pages of 256 code points when
# first needed.

PAGE = 256
HANGUL_VOWELS_AND_TAILS = range(0x1160, 0x1200)
KIRAT_RAI_VOWELS = range(0x16D63, 0x16D6B)
SURROGATES = range(0xD800, 0xE000)


@cache
def shared_table() -> Uint32s:
    """Return the table of all code points, which initially contains only the ASCII page.

    Threads may share the table. If two of them fill the same page, both write the same numbers.
    """
    table = np.zeros(0x110000, np.uint32)
    fill_page(table, 0)
    return table


def fill_page(table: Uint32s, code: int) -> None:
    """Fill in the page of a code point."""
    first = code // PAGE * PAGE
    table[first : first + PAGE] = [_describe(each) for each in range(first, first + PAGE)]


def _describe(code: int) -> int:
    """Return the lower case of a code point (' for apostrophes), and its class.

    Texts with a slow code point are split by `voxpop.reading.segmenting`. A code point is slow if it may combine with
    its neighbours under NFC, if its lower case is several code points or depends on its neighbours, if it belongs to
    words only between certain other characters, or if it needs a dictionary.
    """
    if code in SURROGATES:
        return code | BUILT
    character = chr(code)
    if character in APOSTROPHES:
        return ord("'") | BUILT
    kind, lower = kind_of_character(character), character.lower()
    word = WORD if kind in LETTERS_OF_WORDS else 0
    address = ADDRESS if kind in IN_ADDRESS else 0
    ignored = IGNORED | SLOW if is_ignored(character) else 0
    slow = SLOW if _is_slow(code, character, kind, lower) else 0
    return ord(lower[0]) | word | address | ignored | slow | BUILT


LETTERS_OF_WORDS = "ahk"
"""Letters and numbers of scripts that need no dictionary (see `kind_of`)."""


def _is_slow(code: int, character: str, kind: str, lower: str) -> bool:
    return (
        kind in "mndijc’"
        or len(lower) != 1
        or character == "Σ"
        or code in HANGUL_VOWELS_AND_TAILS
        or code in KIRAT_RAI_VOWELS
        or not unicodedata.is_normalized("NFC", character + lower)
    )


# Distinct words and their provisional ids, for one thread.

HEADS = (
    np.frombuffer(b"http://", np.uint8),
    np.frombuffer(b"https://", np.uint8),
    np.frombuffer(b"www.", np.uint8),
)
_LETTERS = np.array([ord(chr(code).lower()) * (code < 128 and chr(code).isalnum()) for code in range(256)], np.uint8)
"""The lower case of each byte that is an ASCII letter or digit, and 0 for other bytes."""
UNCHANGED = np.array([byte * (byte != ord(" ")) for byte in range(256)], np.uint8)
"""Each byte, and 0 for the space, for texts that are already split into words."""
SLOW_DOCUMENT = -2
Documents = tuple[Int32s, Int64s]


@dataclass(slots=True)
class WordInterner:
    """The words found so far. Ids are numbered from 0 in order of first appearance."""

    slots: Uint64s = field(default_factory=lambda: np.zeros(1 << 16, np.uint64))
    word_start: Int64s = field(default_factory=lambda: np.zeros((1 << 14) + 1, np.int64))
    arena: Uint64s = field(default_factory=lambda: np.empty(1 << 16, np.uint64))
    counts: Int64s = field(default_factory=lambda: np.zeros(2, np.int64))
    table: Uint32s = field(default_factory=shared_table)

    def cut(self, texts: pa.Array) -> Documents:
        """Return the word ids of each text, followed by -1, and the ends of the texts' ids, preceded by 0."""
        data, starts = text_buffers(texts)
        ids, ends = self._run(data, starts, _LETTERS)
        slow, self.counts[1] = int(self.counts[1]), 0
        return self._mend(texts, ids, ends) if slow else (ids, ends)

    @property
    def size(self) -> int:
        """The number of bytes in memory."""
        return self.slots.nbytes + self.word_start.nbytes + self.arena.nbytes

    def vocabulary(self) -> pa.Array:
        """Return the words by id."""
        words = int(self.counts[0])
        # The arena has eight bytes for each number, so this is at least the size of the words without padding.
        data = np.empty(8 * int(self.word_start[words]), np.uint8)
        starts = np.zeros(words + 1, np.int64)
        unpack(self.arena, self.word_start, words, data, starts)
        return pa.LargeStringArray.from_buffers(words, pa.py_buffer(starts), pa.py_buffer(data[: starts[-1]]))

    def _run(self, data: Bytes, starts: Int64s, letters: Bytes) -> Documents:
        """Run the kernel. Whenever it stops before the end, enlarge arrays or fill in a page, and continue."""
        # A text of n bytes has at most n / 2 + 1 words, followed by one -1.
        ids = np.empty(int(starts[-1] - starts[0]) // 2 + 2 * starts.size, np.int32)
        ends = np.zeros(starts.size, np.int64)
        reason, document = -1, 0
        while reason != DONE:
            reason, document, code = cut_words(
                data,
                starts,
                document,
                letters,
                self.table,
                HEADS,
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
        """Make room for a document of `size` bytes, and at least double arrays that are too small."""
        words = int(self.counts[0])
        wanted = words + size // 2 + 2
        used = int(self.word_start[words])
        if used + size + 16 > self.arena.size:
            self.arena = _widened(self.arena, 2 * (used + size + 16))
        if 4 * wanted > self.slots.size or wanted >= self.word_start.size - 1:
            # Use a power of two that is at least twice the number of words, so that at most half of the slots are full.
            places = 1 << (2 * wanted).bit_length()
            self.word_start = _widened(self.word_start, places + 1)
            self.slots = np.zeros(2 * places, np.uint64)
            refill(self.arena, self.word_start, words, self.slots)

    def _mend(self, texts: pa.Array, ids: Int32s, ends: Int64s) -> Documents:
        """Split the slow texts one by one, and insert their words."""
        sizes = np.diff(ends)
        # The kernel returns only -2 for a slow text.
        slow = np.flatnonzero((sizes == 1) & (ids[ends[:-1]] == SLOW_DOCUMENT))
        spaced = [" ".join(words(text)) for text in texts.take(int64_array(slow)).to_pylist()]
        mended_ids, mended_ends = self._run(*text_buffers(string_array(spaced)), UNCHANGED)
        sizes[slow] = np.diff(mended_ends)
        new_ends = np.concatenate([[0], np.cumsum(sizes)])
        from_slow = np.zeros(sizes.size, np.bool_)
        from_slow[slow] = True
        # For each id of the result, whether it belongs to a text that was split again.
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


# Several lists of words become one sorted vocabulary.

Merged = tuple[pa.LargeStringArray, list[Int32s]]


def merge_words(words: list[pa.Array], used: list[Bools]) -> Merged:
    """Return the distinct words in use, sorted by their bytes, and the position of each word of each list.

    Args:
        words: Lists of strings, each without duplicates.
        used: Whether each word is in use.

    Returns:
        large_string, the sorted words, and int32 arrays, with -1 for unused words.

    Raises:
        InputError: If there are more words than 32-bit numbers can count.
    """
    every = pa.chunked_array([each.cast(pa.large_string()) for each in words], pa.large_string())
    found = pc.unique(every.filter(array_of(np.concatenate([np.empty(0, np.bool_), *used]))))
    check_width(len(found), "distinct words or items")
    vocabulary = found.take(pc.array_sort_indices(found))
    # Look up all lists at once, because each lookup builds a table of the vocabulary and there may be hundreds of
    # lists.
    names = numbers_of(pc.index_in(every, value_set=vocabulary).combine_chunks(), missing=-1)
    return vocabulary, np.split(names, np.cumsum([len(each) for each in words])[:-1]) if words else []
