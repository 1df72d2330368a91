"""Users: one code per row, one key per user."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from voxpop.corpus.arrow import int_codes, plain, text_buffers, whole_numbers
from voxpop.kernels.group import number_values
from voxpop.kernels.words import hash_strings

Users = tuple[NDArray[np.int32], NDArray[np.uint64]]


def encode_users(columns: list[pa.Array]) -> Users:
    """Number the users by first appearance.

    Args:
        columns: user ids row by row, in pieces; integers, or strings.

    Returns:
        codes: int32, the user of each row.
        keys: uint64 by user: the integer itself, or a fixed hash of the string's bytes. Two users with one key would
            share their random draws and nothing else, which the proof allows.
    """
    if all(pa.types.is_integer(column.type) for column in columns):
        values = np.concatenate([whole_numbers(column).view(np.int64) for column in columns])
        if (values[1:] >= values[:-1]).all():
            return _encode_rising(values)
        codes = np.empty(values.size, np.int32)
        return codes, number_values(values, codes).view(np.uint64)
    encoded = plain(pa.chunked_array(columns)).dictionary_encode()
    return int_codes(encoded), hash_strings(*text_buffers(encoded.dictionary))


def _encode_rising(values: NDArray[np.int64]) -> Users:
    """Number users who come in order already: no search is needed."""
    first = np.ones(values.size, np.bool_)
    first[1:] = values[1:] != values[:-1]
    return (np.cumsum(first, dtype=np.int32) - 1).astype(np.int32), values[first].view(np.uint64)
