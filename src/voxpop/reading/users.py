"""Assignment of a code to the user of each row, and of a key to each user."""

from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from numbers import Integral
from typing import Any, final
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.errors import ColumnError, InputError
from voxpop.kernels.arrays import Int32s, Uint64s
from voxpop.kernels.words import hash_strings
from voxpop.reading.arrow import check_width, int64_array, int_codes, numbers_of, text_buffers
from voxpop.reading.columns import Batches
from voxpop.reading.keys import spelled_rows

Users = tuple[Int32s, Uint64s, pa.Array]
"""The code of each row, the key of each code, and the user of each code."""


def numbered_users(users: pa.Array) -> pa.DictionaryArray:
    """Number the distinct users. Unsigned integers are viewed as signed ones, so that all pieces have one type."""
    return (users.view(pa.int64()) if pa.types.is_uint64(users.type) else users).dictionary_encode()


def encode_users(pieces: list[pa.DictionaryArray]) -> Users:
    """Number the users in order of first appearance, or of their digests if two users share a key.

    Args:
        pieces: The users of the rows from `numbered_users`, in at least one piece. Merging small tables that fit into
            the processor's cache is faster than building one table of all rows.

    Returns:
        codes: int32, the index of the user of each row.
        keys: uint64 by user: the integer itself, or a fixed hash of the string's bytes. Two users with the same key
            would share only their random draws, which the proof allows.
        users: the users themselves, in the order of their codes.

    Raises:
        InputError: If there are more users than 32 bits can number.
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
    # Users with the same key are weighed in the order of their positions, which must not depend on rows
    # (docs/privacy/randomness.md).
    order = np.lexsort(_digests(users).T[::-1])
    places = np.empty(order.size, np.int32)
    places[order] = np.arange(order.size)
    return places[codes], keys[order], users.take(int64_array(order))


def key_of(user: Any) -> int:
    """Return the key of the user with this id, which is a Python value. A tuple contains the values of several columns.

    Raises:
        InputError: If no user column can contain this value.
    """
    if isinstance(user, Integral) and not isinstance(user, bool):
        if -(2**63) <= int(user) < 2**64:
            return int(user) % 2**64
        raise InputError(
            "the user is a whole number that does not fit into 64 bits, so no column of whole numbers can contain it. "
            "Give the id in the form that it has in the rows, for example as a string or as a Decimal."
        )
    parts = list(user) if isinstance(user, tuple | list) else [user]
    with suppress(pa.ArrowException, ColumnError, TypeError, ValueError, OverflowError):
        texts = spelled_rows([_one(each) for each in parts or [None]], ["user"] * max(1, len(parts)))
        if not texts.null_count:
            return int(hash_strings(*text_buffers(texts))[0])
    raise InputError(
        "the user must be an id in the form that it has in the rows, such as a whole number, a string, another value "
        f"of the user column, or a tuple for several columns. Got {type(user).__name__}."
    )


def _one(value: Any) -> pa.Array:
    return pa.array([str(value) if isinstance(value, UUID) else value])  # the spelling of UUIDs in columns


def identities(users: pa.Array, keys: Uint64s) -> Uint64s:
    """Return two numbers that identify each user in all collections.

    Args:
        users: The distinct users.
        keys: uint64 by user.

    Returns:
        uint64 (users, 2), with an evenly spread first column. For an integer, they are the result of `spread`, which
        permutes 64-bit integers, and 0. For a string, they are 128 bits of BLAKE2b, which no two strings share.
    """
    if pa.types.is_integer(users.type):
        return np.stack([spread(keys), np.zeros_like(keys)], axis=1)
    return _digests(users)


def _digests(names: pa.Array) -> Uint64s:
    digests = b"".join(blake2b(name.encode(), digest_size=16).digest() for name in names.to_pylist())
    return np.frombuffer(digests, np.uint64).reshape(-1, 2)


def spread(keys: Uint64s) -> Uint64s:
    """Permute 64-bit numbers so that close numbers are far apart afterwards (the last steps of SplitMix64)."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


BESIDE_BARS = r"\s*\|\s*"


@final
class Spellings:
    """Count ids that differ from another id only in case or in leading and trailing spaces. The count is private."""

    def __init__(self, most: int | None) -> None:
        """Start without ids.

        Args:
            most: The maximum number of different ids to count. By default, there is no limit.
        """
        self._most = most
        self._plain: Uint64s | None = np.empty(0, np.uint64)

    def add(self, users: pa.Array) -> None:
        """Add distinct ids, which may repeat earlier ids.

        Whole numbers are ignored, because each has only one spelling.
        """
        if self._plain is None or pa.types.is_integer(users.type):
            return
        plain = pc.utf8_trim_whitespace(pc.utf8_lower(users))
        if pc.any(pc.match_substring(plain, "|")).as_py():  # ids that join several columns
            plain = pc.replace_substring_regex(plain, BESIDE_BARS, "|")
        # Sorting is ten times as fast as numpy's set operations, which use hashes.
        found = np.sort(np.concatenate([self._plain, hash_strings(*text_buffers(plain))]))
        self._plain = found[np.concatenate([[True], found[1:] != found[:-1]])[: found.size]]
        if self._most is not None and self._plain.size > self._most:
            self._plain = None

    def alike(self, users: int) -> int | None:
        """Return the number of users that differ from another user only in spelling, or None if it is unknown."""
        if self._plain is None:
            return None
        return users - self._plain.size if self._plain.size else 0


# The rows are split into stretches that are small enough to be encoded in memory.


@final
class Stretch:
    """Consecutive batches, up to a bound on their total size in memory.

    Attributes:
        users: The users of the rows read so far, in pieces from `numbered_users`.
        finished: Whether the source ended with this stretch.
    """

    def __init__(self, rows: Batches, most: int | None) -> None:
        self._rows, self._most = rows, most
        self._held = 0
        self.users: list[pa.DictionaryArray] = []
        self.finished = False

    def hold(self, size: int) -> None:
        """Record the number of bytes of this stretch's encoded rows so far."""
        self._held = size

    def __iter__(self) -> Iterator[tuple[str, pa.Array]]:
        owners = 0
        for where, batch in self._rows:
            users, contents = batch.columns
            self.users.append(users)
            owners += users.nbytes
            yield where, contents
            if self._most is not None and owners + self._held > self._most:
                return
        self.finished = True


def stretches(rows: Batches, most: int | None) -> Iterator[Stretch]:
    """Yield stretches until the rows end. Each stretch must be consumed before the next one is requested."""
    while True:
        stretch = Stretch(rows, most)
        yield stretch
        if stretch.finished:
            return
