"""Kernels that cut UTF-8 text into words and give every distinct word an id, in one pass over the bytes.

The interner is four arrays, held by `voxpop.corpus.interner`:

* slots: uint64, a power of two of them; 0 where empty, else the top 32 bits of a word's hash and its id + 1;
* hashes: uint64 by id; word_start: int64 by id (one more); arena: uint8, the lower-cased bytes of all words.

`counts[0]` is the number of words. Equality is by bytes, never by hash alone.
"""

import numpy as np
from numpy.typing import NDArray

from voxpop.kernels._jit import jit

Bytes = NDArray[np.uint8]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Words = NDArray[np.uint64]

DONE, GROW, MISSING_PAGE = 0, 1, 2
WORD, SPACE, SLOW, BUILT = 1 << 21, 1 << 22, 1 << 23, 1 << 24
CODE_POINT = (1 << 21) - 1

HASH_SEED = np.uint64(0xCBF29CE484222325)
HASH_STEP = np.uint64(0x100000001B3)
TAG = np.uint64(0xFFFFFFFF00000000)
ID = np.uint64(0x00000000FFFFFFFF)
MIX_1 = np.uint64(0xFF51AFD7ED558CCD)
MIX_2 = np.uint64(0xC4CEB9FE1A85EC53)
HALF = np.uint64(33)


@jit
def _mixed(value: np.uint64) -> np.uint64:
    """Spread the bits of a hash."""
    value = (value ^ (value >> HALF)) * MIX_1
    value = (value ^ (value >> HALF)) * MIX_2
    return value ^ (value >> HALF)


@jit
def _intern(
    arena: Bytes, length: int, hashed: np.uint64, slots: Words, hashes: Words, word_start: Int64s, counts: Int64s
) -> int:
    """Return the id of the word whose `length` bytes lie at the end of the arena; keep them only if it is new."""
    words = counts[0]
    end = word_start[words]
    mask = np.uint64(slots.size - 1)
    slot = hashed & mask
    while True:
        entry = slots[slot]
        if entry == np.uint64(0):
            slots[slot] = (hashed & TAG) | np.uint64(words + 1)
            hashes[words] = hashed
            word_start[words + 1] = end + length
            counts[0] = words + 1
            return words
        if (entry ^ hashed) & TAG == np.uint64(0):
            found = np.int64(entry & ID) - 1
            begin = word_start[found]
            if word_start[found + 1] - begin == length:
                same = True
                for offset in range(length):
                    if arena[begin + offset] != arena[end + offset]:
                        same = False
                        break
                if same:
                    return found
        slot = (slot + np.uint64(1)) & mask


@jit
def rehash(hashes: Words, words: int, slots: Words) -> None:
    """Fill empty slots with the ids of all words."""
    mask = np.uint64(slots.size - 1)
    for word in range(words):
        slot = hashes[word] & mask
        while slots[slot] != np.uint64(0):
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = (hashes[word] & TAG) | np.uint64(word + 1)


@jit
def _decode(data: Bytes, position: int) -> tuple[int, int]:
    """Return the code point of valid UTF-8 at a position, and its number of bytes."""
    first = np.int64(data[position])
    if first < 0xE0:
        return ((first & 0x1F) << 6) | (np.int64(data[position + 1]) & 0x3F), 2
    second = np.int64(data[position + 1]) & 0x3F
    third = np.int64(data[position + 2]) & 0x3F
    if first < 0xF0:
        return ((first & 0x0F) << 12) | (second << 6) | third, 3
    fourth = np.int64(data[position + 3]) & 0x3F
    return ((first & 0x07) << 18) | (second << 12) | (third << 6) | fourth, 4


@jit
def _encode(arena: Bytes, end: int, code: int) -> int:
    """Write a code point as UTF-8 and return the number of bytes."""
    if code < 0x80:
        arena[end] = code
        return 1
    if code < 0x800:
        arena[end] = 0xC0 | (code >> 6)
        arena[end + 1] = 0x80 | (code & 0x3F)
        return 2
    if code < 0x10000:
        arena[end] = 0xE0 | (code >> 12)
        arena[end + 1] = 0x80 | ((code >> 6) & 0x3F)
        arena[end + 2] = 0x80 | (code & 0x3F)
        return 3
    arena[end] = 0xF0 | (code >> 18)
    arena[end + 1] = 0x80 | ((code >> 12) & 0x3F)
    arena[end + 2] = 0x80 | ((code >> 6) & 0x3F)
    arena[end + 3] = 0x80 | (code & 0x3F)
    return 4


@jit
def _matches(data: Bytes, position: int, stop: int, lower: Bytes) -> bool:
    """Tell whether the lower-cased ASCII pattern stands at a position."""
    if position + lower.size > stop:
        return False
    for offset in range(lower.size):
        byte = data[position + offset]
        if 65 <= byte <= 90:
            byte += 32
        if byte != lower[offset]:
            return False
    return True


@jit
def _url_head(data: Bytes, position: int, stop: int, heads: tuple[Bytes, Bytes, Bytes]) -> int:
    """Return the length of "http://", "https://" or "www." at a position, or 0."""
    for head in heads:
        if _matches(data, position, stop, head):
            return head.size
    return 0


@jit
def _url_width(
    data: Bytes, position: int, stop: int, table: NDArray[np.uint32], heads: tuple[Bytes, Bytes, Bytes]
) -> tuple[int, int]:
    """Return the bytes of a URL at a position, 1 where there is none, negative where it is slow; and a missing page."""
    width = _url_head(data, position, stop, heads)
    if width == 0 or position + width >= stop:
        return 1, -1
    head = width
    slow = False
    while position + width < stop:
        code, step = np.int64(data[position + width]), 1
        if code >= 0x80:
            code, step = _decode(data, position + width)
            if not table[code] & BUILT:
                return 1, code
        if table[code] & SPACE:
            break
        if table[code] & SLOW:
            slow = True
        width += step
    if width == head:
        return 1, -1
    return (-width if slow else width), -1


@jit
def cut_words(
    data: Bytes,
    starts: Int64s,
    first: int,
    table: NDArray[np.uint32],
    heads: tuple[Bytes, Bytes, Bytes],
    normal: bool,
    slots: Words,
    hashes: Words,
    word_start: Int64s,
    arena: Bytes,
    counts: Int64s,
    ids: Int32s,
    ends: Int64s,
) -> tuple[int, int, int]:
    """Cut documents into words from document `first` on, and intern them.

    Args:
        data: valid UTF-8 of all documents.
        starts: int64 (documents + 1), where each begins in `data`.
        first: the document to begin with; `ends[first]` says where its ids go.
        table: uint32 by code point: lower case, and what it is (see `voxpop.corpus.code_points`).
        heads: the beginnings of a URL, lower case.
        normal: whether the documents are in NFC and lower case already, so that nothing is slow.
        slots, hashes, word_start, arena, counts: the interner; `counts[1]` gets the number of slow documents.
        ids: int32, written: the ids of each document, then -1; -2 alone for a slow document.
        ends: int64 (documents + 1), written: where each document's ids end.

    Returns:
        Why it stopped, at which document, and the code point whose page is missing.
    """
    for document in range(first, starts.size - 1):
        position, stop = starts[document], starts[document + 1]
        size = stop - position
        words = counts[0]
        room = size // 2 + 1
        if 2 * (words + room) > slots.size or words + room >= hashes.size:
            return GROW, document, 0
        if word_start[words] + size + size // 2 + 8 > arena.size:
            return GROW, document, 0
        begin = ends[document]
        out = begin
        head_end = tail = word_start[words]
        hashed = HASH_SEED
        slow = False
        while position < stop:
            byte = np.int64(data[position])
            width = 1
            if byte < 0x80:
                info = np.int64(table[byte])
                lower = info & CODE_POINT
                if (lower == 0x68 or lower == 0x77) and position + 4 < stop and data[position + 1] | 32 in (0x74, 0x77):
                    width, page = _url_width(data, position, stop, table, heads)
                    if page >= 0:
                        return MISSING_PAGE, document, page
                    if width < 0:
                        slow = True
                        width = -width
                    if width > 1:
                        info = 0
                if info & WORD:
                    arena[tail] = lower
                    tail += 1
                    hashed = (hashed ^ np.uint64(lower)) * HASH_STEP
                    position += 1
                    continue
            else:
                code, width = _decode(data, position)
                info = np.int64(table[code])
                if not info & BUILT:
                    return MISSING_PAGE, document, code
                if info & SLOW:
                    slow = True
                if info & WORD:
                    written = _encode(arena, tail, info & CODE_POINT)
                    for offset in range(written):
                        hashed = (hashed ^ np.uint64(arena[tail + offset])) * HASH_STEP
                    tail += written
            if slow and not normal:
                break
            if tail > head_end and not info & WORD:
                ids[out] = _intern(arena, tail - head_end, _mixed(hashed), slots, hashes, word_start, counts)
                out += 1
                head_end = tail = word_start[counts[0]]
                hashed = HASH_SEED
            position += width
        if slow and not normal:
            ids[begin] = -2
            ends[document + 1] = begin + 1
            counts[1] += 1
            continue
        if tail > head_end:
            ids[out] = _intern(arena, tail - head_end, _mixed(hashed), slots, hashes, word_start, counts)
            out += 1
        ids[out] = -1
        ends[document + 1] = out + 1
    return DONE, starts.size - 1, 0


@jit
def hash_strings(data: Bytes, starts: Int64s) -> Words:
    """Return a fixed 64-bit hash of each string's bytes: FNV-1a, mixed."""
    hashed = np.empty(starts.size - 1, np.uint64)
    for row in range(starts.size - 1):
        value = HASH_SEED
        for position in range(starts[row], starts[row + 1]):
            value = (value ^ np.uint64(data[position])) * HASH_STEP
        hashed[row] = _mixed(value)
    return hashed
