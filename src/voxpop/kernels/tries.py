"""Kernels that list the candidate words of users, and measure the prefixes that words share."""

import numpy as np

from voxpop.kernels._jit import jit
from voxpop.kernels.arrays import Bytes, Int32s, Int64s

CONTINUES = 0x80  # the two high bits of every byte after the first of a UTF-8 character are 10


@jit
def measure_strings(data: Bytes, starts: Int64s, characters: bool, sizes: Int32s, shared: Int32s) -> None:
    """Measure sorted distinct strings, in characters or in bytes.

    Args:
        data: The concatenated UTF-8 of all strings.
        starts: int64 (strings + 1), where each string begins.
        characters: Whether to count characters rather than bytes.
        sizes: int32 (strings), overwritten by the length of each string.
        shared: int32 (strings), overwritten by the length of the prefix that each string shares with the previous
            string.
    """
    for word in range(starts.size - 1):
        begin, end = starts[word], starts[word + 1]
        size = 0
        for place in range(begin, end):
            # Count a character at its first byte.
            if not characters or (data[place] & 0xC0) != CONTINUES:
                size += 1
        sizes[word] = size
        shared[word] = 0
        if word == 0:
            continue
        before = starts[word - 1]
        most = min(begin - before, end - begin)
        common = 0
        same = 0
        while same < most and data[before + same] == data[begin + same]:
            if not characters or (data[begin + same] & 0xC0) != CONTINUES:
                common += 1
            same += 1
        # If only the first bytes of a character agree, the character is not shared.
        if characters and same < most and (data[begin + same] & 0xC0) == CONTINUES:
            common -= 1
        shared[word] = common


@jit
def hold_all(words: Int32s, user_start: Int64s, fits: Bytes, held: Int32s, held_start: Int64s) -> int:
    """List each user's words that fit, in sorted order and with repetitions.

    Args:
        words: int32, the words of all users, concatenated; negative for no word.
        user_start: int64 (users + 1), where each user's words begin.
        fits: uint8 (distinct words), nonzero for words that may receive votes.
        held: int32 (words), overwritten from the front by the words that fit.
        held_start: int64 (users + 1), overwritten by the first position of each user's words in `held`.

    Returns:
        The number of words written.
    """
    end = 0
    for user in range(user_start.size - 1):
        held_start[user] = end
        for position in range(user_start[user], user_start[user + 1]):
            word = words[position]
            if word >= 0 and fits[word] != 0:
                held[end] = word
                end += 1
        if end - held_start[user] > 1:
            # Sort the numbers, which are in the order of the words' symbols, so that equal words are adjacent.
            held[held_start[user] : end] = np.sort(held[held_start[user] : end])
    held_start[user_start.size - 1] = end
    return end


@jit
def keep_most_frequent(held: Int32s, held_start: Int64s) -> int:
    """Keep each user's most frequent word, in place and from the front. A tie is decided by the order of the words.

    Args:
        held: int32, as written by `hold_all`; overwritten.
        held_start: int64 (users + 1); overwritten.

    Returns:
        The number of users who have a word.
    """
    end = 0
    begin = held_start[0]
    for user in range(held_start.size - 1):
        stop = held_start[user + 1]
        held_start[user] = end
        best, most = np.int32(-1), 0
        position = begin
        while position < stop:
            word, first = held[position], position
            while position < stop and held[position] == word:
                position += 1
            # A strict inequality selects the first of several most frequent words, as in every engine.
            if position - first > most:
                best, most = word, position - first
        if most > 0:
            held[end] = best
            end += 1
        begin = stop
    held_start[held_start.size - 1] = end
    return end
