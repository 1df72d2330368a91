"""Kernels of the baselines for the number of times that a user has each item, and for greedy shares."""

import numpy as np
from numba import njit

from voxpop.kernels.arrays import Int32s, Int64s


@njit(nogil=True)
def count_times(tokens: Int32s, user_start: Int64s, items: Int32s, starts: Int64s, scratch: Int32s) -> Int32s:
    """Count the occurrences of the distinct items of each user.

    Args:
        tokens: int32, one id per token. Negative ids are skipped.
        user_start: int64 (users + 1), where each user's tokens begin.
        items: int32, the distinct items of all users.
        starts: int64 (users + 1), where each user's items begin.
        scratch: int32 (vocabulary), zeros before and after the call.

    Returns:
        int32, as long as `items`.
    """
    times = np.empty(items.size, np.int32)
    for user in range(starts.size - 1):
        for position in range(user_start[user], user_start[user + 1]):
            if tokens[position] >= 0:
                scratch[tokens[position]] += 1
        for pair in range(starts[user], starts[user + 1]):
            # Each count is read once and cleared, so that the scratch array is zero for the next user.
            times[pair] = scratch[items[pair]]
            scratch[items[pair]] = 0
    return times


@njit(nogil=True)
def pour_in_order(histogram: Int64s, items: Int32s, starts: Int64s, users: Int64s, cutoff: int, unit: int) -> None:
    """Let each user fill its items to `cutoff`, in their order, until the user has spent one `unit`.

    Args:
        histogram: int64 (vocabulary), changed in place, nowhere above `cutoff`.
        items: int32, the distinct items of all users, each user's items in the order in which they get weight.
        starts: int64 (users + 1), where each user's items begin.
        users: int64, the order of the users.
        cutoff: int, the weight above which items receive no more weight.
        unit: int, the total weight that one user gives.
    """
    for user in users:
        left = unit
        for pair in range(starts[user], starts[user + 1]):
            if left == 0:
                break
            # The kernel is greedy, because the weight of an item depends on all items before it. It is only for
            # comparisons.
            poured = min(left, cutoff - histogram[items[pair]])
            histogram[items[pair]] += poured
            left -= poured
