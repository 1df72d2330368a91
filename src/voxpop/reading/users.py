"""Users: one code per row, one key per user."""

from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from numbers import Integral
from typing import Any, final
from uuid import UUID

import numpy as np
import pyarrow as pa

from voxpop.errors import ColumnError, InputError
from voxpop.kernels.arrays import Int32s, Uint64s
from voxpop.kernels.words import hash_strings
from voxpop.reading.arrow import check_width, int64_array, int_codes, numbers_of, text_buffers
from voxpop.reading.columns import Rows
from voxpop.reading.keys import spelled_rows

Users = tuple[Int32s, Uint64s, pa.Array]
"""The code of each row; by code the key of each user, and the user."""


def numbered_users(users: pa.Array) -> pa.DictionaryArray:
    """Return users as codes into distinct users; whole numbers of 64 bits become one type."""
    return (users.view(pa.int64()) if pa.types.is_uint64(users.type) else users).dictionary_encode()


def encode_users(pieces: list[pa.DictionaryArray]) -> Users:
    """Number the users, by first appearance or, where two of them share a key, by identity.

    Args:
        pieces: the users of the rows from `numbered`; at least one. Small tables that fit into the processor's cache,
            merged here, are faster than one table of all rows.

    Returns:
        codes: int32, the user of each row.
        keys: uint64 by user: the integer itself, or a fixed hash of the string's bytes. Two users with one key would
            share their random draws and nothing else, which the proof allows.
        users: the users themselves, in the order of their codes.

    Raises:
        InputError: where there are more users than 32 bits can number.
    """
    chunks = pa.chunked_array(pieces).unify_dictionaries().chunks
    codes, users = np.concatenate([int_codes(chunk) for chunk in chunks]), chunks[0].dictionary
    check_width(len(users), "users")
    if pa.types.is_integer(users.type):
        return codes, numbers_of(users).view(np.uint64).copy(), users
    keys = hash_strings(*text_buffers(users))
    ordered = np.sort(keys)
    if (ordered[1:] != ordered[:-1]).all():
        return codes, keys, users
    # Users of one key weigh in the order of their places, which must not depend on rows (docs/privacy/randomness.md).
    order = np.lexsort(_digests(users).T[::-1])
    places = np.empty(order.size, np.int32)
    places[order] = np.arange(order.size)
    return places[codes], keys[order], users.take(int64_array(order))


def key_of(user: Any) -> int:
    """Return the key of a user from the id as a Python value; a tuple stands for several columns.

    Raises:
        InputError: where no column of users can have such a value.
    """
    if isinstance(user, Integral) and not isinstance(user, bool) and -(2**63) <= int(user) < 2**64:
        return int(user) % 2**64
    parts = list(user) if isinstance(user, tuple | list) else [user]
    with suppress(pa.ArrowException, ColumnError, TypeError, ValueError, OverflowError):
        texts = spelled_rows([_one(each) for each in parts or [None]], ["user"] * max(1, len(parts)))
        if not texts.null_count:
            return int(hash_strings(*text_buffers(texts))[0])
    raise InputError(
        "the user must be an id as in the rows: a whole number, a string, or another value of the column of users; a "
        f"tuple for several columns. Got {type(user).__name__}."
    )


def _one(value: Any) -> pa.Array:
    return pa.array([str(value) if isinstance(value, UUID) else value])  # UUIDs are spelled like this


def identities(users: pa.Array, keys: Uint64s) -> Uint64s:
    """Return two numbers by which each user is known everywhere.

    Args:
        users: the distinct users.
        keys: uint64 by user.

    Returns:
        uint64 (users, 2), the first of them spread evenly: of an integer a permutation; of a string 128 bits of
        BLAKE2b, which no two strings share.
    """
    if pa.types.is_integer(users.type):
        return np.stack([spread(keys), np.zeros_like(keys)], axis=1)
    return _digests(users)


def _digests(names: pa.Array) -> Uint64s:
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
        users: whose the rows were that have gone by, in pieces from `numbered`.
        finished: whether the source ended with this stretch.
    """

    def __init__(self, rows: Rows, most: int | None) -> None:
        self._rows, self._most = rows, most
        self._held = 0
        self.users: list[pa.DictionaryArray] = []
        self.finished = False

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


def stretches(rows: Rows, most: int | None) -> Iterator[Stretch]:
    """Yield stretches until the rows end; each must be consumed before the next is requested."""
    while True:
        stretch = Stretch(rows, most)
        yield stretch
        if stretch.finished:
            return
