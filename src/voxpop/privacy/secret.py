"""The secret that determines all randomness of a release.

AES-256 computes every random decision from the secret, a purpose, and two 64-bit numbers. Therefore a retry, another
thread or another engine makes the same decision, and no result depends on the order of the work.

This method has two limitations. Every library that does not use truly random bits for each draw has the same
limitations. First, the guarantee becomes computational. It is valid against adversaries who cannot distinguish AES-256
with an unknown key from a random permutation. Second, a permutation never repeats a block. Therefore q draws of one
purpose are within q^2/2^129 of independent draws in total variation (2^-67 for 2^31 draws).
"""

import hashlib
import hmac
import secrets
from abc import ABC, abstractmethod
from typing import Any, NoReturn, final

import numpy as np

from voxpop.errors import InputError, InternalError
from voxpop.kernels.arrays import Bytes, Int64s, Uint64s
from voxpop.kernels.proved import proved

_CHUNK = 1 << 18  # the number of blocks that are encrypted at a time (4 MiB in, 4 MiB out), which fit in cache
_BLOCK = 16
TEXT = "/text"
"""The suffix of the purpose of a key for texts."""
_SHORT = _BLOCK - 1  # texts up to this size fit in one block together with their length


class Source(ABC):
    """A source of uniform bits, which are a function of a secret key and a purpose."""

    __slots__ = ()

    @abstractmethod
    def _subkey(self, purpose: str) -> bytes:
        """Return the key of one purpose."""

    def restrict(self, *purposes: str) -> "Source":
        """Return a source that is limited to these purposes and may be sent to workers.

        Args:
            purposes: The purposes of `draws`, or purposes with the suffix `TEXT` for `text_draws`.

        Returns:
            A `ScopedSecret`, which can be pickled and does not reveal the secret.
        """
        return ScopedSecret({purpose: self._subkey(purpose) for purpose in purposes})

    def draws(self, purpose: str, first: Uint64s, second: Uint64s | int) -> Uint64s:
        """Return 128 uniform bits for each pair of numbers.

        Args:
            purpose: The purpose of the bits. Different purposes have unrelated bits.
            first: The first number of each pair.
            second: The second number of each pair, or one number for all pairs.

        Returns:
            One row of two words per pair, the more significant word first. Equal pairs have equal rows.
        """
        first = np.ascontiguousarray(first, dtype=np.uint64)
        output = np.empty(len(first) * _BLOCK + _BLOCK - 1, dtype=np.uint8)
        encryptor = self._cipher(self._subkey(purpose))
        for start in range(0, len(first), _CHUNK):
            stop = min(start + _CHUNK, len(first))
            # uint64 (draws, 2). The two numbers of a pair, in little-endian order, are one AES block.
            blocks = np.empty((stop - start, 2), dtype="<u8")
            blocks[:, 0] = first[start:stop]
            blocks[:, 1] = second if isinstance(second, int) else second[start:stop]
            # The cipher requires additional space of one block minus one byte in the output.
            room = output[start * _BLOCK : stop * _BLOCK + _BLOCK - 1]
            encryptor.update_into(blocks.data.cast("B"), room.data)
        words: Uint64s = output[: len(first) * _BLOCK].view("<u8").reshape(-1, 2).astype(np.uint64, copy=False)
        return words

    def text_draws(self, purpose: str, data: Bytes, starts: Int64s) -> Uint64s:
        """Return 128 uniform bits for each text. The bits are a function of the bytes of the text.

        A text of up to 15 bytes becomes one AES block, which contains the text, zeros, and the length of the text. A
        longer text is hashed with BLAKE2b under the same key. Different texts of up to 15 bytes have different blocks,
        so no two of them share bits.

        Args:
            purpose: The purpose of the bits. The key differs from the key that `draws` uses for this purpose.
            data: The concatenated bytes of all texts.
            starts: The start of each text, and the end of the last text.

        Returns:
            One row of two words per text, the more significant word first.
        """
        subkey = self._subkey(f"{purpose}{TEXT}")
        encryptor, sizes = self._cipher(subkey), np.diff(starts)
        words = np.empty((sizes.size, 2), np.uint64)
        short = np.flatnonzero(sizes <= _SHORT)
        for first in range(0, short.size, _CHUNK):
            mine = short[first : first + _CHUNK]
            blocks = _blocks_of(data, starts[mine], sizes[mine])
            words[mine] = np.frombuffer(encryptor.update(blocks.tobytes()), "<u8").reshape(-1, 2)
        for text in np.flatnonzero(sizes > _SHORT):
            content = data[starts[text] : starts[text + 1]].tobytes()
            digest = hashlib.blake2b(content, key=subkey, digest_size=_BLOCK, person=b"voxpop text").digest()
            words[text] = np.frombuffer(digest, "<u8")
        return words

    def _cipher(self, subkey: bytes) -> Any:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        # ECB mode is intended, because each block is a different pair or text, and its encryption is the random value.
        return Cipher(algorithms.AES(subkey), modes.ECB()).encryptor()


@final
class Secret(Source):
    """A secret of 256 bits, from the operating system or derived from a seed. It is never shown.

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
        """Return a new random secret from the operating system."""
        return cls(secrets.token_bytes(32), private=True)

    @classmethod
    def from_seed(cls, seed: int) -> "Secret":
        """Return a secret that anyone with the seed can derive, for tests and comparisons, never for a real release.

        Args:
            seed: The seed, any integer.

        Returns:
            A secret whose releases are marked as not private.

        Raises:
            InputError: The seed is not an integer.
        """
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
            raise InputError(f"`seed` must be an integer or None, got a value of type {type(seed).__name__}.")
        digest = hashlib.blake2b(str(int(seed)).encode(), digest_size=32, person=b"voxpop seed").digest()
        return cls(digest, private=False)

    @classmethod
    def of(cls, seed: int | None) -> "Secret":
        """Return the secret of a release, which is new unless the caller passes a seed.

        Args:
            seed: The seed of `from_seed`, or None.

        Returns:
            The secret. Its attribute `private` is False if it was derived from a seed.
        """
        return cls.fresh() if seed is None else cls.from_seed(seed)

    def _subkey(self, purpose: str) -> bytes:
        return hashlib.blake2b(purpose.encode(), key=self._key, digest_size=32, person=b"voxpop purpose").digest()

    def equals(self, other: "Secret") -> bool:
        """Return whether both secrets give the same bits."""
        return hmac.compare_digest(self._key, other._key)

    def stored(self) -> bytes:
        """Return the key. Only the private state of a series needs it, because all nights share one secret."""
        return self._key

    def __repr__(self) -> str:
        return f"Secret(private={self.private})"

    def __reduce__(self) -> NoReturn:
        raise InputError(
            "a Secret cannot be pickled or copied, because a stored secret would undo the privacy of its release. "
            "Pass the object itself within one process."
        )


@final
class ScopedSecret(Source):
    """The result of `Secret.restrict`. It draws the same bits as the secret, but only for the given purposes.

    For example, a worker that weighs one length receives the key for the sample of this length, but no key for noise. A
    scoped secret can be pickled, because it is sent to workers, but its text never shows a key.

    Example:
        >>> import numpy as np
        >>> from voxpop.privacy.secret import Secret
        >>> secret, one = Secret.from_seed(1), np.ones(1, np.uint64)
        >>> bool((secret.restrict("noise").draws("noise", one, 0) == secret.draws("noise", one, 0)).all())
        True
        >>> secret.restrict("noise")
        Restricted(noise)
    """

    __slots__ = ("_keys",)

    def __init__(self, keys: dict[str, bytes]) -> None:
        self._keys = keys

    def _subkey(self, purpose: str) -> bytes:
        if purpose not in self._keys:
            raise InternalError(f"bits for {purpose!r} were requested, but only those for {self} are available")
        return self._keys[purpose]

    def __repr__(self) -> str:
        return f"Restricted({', '.join(sorted(self._keys))})"


SEALED = b"voxpop sealed 1\n"
_SEAL_AT_ONCE = 1 << 30


def seal(content: bytes, key: bytes) -> bytes:
    """Encrypt and authenticate content with AES-256-GCM, one gigabyte at a time.

    Raises:
        InputError: The key does not have 32 bytes.

    Example:
        >>> unseal(seal(b"state", bytes(32)), bytes(32))
        b'state'
    """
    prefix, sealed = secrets.token_bytes(8), [SEALED]
    # The counter is part of the nonce, and the mark of the last piece is authenticated, so no piece can be removed
    # unnoticed.
    for first in range(0, max(len(content), 1), _SEAL_AT_ONCE):
        last = b"last" if first + _SEAL_AT_ONCE >= len(content) else b"more"
        nonce = prefix + (first // _SEAL_AT_ONCE).to_bytes(4, "big")
        sealed.append(nonce + _aes_gcm(key).encrypt(nonce, content[first : first + _SEAL_AT_ONCE], last))
    return b"".join(sealed)


def unseal(content: bytes, key: bytes) -> bytes:
    """Return the content that `seal` encrypted.

    Raises:
        InputError: The content was not sealed with this key, or was changed.
    """
    from cryptography.exceptions import InvalidTag

    size, cipher, found = 12 + _SEAL_AT_ONCE + 16, _aes_gcm(key), []
    pieces = range(len(SEALED), len(content), size)
    try:
        for number, first in enumerate(pieces):
            piece = content[first : first + size]
            if piece[8:12] != number.to_bytes(4, "big") or piece[:8] != content[len(SEALED) : len(SEALED) + 8]:
                raise InvalidTag
            last = b"last" if number + 1 == len(pieces) else b"more"
            found.append(cipher.decrypt(piece[:12], piece[12:], last))
    except InvalidTag:
        raise InputError(
            "the file was encrypted with another key, or was changed. Give the key with which it was written."
        ) from None
    return b"".join(found)


def _aes_gcm(key: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if not isinstance(key, bytes) or len(key) != 32:
        raise InputError("`key` must be 32 bytes, such as the bytes of secrets.token_bytes(32).")
    return AESGCM(key)


@proved("randomness.md#names-of-words")
def _blocks_of(data: Bytes, starts: Int64s, sizes: Int64s) -> Bytes:
    """Return each text as a block that contains its bytes, zeros, and its length.

    Proof: "is one AES block, so no two words share a block"
    """
    # uint8 (texts, 16): up to 15 bytes, zeros, and the length in the last byte, so blocks are distinct.
    blocks = np.zeros((sizes.size, _BLOCK), np.uint8)
    blocks[:, _SHORT] = sizes
    places = np.arange(_SHORT)
    held = places < sizes[:, None]
    blocks[:, :_SHORT][held] = data[(starts[:, None] + places)[held]]
    return blocks
