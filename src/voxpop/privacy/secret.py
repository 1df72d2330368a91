"""The one secret from which all randomness of a release follows.

Every random decision is a function of (secret, purpose, two 64-bit numbers) through AES-256. So a retry, another
thread or another engine cannot redraw it, and nothing depends on the order of the work.

Two caveats, as for every library that does not carry a truly random tape. The guarantee becomes computational: it
holds against whoever cannot tell AES-256 under an unknown key from a random permutation. And a permutation never
repeats a block: q draws of one purpose are within q^2/2^129 of independent ones in total variation (2^-67 for 2^31).
"""

import hashlib
import secrets
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from voxpop.errors import InputError

Words = NDArray[np.uint64]
_CHUNK = 1 << 18  # blocks encrypted at a time: 4 MiB in, 4 MiB out, which stays in cache
_BLOCK = 16


class Secret:
    """256 bits from the operating system, fresh for each release and never shown.

    Example:
        >>> Secret.fresh()
        Secret(private=True)
        >>> Secret.from_seed(7).draws("noise", np.arange(3, dtype=np.uint64), 0).shape
        (3, 2)
    """

    __slots__ = ("_key", "private")

    private: bool

    def __init__(self, key: bytes, *, private: bool) -> None:
        if len(key) != 32:
            raise InputError(f"a secret has 32 bytes, got {len(key)}. Use Secret.fresh().")
        self._key = key
        self.private = private

    @classmethod
    def fresh(cls) -> "Secret":
        """A new secret from the operating system.

        Returns:
            A secret that nobody knows.
        """
        return cls(secrets.token_bytes(32), private=True)

    @classmethod
    def from_seed(cls, seed: int) -> "Secret":
        """A secret that anyone can make again: for tests and comparisons, never for a real release.

        Args:
            seed: Any integer.

        Returns:
            A secret whose releases are marked as not private.

        Raises:
            InputError: The seed is not an integer.
        """
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
            raise InputError(f"`seed` must be an integer or None, got a value of type {type(seed).__name__}.")
        digest = hashlib.blake2b(str(int(seed)).encode(), digest_size=32, person=b"voxpop seed").digest()
        return cls(digest, private=False)

    def draws(self, purpose: str, first: Words, second: Words | int) -> Words:
        """128 uniform bits for each pair of numbers.

        Args:
            purpose: What the bits are for; different purposes give unrelated bits.
            first: The first number of each pair.
            second: The second number of each pair, or one for all.

        Returns:
            One row of two words per pair, the more significant word first. Equal pairs get equal rows.
        """
        first = np.ascontiguousarray(first, dtype=np.uint64)
        output = np.empty(len(first) * _BLOCK + _BLOCK - 1, dtype=np.uint8)
        encryptor = self._cipher(purpose)
        for start in range(0, len(first), _CHUNK):
            stop = min(start + _CHUNK, len(first))
            blocks = np.empty((stop - start, 2), dtype="<u8")
            blocks[:, 0] = first[start:stop]
            blocks[:, 1] = second if isinstance(second, int) else second[start:stop]
            room = output[start * _BLOCK : stop * _BLOCK + _BLOCK - 1]
            encryptor.update_into(blocks.data.cast("B"), room.data)
        words: Words = output[: len(first) * _BLOCK].view("<u8").reshape(-1, 2).astype(np.uint64, copy=False)
        return words

    def _cipher(self, purpose: str) -> Any:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        subkey = hashlib.blake2b(purpose.encode(), key=self._key, digest_size=32, person=b"voxpop purpose").digest()
        # ECB is what is wanted: each block is a different pair, and its encryption is the random value.
        return Cipher(algorithms.AES(subkey), modes.ECB()).encryptor()

    def __repr__(self) -> str:
        return f"Secret(private={self.private})"

    def __reduce__(self) -> NoReturn:
        raise InputError(
            "a Secret cannot be pickled or copied: written down, it would undo the privacy of its release. "
            "Pass the object itself within one process."
        )
