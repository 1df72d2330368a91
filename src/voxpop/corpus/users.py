"""Users: one code per row, one key per user."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from voxpop.corpus.arrow import int_codes, plain, text_buffers
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
    encoded = plain(pa.chunked_array(columns)).dictionary_encode()
    ids = encoded.dictionary
    if pa.types.is_integer(ids.type):
        keys = ids.cast(pa.uint64(), safe=False) if pa.types.is_unsigned_integer(ids.type) else ids.cast(pa.int64())
        return int_codes(encoded), keys.to_numpy(zero_copy_only=False).view(np.uint64)
    return int_codes(encoded), hash_strings(*text_buffers(ids))
