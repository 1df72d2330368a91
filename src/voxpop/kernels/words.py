"""Kernels that cut UTF-8 text into words and give every distinct word an id, in one pass over the bytes.

The interner consists of three arrays in `voxpop.reading.words`:

* arena: uint64, the lower-cased bytes of all words, each word padded with zeros to a multiple of 8 bytes;
* word_start: int64 by id (with one additional entry), the position where each word begins in the arena;
* slots: uint64, pairs of numbers; the number of pairs is a power of two. The first number is the word itself if it has
  at most 8 bytes, and otherwise its hash. The second number is the word's id + 1, with the top bit set for a hash, or 0
  for an empty slot.

Therefore comparing all bytes of a typical word requires one read of one cache line. Words with equal hashes are always
compared in full. `counts[0]` is the number of words, and `counts[1]` is the number of slow documents.
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
    # This is the finaliser of MurmurHash3, which makes every input bit change about half of the output bits.
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
    """Return whether two words in the arena, each of `size` 8-byte units, are equal."""
    for offset in range(size):
        if arena[first + offset] != arena[second + offset]:
            return False
    return True


@jit
def _intern(arena: Uint64s, tail: int, slots: Uint64s, word_start: Int64s, counts: Int64s) -> Whole:
    """Return the id of the word between the end of the last word and `tail`. Add the word if it is new."""
    words = counts[0]
    end = word_start[words]
    size = tail - end
    hashed = _hashed(arena, end, tail)
    # A word of up to 8 bytes is its own key, so equality is exact without reading the arena.
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
        # The top bit of the entry distinguishes a long word from a short word with bytes equal to the long word's hash.
        if slots[slot + slot] == key and entry & LONG == flag:
            found = np.int64(entry & ID) - 1
            if size == 1:
                return found
            begin = word_start[found]
            # Different words can have the same hash, so compare the words themselves.
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
    """Write the bytes of the words without padding, and the start of each word (with one additional entry)."""
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
        # The bytes 110xxxxx 10xxxxxx contain five and six bits.
        return ((first & 0x1F) << 6) | (np.int64(data[position + 1]) & 0x3F), 2
    second = np.int64(data[position + 1]) & 0x3F
    third = np.int64(data[position + 2]) & 0x3F
    # The byte 1110xxxx is followed by two bytes with six bits each. The case below is 11110xxx with three such bytes.
    if first < 0xF0:
        return ((first & 0x0F) << 12) | (second << 6) | third, 3
    fourth = np.int64(data[position + 3]) & 0x3F
    return ((first & 0x07) << 18) | (second << 12) | (third << 6) | fourth, 4


@jit
def _packed(code: Whole) -> tuple[np.uint64, Whole]:
    """Return the UTF-8 bytes of a code point as one number (first byte in the lowest bits), and the number of bytes."""
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
        # The lower case of a letter from A to Z is 32 higher.
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
    """Return the length of a bracketed part of a URL, 0 if the bracket is not closed, or -1 for the slow path."""
    # The brackets are ( and ), or [ and ].
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
    """Return the length of a URL in bytes (1 for no URL, -1 for the slow path), and a missing page of the table."""
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
    """Return whether the preceding byte, if there is one, cannot be part of a URL."""
    return bool(position == begin or data[position - 1] >= 0x80 or data[position - 1] == 0x20)


@jit
def _last(arena: Uint64s, head: Whole, tail: Whole, key: np.uint64, shift: np.uint64) -> np.uint64:
    """Return the last byte of the current word, or 0 for an empty word."""
    if shift != NONE:
        return key >> (shift - EIGHT)
    return arena[tail - 1] >> (FULL - EIGHT) if tail > head else NONE


@jit
def _pushed(arena: Uint64s, tail: Whole, key: np.uint64, shift: np.uint64, byte: np.uint64) -> Any:
    """Append one byte to a word.

    Return the end of the word's complete 8-byte units, the current unit, and its number of bits.
    """
    # A number contains eight bytes, with the first byte in the lowest bits.
    key |= byte << shift
    shift += EIGHT
    if shift < FULL:
        return tail, key, shift
    arena[tail] = key
    return tail + 1, NONE, NONE


@jit
def _finished(arena: Uint64s, head: Whole, tail: Whole, key: np.uint64, shift: np.uint64) -> Whole:
    """Write the rest of a word, without an apostrophe at its end, and return the end of the word."""
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
    """Cut documents into words, starting with document `first`, and intern the words.

    Args:
        data: The valid UTF-8 of all documents.
        starts: int64 (documents + 1), where each document begins in `data`.
        first: The document to begin with. The position of its first id is `ends[first]`.
        letters: uint8 by byte, the lower case of an ASCII letter or digit, and 0 for other bytes. In documents that
            consist of words and spaces, every byte except the space is treated as a letter.
        table: uint32 by code point, the lower case (every kind of apostrophe becomes ') and the class (see
            `voxpop.reading.words`).
        heads: The possible beginnings of a URL, in lower case.
        slots: The slots of the interner; see the module.
        word_start: The starts of the interner; see the module.
        arena: The arena of the interner; see the module.
        counts: The counts of the interner; see the module.
        ids: int32, overwritten by the ids of each document, followed by -1. A document for the slow path contains only
            -2.
        ends: int64 (documents + 1), overwritten by the end of each document's ids.

    Returns:
        The reason for stopping, the document, and the code point of a missing page.
    """
    for document in range(first, starts.size - 1):
        position, stop = starts[document], starts[document + 1]
        size = stop - position
        words = counts[0]
        # A document of n bytes has at most n / 2 + 1 words. Each slot takes two numbers of `slots`, so the table is
        # half full at `slots.size / 4` words.
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
                # A URL can begin only with h or w, followed by "ht" or "ww".
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
                # A quotation mark after a Hebrew letter (0xD7 and a second byte) may belong to the word.
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
                # An invisible character between words, such as the character after a heart symbol, is skipped.
                # Elsewhere, the parts on both sides of such a character may form one word or address.
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
                if last != NONE and last != APOSTROPHE:  # kept if the word continues
                    tail, key, shift = _pushed(arena, tail, key, shift, APOSTROPHE)
                    continue
            tail = _finished(arena, head, tail, key, shift)
            key = shift = NONE
            if tail > head:
                ids[out] = _intern(arena, tail, slots, word_start, counts)
                out += 1
                head = tail = word_start[counts[0]]
        if slow:
            # -2 requests the slow path. The next document overwrites the ids written so far.
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
    """Return a fixed 64-bit hash of each string's bytes, which is FNV-1a with a final mix."""
    hashed = np.empty(starts.size - 1, np.uint64)
    for row in range(starts.size - 1):
        value = HASH_SEED
        for position in range(starts[row], starts[row + 1]):
            value = (value ^ np.uint64(data[position])) * HASH_STEP
        hashed[row] = _mixed(value)
    return hashed


# Find a quoted field of a CSV file that is not closed correctly.

QUOTE, NEWLINE, RETURN = np.uint8(34), np.uint8(10), np.uint8(13)
START, PLAIN, QUOTED, CLOSED, RETURNED = 0, 1, 2, 3, 4
"""The states of the parser: at the start of a field, in an unquoted field, in a quoted field, after a quote in a quoted
field, and after a carriage return.
"""
MODE, ROW, OPENED, END = 0, 1, 2, 3


@jit
def follow_quotes(data: Bytes, delimiter: Any, state: Int64s) -> Any:
    """Parse the next bytes of a file, and return whether every quoted field is closed correctly.

    Args:
        data: The next bytes.
        delimiter: The byte between fields.
        state: int64 (4), overwritten: the state of the parser, the row, the first row of the last quoted field, and the
            position where the last whole row of these bytes ends (or 0). All are 0 at the start of a file.

    Returns:
        Whether no error has been found so far. If there is an error, the field that began in row `state[OPENED]`
        continues after its closing quote.
    """
    mode, row, end = state[MODE], state[ROW], 0
    for place in range(data.size):
        byte = data[place]
        if mode == QUOTED:
            # This may be the end of the field. If a second quote follows, both represent one quote character.
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
        # A closing quote must be followed by a delimiter, the end of a row, or another quote.
        elif mode == CLOSED:
            return False
        else:
            mode = PLAIN
    state[MODE], state[ROW], state[END] = mode, row, end
    return True
