"""Kernels that put each user's documents in the order of what they hold."""

import numpy as np

from voxpop.arrays import Int32s, Int64s
from voxpop.kernels._jit import jit


@jit
def most_of_one_user(user_start: Int64s) -> int:
    """Return how many positions the user has who has most."""
    most = 0
    for user in range(user_start.size - 1):
        most = max(most, user_start[user + 1] - user_start[user])
    return most


@jit
def comes_before(tokens: Int32s, left: int, right: int) -> bool:
    """Say whether the document that begins at `left` comes before the one at `right`: token by token, shorter first."""
    # The -1 behind a document is smaller than any token.
    while tokens[left] == tokens[right] and tokens[left] >= 0:
        left += 1
        right += 1
    return bool(tokens[left] < tokens[right])


@jit
def sort_documents(tokens: Int32s, user_start: Int64s, first: int, last: int) -> None:
    """Sort the documents of each user by their tokens, in place.

    Args:
        tokens: int32, -1 after each document.
        user_start: int64 (users + 1).
        first: the first user whose documents are sorted.
        last: the end of those.
    """
    for user in range(first, last):
        begin = user_start[user]
        end = user_start[user + 1]
        starts = _starts(tokens, begin, end)
        if not _is_sorted(tokens, starts):
            _rewrite(tokens, begin, end, _merge_sorted(tokens, starts))


@jit
def _starts(tokens: Int32s, begin: int, end: int) -> Int64s:
    """Return where the documents of one user begin."""
    count = 0
    for position in range(begin, end):
        count += tokens[position] < 0
    starts = np.empty(count, np.int64)
    number = 0
    fresh = True
    for position in range(begin, end):
        if fresh:
            starts[number] = position
            number += 1
        fresh = tokens[position] < 0
    return starts


@jit
def _is_sorted(tokens: Int32s, starts: Int64s) -> bool:
    for number in range(1, starts.size):
        if comes_before(tokens, starts[number], starts[number - 1]):
            return False
    return True


@jit
def _merge_sorted(tokens: Int32s, starts: Int64s) -> Int64s:
    """Sort documents by merging runs of twice the size each time."""
    merged = np.empty_like(starts)
    size = 1
    while size < starts.size:
        for begin in range(0, starts.size, 2 * size):
            middle = min(begin + size, starts.size)
            end = min(begin + 2 * size, starts.size)
            left = begin
            right = middle
            for place in range(begin, end):
                # The left one unless the right one is smaller: equal documents stay as they came.
                if left < middle and (right == end or not comes_before(tokens, starts[right], starts[left])):
                    merged[place] = starts[left]
                    left += 1
                else:
                    merged[place] = starts[right]
                    right += 1
        starts, merged = merged, starts
        size *= 2
    return starts


@jit
def _rewrite(tokens: Int32s, begin: int, end: int, starts: Int64s) -> None:
    """Lay the documents of one user out in the order of `starts`."""
    copy = tokens[begin:end].copy()
    place = begin
    for number in range(starts.size):
        position = starts[number] - begin
        while copy[position] >= 0:
            tokens[place] = copy[position]
            place += 1
            position += 1
        tokens[place] = -1
        place += 1
