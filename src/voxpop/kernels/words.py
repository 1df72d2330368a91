"""Kernels that cut UTF-8 text into words and give every distinct word an id, in one pass over the bytes.

The interner is three arrays, held by `voxpop.reading.words`:

* arena: uint64, the lower-cased bytes of all words, each word filled up with zeros to whole 8 bytes;
* word_start: int64 by id (one more), where each word begins in the arena;
* slots: uint64, pairs for a power of two of places: the word itself where it has at most 8 bytes, else its hash; and
  its id + 1, with the top bit set for a hash. A second number of 0 is an empty place.

So the usual word is compared byte for byte by one look at one cache line, and no hash is ever trusted. `counts[0]` is
the number of words, `counts[1]` that of slow documents.
"""

from typing import Any

import numpy as np

from voxpop.kernels._jit import jit
from voxpop.kernels.arrays import Bytes, Int32s, Int64s, Uint32s, Uint64s

Whole = Any  # a Python int without the JIT, an int64 with it

DONE, GROW, MISSING_PAGE = 0, 1, 2
WORD, ADDRESS, SLOW, IGNORED, BUILT = 1 << 21, 1 << 22, 1 << 23, 1 << 24, 1 << 25
CODE_POINT = (1 << 21) - 1

HASH_SEED = np.uint64(0x9E3779B97F4A7C15)
HASH_STEP = np.uint64(0x100000001B3)
LONG = np.uint64(1 << 63)
APOSTROPHE = np.uint64(0x27)
ID = np.uint64(0x00000000FFFFFFFF)
MIX_1 = np.uint64(0xFF51AFD7ED558CCD)
MIX_2 = np.uint64(0xC4CEB9FE1A85EC53)
HALF = np.uint64(33)
ONE = np.uint64(1)
NONE = np.uint64(0)
EIGHT = np.uint64(8)
FULL = np.uint64(64)


@jit
def _mixed(value: np.uint64) -> np.uint64:
    """Spread the bits of a hash."""
    # The finaliser of MurmurHash3: every bit of the input moves about half of the output's.
    value = (value ^ (value >> HALF)) * MIX_1
    value = (value ^ (value >> HALF)) * MIX_2
    return value ^ (value >> HALF)


@jit
def _hashed(arena: Uint64s, begin: int, end: int) -> np.uint64:
    """Return the hash of a word of the arena."""
    value = HASH_SEED
    for place in range(begin, end):
        value = _mixed(value ^ arena[place])
    return value


@jit
def _equal(arena: Uint64s, first: int, second: int, size: int) -> bool:
    """Return whether two words of the arena, each of `size` 8-byte units, are equal."""
    for offset in range(size):
        if arena[first + offset] != arena[second + offset]:
            return False
    return True


@jit
def _intern(arena: Uint64s, tail: int, slots: Uint64s, word_start: Int64s, counts: Int64s) -> Whole:
    """Return the id of the word between the end of the last word and `tail`; keep it only if it is new."""
    words = counts[0]
    end = word_start[words]
    size = tail - end
    hashed = _hashed(arena, end, tail)
    # A word of up to 8 bytes is its own key, so equality is exact without a look at the arena.
    key = arena[end] if size == 1 else hashed
    flag = NONE if size == 1 else LONG
    mask = np.uint64(slots.size // 2 - 1)
    slot = hashed & mask
    while True:
        entry = slots[ONE + slot + slot]
        if entry == NONE:
            slots[slot + slot] = key
            slots[ONE + slot + slot] = np.uint64(words + 1) | flag
            word_start[words + 1] = tail
            counts[0] = words + 1
            return words
        # A long word whose hash equals a short word's bytes is told apart by the top bit of the entry.
        if slots[slot + slot] == key and entry & LONG == flag:
            found = np.int64(entry & ID) - 1
            if size == 1:
                return found
            begin = word_start[found]
            # Equal hashes prove nothing: the words themselves are compared.
            if word_start[found + 1] - begin == size and _equal(arena, begin, end, size):
                return found
        slot = (slot + ONE) & mask


@jit
def refill(arena: Uint64s, word_start: Int64s, words: int, slots: Uint64s) -> None:
    """Fill empty slots with all words."""
    mask = np.uint64(slots.size // 2 - 1)
    for word in range(words):
        begin, end = word_start[word], word_start[word + 1]
        hashed = _hashed(arena, begin, end)
        slot = hashed & mask
        while slots[ONE + slot + slot] != NONE:
            slot = (slot + ONE) & mask
        slots[slot + slot] = arena[begin] if end - begin == 1 else hashed
        slots[ONE + slot + slot] = np.uint64(word + 1) | (NONE if end - begin == 1 else LONG)


@jit
def unpack(arena: Uint64s, word_start: Int64s, words: int, data: Bytes, starts: Int64s) -> None:
    """Write the words without their filling: their bytes, and where each begins (one more)."""
    out = 0
    for word in range(words):
        for place in range(word_start[word], word_start[word + 1]):
            left = arena[place]
            while left != NONE:
                data[out] = left & np.uint64(0xFF)
                left >>= EIGHT
                out += 1
        starts[word + 1] = out


@jit
def _decode(data: Bytes, position: Whole) -> tuple[Whole, Whole]:
    """Return the code point of valid UTF-8 at a position, and its number of bytes."""
    first = np.int64(data[position])
    if first < 0xE0:
        # 110xxxxx 10xxxxxx: five and six bits.
        return ((first & 0x1F) << 6) | (np.int64(data[position + 1]) & 0x3F), 2
    second = np.int64(data[position + 1]) & 0x3F
    third = np.int64(data[position + 2]) & 0x3F
    # 1110xxxx and two bytes of six bits; below, 11110xxx and three.
    if first < 0xF0:
        return ((first & 0x0F) << 12) | (second << 6) | third, 3
    fourth = np.int64(data[position + 3]) & 0x3F
    return ((first & 0x07) << 18) | (second << 12) | (third << 6) | fourth, 4


@jit
def _packed(code: Whole) -> tuple[np.uint64, Whole]:
    """Return the UTF-8 bytes of a code point, first byte lowest, and their number."""
    if code < 0x80:
        return np.uint64(code), 1
    last = 0x80 | (code & 0x3F)
    if code < 0x800:
        return np.uint64(0xC0 | (code >> 6) | last << 8), 2
    before = 0x80 | ((code >> 6) & 0x3F)
    if code < 0x10000:
        return np.uint64(0xE0 | (code >> 12) | before << 8 | last << 16), 3
    return np.uint64(0xF0 | (code >> 18) | (0x80 | ((code >> 12) & 0x3F)) << 8 | before << 16 | last << 24), 4


@jit
def _matches(data: Bytes, position: Whole, stop: Whole, lower: Bytes) -> bool:
    """Return whether the lower-cased ASCII pattern matches at a position."""
    if position + lower.size > stop:
        return False
    for offset in range(lower.size):
        byte = data[position + offset]
        # A to Z: 32 away from their lower case.
        if 65 <= byte <= 90:
            byte += 32
        if byte != lower[offset]:
            return False
    return True


@jit
def _url_head(data: Bytes, position: Whole, stop: Whole, heads: tuple[Bytes, Bytes, Bytes]) -> Whole:
    """Return the length of "http://", "https://" or "www." at a position, or 0."""
    for head in heads:
        if _matches(data, position, stop, head):
            return head.size
    return 0


@jit
def _bracketed(data: Bytes, position: Whole, stop: Whole, table: Uint32s) -> Whole:
    """Return the length of a pair of brackets in a URL, 0 if it is not closed, and -1 for the slow path."""
    # ( and ), or [ and ].
    closing = 0x29 if data[position] == 0x28 else 0x5D
    for place in range(position + 1, stop):
        byte = data[place]
        if byte == closing:
            return place + 1 - position
        if byte >= 0x80:
            return -1
        if not table[byte] & ADDRESS:
            return 0
    return 0


@jit
def _url_width(
    data: Bytes, position: Whole, stop: Whole, table: Uint32s, heads: tuple[Bytes, Bytes, Bytes]
) -> tuple[Whole, Whole]:
    """Return the length in bytes of a URL at a position, 1 for none, -1 for the slow path; and a missing page."""
    head = width = _url_head(data, position, stop, heads)
    if width == 0:
        return 1, -1
    while position + width < stop:
        code, step = np.int64(data[position + width]), np.int64(1)
        if code >= 0x80:
            code, step = _decode(data, position + width)
            if not table[code] & BUILT:
                return 1, code
        info = np.int64(table[code])
        if info & (ADDRESS | SLOW) != ADDRESS:
            if info & SLOW:
                return -1, -1
            if code != 0x28 and code != 0x5B:
                break
            step = np.int64(_bracketed(data, position + width, stop, table))
            if step < 0:
                return -1, -1
            if step == 0:
                break
        width += step
    return (1 if width == head else width), -1


@jit
def _is_between(data: Bytes, position: Whole, begin: Whole) -> bool:
    """Return whether nothing precedes a position that can be part of a URL."""
    return bool(position == begin or data[position - 1] >= 0x80 or data[position - 1] == 0x20)


@jit
def _last(arena: Uint64s, head: Whole, tail: Whole, key: np.uint64, shift: np.uint64) -> np.uint64:
    """Return the last byte of the word that is being put together, 0 where it has none."""
    if shift != NONE:
        return key >> (shift - EIGHT)
    return arena[tail - 1] >> (FULL - EIGHT) if tail > head else NONE


@jit
def _pushed(arena: Uint64s, tail: Whole, key: np.uint64, shift: np.uint64, byte: np.uint64) -> Any:
    """Put one more byte behind a word, and return where its eights end, the eight begun and its bits."""
    # Eight bytes to a number, the first byte lowest.
    key |= byte << shift
    shift += EIGHT
    if shift < FULL:
        return tail, key, shift
    arena[tail] = key
    return tail + 1, NONE, NONE


@jit
def _finished(arena: Uint64s, head: Whole, tail: Whole, key: np.uint64, shift: np.uint64) -> Whole:
    """Write the rest of a word, without an apostrophe at its end, and return where it ends."""
    if _last(arena, head, tail, key, shift) == APOSTROPHE:
        if shift == NONE:
            tail -= 1
            key, shift = np.uint64(arena[tail]), FULL
        shift -= EIGHT
        key &= (ONE << shift) - ONE
    if shift != NONE:
        arena[tail] = key
        tail += 1
    return tail


@jit
def cut_words(
    data: Bytes,
    starts: Int64s,
    first: int,
    letters: Bytes,
    table: Uint32s,
    heads: tuple[Bytes, Bytes, Bytes],
    slots: Uint64s,
    word_start: Int64s,
    arena: Uint64s,
    counts: Int64s,
    ids: Int32s,
    ends: Int64s,
) -> tuple[Whole, Whole, Whole]:
    """Cut documents into words from document `first` on, and intern them.

    Args:
        data: valid UTF-8 of all documents.
        starts: int64 (documents + 1), where each begins in `data`.
        first: the document to begin with; `ends[first]` is the position of its first id.
        letters: uint8 by byte: the lower case of an ASCII letter or digit, 0 for all else. Documents that are words
            and spaces have every byte but the space here.
        table: uint32 by code point: lower case (of every apostrophe '), and its class (see
            `voxpop.reading.words`).
        heads: the beginnings of a URL, lower case.
        slots: the interner's, as `word_start`, `arena` and `counts`.
        word_start: see above.
        arena: see above.
        counts: see above.
        ids: int32, written: the ids of each document, then -1; only -2 for a slow document.
        ends: int64 (documents + 1), written: where each document's ids end.

    Returns:
        Why it stopped, at which document, and the code point whose page is missing.
    """
    for document in range(first, starts.size - 1):
        position, stop = starts[document], starts[document + 1]
        size = stop - position
        words = counts[0]
        # A document of n bytes has at most n / 2 + 1 words. Two numbers a slot, so a quarter of `slots` is half full.
        if 4 * (words + size // 2 + 1) > slots.size or words + size // 2 + 1 >= word_start.size - 1:
            return GROW, document, 0
        if word_start[words] + size + 16 > arena.size:
            return GROW, document, 0
        begin = ends[document]
        out = begin
        head = tail = word_start[words]
        key = NONE
        shift = NONE
        slow = False
        while position < stop:
            byte = data[position]
            lower = letters[byte]
            if lower != 0:
                width = 1
                # h or w: only then may a URL begin, "ht" or "ww" behind it.
                if (lower == 0x68 or lower == 0x77) and position + 4 < stop:
                    second = data[position + 1] | 32
                    if (second == 0x74 or second == 0x77) and data[position + 2] | 32 == second:
                        width, page = _url_width(data, position, stop, table, heads)
                        if page >= 0:
                            return MISSING_PAGE, document, page
                if width == 1:
                    tail, key, shift = _pushed(arena, tail, key, shift, lower)
                    position += 1
                    continue
                if width < 0:
                    slow = True
                    break
                position += width
                mark = NONE
            elif byte < 0x80:
                # A quotation mark behind a Hebrew letter (0xD7 and one byte) may belong to the word.
                if byte == 0x22 and position >= starts[document] + 2 and data[position - 2] == 0xD7:
                    slow = True
                    break
                position += 1
                mark = np.uint64(byte)
            else:
                code, width = _decode(data, position)
                info = np.int64(table[code])
                if not info & BUILT:
                    return MISSING_PAGE, document, code
                # An invisible character between words is skipped, such as that behind a heart. Elsewhere, what it
                # separates may become one word or address.
                if info & IGNORED and shift == NONE and tail == head and _is_between(data, position, starts[document]):
                    position += width
                    continue
                if info & SLOW:
                    slow = True
                    break
                position += width
                if info & WORD:
                    left, count = _packed(info & CODE_POINT)
                    for _ in range(count):
                        tail, key, shift = _pushed(arena, tail, key, shift, left & np.uint64(0xFF))
                        left >>= EIGHT
                    continue
                mark = np.uint64(info & CODE_POINT)
            if mark == APOSTROPHE:
                last = _last(arena, head, tail, key, shift)
                if last != NONE and last != APOSTROPHE:  # kept where the word goes on
                    tail, key, shift = _pushed(arena, tail, key, shift, APOSTROPHE)
                    continue
            tail = _finished(arena, head, tail, key, shift)
            key = shift = NONE
            if tail > head:
                ids[out] = _intern(arena, tail, slots, word_start, counts)
                out += 1
                head = tail = word_start[counts[0]]
        if slow:
            # -2 requests the slow path; its ids written so far are overwritten by the next document.
            ids[begin] = -2
            ends[document + 1] = begin + 1
            counts[1] += 1
            continue
        tail = _finished(arena, head, tail, key, shift)
        if tail > head:
            ids[out] = _intern(arena, tail, slots, word_start, counts)
            out += 1
        ids[out] = -1
        ends[document + 1] = out + 1
    return DONE, starts.size - 1, 0


@jit
def hash_strings(data: Bytes, starts: Int64s) -> Uint64s:
    """Return a fixed 64-bit hash of each string's bytes: FNV-1a, mixed."""
    hashed = np.empty(starts.size - 1, np.uint64)
    for row in range(starts.size - 1):
        value = HASH_SEED
        for position in range(starts[row], starts[row + 1]):
            value = (value ^ np.uint64(data[position])) * HASH_STEP
        hashed[row] = _mixed(value)
    return hashed


# Quotes of CSV files: find a quote that is never closed.

QUOTE, NEWLINE, RETURN = np.uint8(34), np.uint8(10), np.uint8(13)
START, PLAIN, QUOTED, CLOSED, RETURNED = 0, 1, 2, 3, 4
"""At the start of a field; in one without quotes; in one with; behind its second quote; behind a carriage return."""
MODE, ROW, OPENED, END = 0, 1, 2, 3


@jit
def follow_quotes(data: Bytes, delimiter: Any, state: Int64s) -> Any:
    """Continue through a file, and return whether every quoted field is closed correctly.

    Args:
        data: the next bytes.
        delimiter: the byte between fields.
        state: int64 (4): where between quotes we are, the row, the row in which the last quoted field began, and where
            the last whole row of these bytes ends, 0 if none does; all 0 at the start of a file, and changed in place.

    Returns:
        Whether all is well so far; if not, the field that began in row `state[OPENED]` goes on behind its last quote.
    """
    mode, row, end = state[MODE], state[ROW], 0
    for place in range(data.size):
        byte = data[place]
        if mode == QUOTED:
            # Perhaps the end of the field; a second quote right behind it is one that is meant.
            if byte == QUOTE:
                mode = CLOSED
            continue
        if mode == RETURNED:
            mode = START
            if byte == NEWLINE:
                end = place + 1
                continue
            end = place
        if byte == QUOTE and mode == START:
            mode = QUOTED
            state[OPENED] = row
        elif byte == QUOTE and mode == CLOSED:
            mode = QUOTED
        elif byte == delimiter:
            mode = START
        elif byte == NEWLINE:
            mode = START
            row += 1
            end = place + 1
        elif byte == RETURN:
            mode = RETURNED
            row += 1
        # Behind a closing quote comes a delimiter, the end of a row, or another quote; nothing else.
        elif mode == CLOSED:
            return False
        else:
            mode = PLAIN
    state[MODE], state[ROW], state[END] = mode, row, end
    return True
