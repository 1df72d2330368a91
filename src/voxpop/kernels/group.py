"""Kernels that group documents by user and replace ids with their final names."""

import numpy as np

from voxpop.kernels._jit import jit
from voxpop.kernels.arrays import Bytes, Int32s, Int64s


@jit
def rename(ids: Int32s, names: Int32s, target: Int32s) -> None:
    """Write `names[id]` for every nonnegative id, and copy negative ids. `target` may be `ids` itself."""
    for position in range(ids.size):
        old = ids[position]
        target[position] = names[old] if old >= 0 else old


@jit
def sizes_by_user(codes: Int32s, ends: Int64s, user_start: Int64s) -> None:
    """Compute the start of each user's tokens from the users and the ends of documents.

    Args:
        codes: int32 (documents), the user of each document.
        ends: int64 (documents + 1). The tokens of document d are at positions `ends[d]` to `ends[d + 1]`.
        user_start: int64 (users + 1), filled with zeros; overwritten by the start of each user's tokens.
    """
    for document in range(codes.size):
        # First store the sizes, shifted by one position. The running sum below converts them to starts.
        user_start[codes[document] + 1] += ends[document + 1] - ends[document]
    for user in range(1, user_start.size):
        user_start[user] += user_start[user - 1]


@jit
def group_items(items: Int32s, codes: Int32s, user_start: Int64s) -> Int32s:
    """Return the items grouped by user, in their original order, without negative items.

    Args:
        items: int32 (rows), the item of each row, or -1.
        codes: int32 (rows), the user of each row.
        user_start: int64 (users + 1), filled with zeros; overwritten by the start of each user's items.
    """
    grouped = True
    for row in range(items.size):
        user_start[codes[row] + 1] += items[row] >= 0
        grouped = grouped and items[row] >= 0 and codes[row] >= codes[max(row - 1, 0)]
    for user in range(1, user_start.size):
        user_start[user] += user_start[user - 1]
    if grouped:
        return items
    target = np.empty(user_start[-1], np.int32)
    # (users,), the next free position of each user.
    free = user_start[:-1].copy()
    for row in range(items.size):
        if items[row] >= 0:
            target[free[codes[row]]] = items[row]
            free[codes[row]] += 1
    return target


@jit
def gather_documents(tokens: Int32s, codes: Int32s, ends: Int64s, user_start: Int64s, target: Int32s) -> None:
    """Copy documents into `target`, grouped by user and otherwise in their original order."""
    # (users,), the next free position of each user.
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
    """Write the nonnegative codes of each list, followed by -1, and the position where each list ends."""
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
    """Copy the slices `source[starts[j]:starts[j + 1]]` into `target`, concatenated in the given order."""
    place = 0
    for number in range(order.size):
        for position in range(starts[order[number]], starts[order[number] + 1]):
            target[place] = source[position]
            place += 1
