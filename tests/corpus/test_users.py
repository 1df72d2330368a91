"""Tests that users are numbered by first appearance, for any number of pieces, and that their items are grouped."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxpop.kernels.group import group_items
from voxpop.reading.users import encode_users, numbered_users

NUMBERS = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=30)


@given(ids=NUMBERS | st.lists(st.text(max_size=3), min_size=1, max_size=30), ordered=st.booleans(), data=st.data())
def test_users_are_numbered_by_first_appearance(ids, ordered, data):
    """The result does not depend on the division of rows into pieces. Integer ids are their own keys."""
    ids = sorted(ids) if ordered else ids
    cut = data.draw(st.integers(0, len(ids)))
    kind = pa.int64() if isinstance(ids[0], int) else pa.large_string()
    pieces = [numbered_users(pa.array(ids[first:end], kind)) for first, end in pairwise([0, cut, len(ids)])]
    codes, keys, users = encode_users(pieces)
    distinct = list(dict.fromkeys(ids))
    assert codes.dtype == np.int32
    assert codes.tolist() == [distinct.index(each) for each in ids]
    assert users.to_pylist() == distinct
    if kind == pa.int64():
        assert keys.view(np.int64).tolist() == distinct


@pytest.mark.parametrize("other", [pa.int64(), pa.uint64()])
def test_large_unsigned_ids_keep_their_bits(other):
    """Ids of 2^63 and more differ from small ids, and an id has the same code in files of both types."""
    ids = [1, 2**63, 2**64 - 1]
    codes, keys, _ = encode_users([numbered_users(pa.array(ids, pa.uint64())), numbered_users(pa.array([7, 1], other))])
    assert keys.tolist() == [*ids, 7]
    assert codes.tolist() == [0, 1, 2, 3, 0]


ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 5)), max_size=30)


@given(rows=ROWS, ordered=st.booleans())
def test_items_are_grouped_by_user_in_the_order_of_rows(rows, ordered):
    """A row without an item belongs to no user. Rows that are already grouped remain unchanged."""
    rows = sorted(rows, key=lambda row: row[0]) if ordered else rows
    codes, items = (np.array([row[part] for row in rows], np.int32) for part in (0, 1))
    starts = np.zeros(6, np.int64)
    grouped = group_items(items, codes, starts)
    held = [[item for user, item in rows if user == code and item >= 0] for code in range(5)]
    assert grouped.tolist() == [item for each in held for item in each]
    assert np.diff(starts).tolist() == [len(each) for each in held]
