"""Users: one code per row, one key per user."""

from collections.abc import Iterator
from hashlib import blake2b
from typing import final

import numpy as np
import pyarrow as pa

from voxpop.kernels.arrays import Int32s, Int64s, Uint64s
from voxpop.kernels.words import hash_strings
from voxpop.reading.arrow import array_of, check_width, int64_array, int_codes, numbers_of, plain, text_buffers
from voxpop.reading.columns import Rows

Users = tuple[Int32s, Uint64s]


def encode_users(columns: list[pa.Array]) -> Users:
    """Number the users by first appearance.

    Args:
        columns: user ids row by row, in pieces; integers, or strings.

    Returns:
        codes: int32, the user of each row.
        keys: uint64 by user: the integer itself, or a fixed hash of the string's bytes. Two users with one key would
            share their random draws and nothing else, which the proof allows.

    Raises:
        InputError: where there are more users than 32 bits can number.
    """
    if all(pa.types.is_integer(column.type) for column in columns):
        values = np.concatenate([numbers_of(column).view(np.int64) for column in columns])
        # One look over all rows spares a table where a file is sorted by user.
        if (values[1:] >= values[:-1]).all():
            return _encode_rising(values)
        encoded = array_of(values).dictionary_encode()
        keys = numbers_of(encoded.dictionary).view(np.uint64).copy()
    else:
        encoded = plain(pa.chunked_array(columns)).dictionary_encode()
        keys = hash_strings(*text_buffers(encoded.dictionary))
    check_width(keys.size, "users")
    return int_codes(encoded), keys


def _encode_rising(values: Int64s) -> Users:
    """Number users who come in order already: no search is needed."""
    first = np.ones(values.size, np.bool_)
    first[1:] = values[1:] != values[:-1]
    keys = values[first].view(np.uint64)
    check_width(keys.size, "users")
    return (np.cumsum(first, dtype=np.int32) - 1).astype(np.int32), keys


def identities(columns: list[pa.Array], keys: Uint64s, codes: Int32s) -> Uint64s:
    """Return two numbers by which each user is known everywhere.

    Args:
        columns: user ids row by row, in pieces; integers, or strings.
        keys: uint64 by user.
        codes: int32, the user of each row, numbered by first appearance.

    Returns:
        uint64 (users, 2), the first of them spread evenly: of an integer a permutation; of a string 128 bits of
        BLAKE2b, which no two strings share.
    """
    if all(pa.types.is_integer(column.type) for column in columns):
        return np.stack([spread(keys), np.zeros_like(keys)], axis=1)
    first = np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1))
    names = plain(pa.chunked_array(columns).take(int64_array(first)))
    digests = b"".join(blake2b(name.encode(), digest_size=16).digest() for name in names.to_pylist())
    return np.frombuffer(digests, np.uint64).reshape(-1, 2)


def spread(keys: Uint64s) -> Uint64s:
    """Permute 64-bit numbers so that neighbours land far apart (the last steps of SplitMix64)."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


# Rows cut into stretches, each small enough to be encoded in memory.


@final
class Stretch:
    """Batches of rows until their size in memory reaches a bound.

    Attributes:
        users: whose the rows were that have gone by, in pieces.
        finished: whether the source ended with this stretch.
    """

    __slots__ = ("_held", "_most", "_rows", "finished", "users")

    users: list[pa.Array]
    finished: bool

    def __init__(self, rows: Rows, most: int | None) -> None:
        self._rows, self._most = rows, most
        self._held = 0
        self.users, self.finished = [], False

    def hold(self, size: int) -> None:
        """Record the bytes of this stretch's encoded rows so far."""
        self._held = size

    def __iter__(self) -> Iterator[tuple[str, pa.Array]]:
        owners = 0
        for where, users, contents in self._rows:
            self.users.append(users)
            owners += users.nbytes
            yield where, contents
            if self._most is not None and owners + self._held > self._most:
                return
        self.finished = True


def stretches(rows: Rows, most: int) -> Iterator[Stretch]:
    """Yield stretches until the rows end; each must be consumed before the next is requested."""
    while True:
        stretch = Stretch(rows, most)
        yield stretch
        if stretch.finished:
            return
