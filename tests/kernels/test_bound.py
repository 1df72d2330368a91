"""Tests that compare the bounding kernels with the reference implementation."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from naive import weighing as naive
from voxpop.kernels.weigh import gather_distinct, keep_smallest, pairs_over_limit

VOCABULARY = 12
USERS = st.lists(st.lists(st.integers(-1, VOCABULARY - 1), max_size=20), max_size=8)


def priority(user: int, item: int) -> int:
    """Return a fixed hash of a user and an item."""
    return (user * 2654435761 + item * 40503 + 7) * 0x9E3779B97F4A7C15 % 2**64


@given(users=USERS, limit=st.integers(1, 6), allowed=st.none() | st.sets(st.integers(0, VOCABULARY - 1)))
def test_bounded_sets_equal_the_reference_implementation(users, limit, allowed):
    """Bounded sets contain distinct candidates in the order of first appearance.

    If there are too many candidates, those with the smallest priorities remain.
    """
    tokens = np.array([token for user in users for token in user], np.int32)
    user_start = np.cumsum([0, *(len(user) for user in users)])
    mask = np.empty(0, np.uint8)
    if allowed is not None:
        mask = np.array([item in allowed for item in range(VOCABULARY)], np.uint8)
    seen = np.full(VOCABULARY, -1, np.int32)
    everyone = np.arange(len(users))
    items, starts = gather_distinct(tokens, user_start, everyone, mask, seen, 0)
    first, second = pairs_over_limit(items, starts, everyone.astype(np.uint64), limit)
    drawn = np.array([priority(int(u), int(i)) for u, i in zip(first, second, strict=True)], np.uint64)
    kept = keep_smallest(items, starts, drawn, limit)
    ours = [items[starts[j] : starts[j + 1]].tolist() for j in range(len(users))]
    without_ends = [[token for token in user if token >= 0] for user in users]
    assert kept == starts[-1]
    assert ours == naive.bounded_sets(without_ends, limit, priority, allowed)
