"""Key pairs, what two nodes agree on, encryption between them, and masks: X25519, HKDF, AES-GCM and AES-CTR."""

import os

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from voxpop.arrays import Uint32s
from voxpop.errors import InputError

Sums = Uint32s
KEY = 32
_NONCE = 12


def new_secret() -> bytes:
    """Return a secret key, or the seed of a mask: 32 bytes of the operating system."""
    return os.urandom(KEY)


def public_of(secret: bytes) -> bytes:
    """Return the public key that goes with a secret one."""
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def agreed(secret: bytes, public: bytes, purpose: str) -> bytes:
    """Return the key that two nodes agree on for a purpose, from one's secret key and the other's public one.

    Raises:
        InputError: if the public key is none.
    """
    try:
        # Diffie and Hellman over Curve25519: both nodes get the same 32 bytes, and nobody else does.
        shared = X25519PrivateKey.from_private_bytes(secret).exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        raise InputError("what came as a public key is none.") from None
    return _derived(shared, purpose)


def mask(seed: bytes, purpose: str, length: int) -> Sums:
    """Return a vector of 32-bit numbers that looks random to whoever does not know the seed.

    Args:
        seed: 32 bytes.
        purpose: what it is for; another purpose, another mask.
        length: how many numbers.
    """
    # Counter mode from 0: the key is used for this one stream, so no nonce repeats.
    stream = Cipher(algorithms.AES(_derived(seed, purpose)), modes.CTR(bytes(16))).encryptor()
    return np.frombuffer(stream.update(bytes(4 * length)), np.dtype("<u4")).astype(np.uint32)


def sealed(key: bytes, text: bytes, context: str) -> bytes:
    """Return a text encrypted and bound to a context.

    Args:
        key: 32 bytes.
        text: to be kept secret.
        context: public; it must be the same when it is opened.
    """
    # 96 random bits: a key seals one letter each way, so a collision is out of reach.
    nonce = os.urandom(_NONCE)
    return nonce + AESGCM(key).encrypt(nonce, text, context.encode())


def opened(key: bytes, cipher: bytes, context: str) -> bytes:
    """Return the text of `sealed`.

    Raises:
        InputError: if it was made with another key or context, or changed.
    """
    try:
        return AESGCM(key).decrypt(cipher[:_NONCE], cipher[_NONCE:], context.encode())
    except (InvalidTag, ValueError):
        raise InputError("a share was changed on its way, or meant for somebody else.") from None


def committed(seed: bytes) -> bytes:
    """Return a digest that shows later that a seed was not changed, and nothing about it."""
    digest = hashes.Hash(hashes.SHA256())
    digest.update(b"voxpop mask" + seed)
    return digest.finalize()


def _derived(secret: bytes, purpose: str) -> bytes:
    return HKDF(hashes.SHA256(), KEY, salt=None, info=purpose.encode()).derive(secret)
