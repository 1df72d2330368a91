"""Kernels that lay documents out user by user and give ids their final names."""

import numpy as np

from voxpop.kernels._jit import jit
from voxpop.kernels.arrays import Bytes, Int32s, Int64s
from voxpop.kernels.numbering import FIRST_SLOTS, slot_of, slots_for, stretched


@jit
def rename(ids: Int32s, names: Int32s, target: Int32s) -> None:
    """Write `names[id]` for every id, and keep negative ids; `target` may be `ids` itself."""
    for position in range(ids.size):
        old = ids[position]
        target[position] = names[old] if old >= 0 else old


@jit
def number_values(values: Int64s, codes: Int32s) -> Int64s:
    """Number distinct values by first appearance.

    Args:
        values: int64.
        codes: int32 of the same size, written: the number of each value.

    Returns:
        The distinct values, by number.
    """
    distinct = np.zeros(FIRST_SLOTS // 2, np.int64)
    slots = slots_for(distinct, 0, FIRST_SLOTS)
    found = 0
    for row in range(values.size):
        # Rows of one user often lie together: no look at the table then.
        if row > 0 and values[row] == values[row - 1]:
            codes[row] = codes[row - 1]
            continue
        if found == distinct.size:
            distinct = stretched(distinct, 4 * found)
            # Twice as many slots as the 4 * found keys there is room for now.
            slots = slots_for(distinct, found, 8 * found)
        slot = slot_of(values[row], distinct, slots)
        if slots[slot] < 0:
            slots[slot], distinct[found] = found, values[row]
            found += 1
        codes[row] = slots[slot]
    return distinct[:found]


@jit
def sizes_by_user(codes: Int32s, ends: Int64s, user_start: Int64s) -> None:
    """Write where each user's tokens start, from the owner of each document and where documents end.

    Args:
        codes: int32 (documents), the user of each.
        ends: int64 (documents + 1), `ends[d]` to `ends[d + 1]` are the tokens of document d.
        user_start: int64 (users + 1), zeros; written.
    """
    for document in range(codes.size):
        # Sizes first, shifted by one; the running sum below turns them into beginnings.
        user_start[codes[document] + 1] += ends[document + 1] - ends[document]
    for user in range(1, user_start.size):
        user_start[user] += user_start[user - 1]


@jit
def gather_documents(tokens: Int32s, codes: Int32s, ends: Int64s, user_start: Int64s, target: Int32s) -> None:
    """Copy documents user by user, in their order, into `target`."""
    # (users,), the next free place of each.
    free = user_start[:-1].copy()
    for document in range(codes.size):
        user = codes[document]
        place = free[user]
        for position in range(ends[document], ends[document + 1]):
            target[place] = tokens[position]
            place += 1
        free[user] = place


@jit
def lay_documents(codes: Int32s, list_start: Int64s, target: Int32s, ends: Int64s) -> None:
    """Write each list of codes, those below 0 left out, followed by -1, and where it ends."""
    out = 0
    for document in range(list_start.size - 1):
        for position in range(list_start[document], list_start[document + 1]):
            if codes[position] >= 0:
                target[out] = codes[position]
                out += 1
        target[out] = -1
        out += 1
        ends[document + 1] = out


@jit
def mark_used(ids: Int32s, used: Bytes) -> None:
    """Set `used[id]` for every id that occurs."""
    for position in range(ids.size):
        if ids[position] >= 0:
            used[ids[position]] = 1


@jit
def gather_slices(source: Int32s, starts: Int64s, order: Int64s, target: Int32s) -> None:
    """Copy the slices `source[starts[j]:starts[j + 1]]` in the order given, one behind the other, into `target`."""
    place = 0
    for number in range(order.size):
        for position in range(starts[order[number]], starts[order[number] + 1]):
            target[place] = source[position]
            place += 1


# Order of documents: the documents of each user, sorted by their content.


@jit
def most_of_one_user(user_start: Int64s) -> int:
    """Return the largest number of positions of one user."""
    most = 0
    for user in range(user_start.size - 1):
        most = max(most, user_start[user + 1] - user_start[user])
    return most


@jit
def comes_before(tokens: Int32s, left: int, right: int) -> bool:
    """Return whether the document at `left` sorts before the one at `right`: token by token, shorter first."""
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
