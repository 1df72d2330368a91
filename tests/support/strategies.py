"""Hypothesis strategies for collections."""

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray


def bounded_users(universe: int = 8, users: int = 8, limit: int = 6) -> st.SearchStrategy[list[list[int]]]:
    """Return a strategy for lists of users. A user is a list of at most `limit` distinct small items."""
    items = st.lists(st.integers(0, universe - 1), unique=True, min_size=1, max_size=limit)
    return st.lists(items, min_size=1, max_size=users)


def as_arrays(users: list[list[int]]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return bounded sets in the layout of the kernels, as items and starts."""
    items = np.array([item for user in users for item in user], np.int32)
    return items, np.cumsum([0, *(len(user) for user in users)])


def written_users(words: str = "abcd", users: int = 6) -> st.SearchStrategy[list[list[list[str]]]]:
    """Return a strategy for lists of users. A user is a list of short documents of one-letter tokens."""
    document = st.lists(st.sampled_from(words), max_size=8)
    return st.lists(st.lists(document, max_size=3), min_size=1, max_size=users)
