"""Users: numbered by first appearance, in order or not."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from voxpop.reading.users import encode_users

IDS = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=30)


@given(ids=IDS, ordered=st.booleans())
def test_whole_numbers_are_numbered_by_first_appearance(ids, ordered):
    """Rising ids take a short way to the same result; keys are the ids themselves."""
    ids = sorted(ids) if ordered else ids
    codes, keys = encode_users([pa.array(ids, pa.int64())])
    distinct = list(dict.fromkeys(ids))
    assert codes.dtype == np.int32
    assert codes.tolist() == [distinct.index(each) for each in ids]
    assert keys.view(np.int64).tolist() == distinct


def test_large_unsigned_ids_keep_their_bits():
    """Ids beyond 2^63 do not run into small ones."""
    ids = [1, 2**63, 2**64 - 1]
    codes, keys = encode_users([pa.array(ids, pa.uint64())])
    assert keys.tolist() == ids
    assert codes.tolist() == [0, 1, 2]
