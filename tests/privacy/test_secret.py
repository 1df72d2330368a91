"""Tests that draws are reproducible in a release and independent between purposes, and never show the key."""

import copy
import hashlib
import math
import pickle

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from voxpop.errors import InputError, InternalError
from voxpop.privacy.secret import TEXT, Secret

words = st.integers(0, 2**64 - 1)


@given(st.binary(min_size=32, max_size=32), st.text(max_size=20), words, words)
def test_draws_are_the_aes_encryption_of_the_pair(key, purpose, first, second):
    """A draw is the AES-256 encryption of the two little-endian numbers under the subkey of the purpose."""
    subkey = hashlib.blake2b(purpose.encode(), key=key, digest_size=32, person=b"voxpop purpose").digest()
    block = first.to_bytes(8, "little") + second.to_bytes(8, "little")
    expected = Cipher(algorithms.AES(subkey), modes.ECB()).encryptor().update(block)
    drawn = Secret(key, private=True).draws(purpose, np.array([first], dtype=np.uint64), second)
    assert [int(word).to_bytes(8, "little") for word in drawn[0]] == [expected[:8], expected[8:]]


def test_a_draw_depends_only_on_its_pair():
    """The order of pairs, other pairs and the size of the request do not change a draw."""
    secret, size = Secret.fresh(), 2**18 + 7
    first = np.arange(size, dtype=np.uint64)
    second = first[::-1] % np.uint64(5)
    whole = secret.draws("order", first, second)
    assert whole.shape == (size, 2)
    assert whole.dtype == np.uint64
    chosen = np.random.default_rng(1).permutation(size)[:1000]
    assert (secret.draws("order", first[chosen], second[chosen]) == whole[chosen]).all()
    assert (secret.draws("order", first[3::7], second[3::7]) == whole[3::7]).all()


def test_an_integer_as_the_second_number_applies_to_all_pairs():
    """An integer is equivalent to an array that repeats the integer."""
    secret, first = Secret.fresh(), np.arange(9, dtype=np.uint64)
    repeated = np.full(9, 2**64 - 1, dtype=np.uint64)
    assert (secret.draws("x", first, 2**64 - 1) == secret.draws("x", first, repeated)).all()
    assert secret.draws("x", first[:0], 0).shape == (0, 2)


def test_different_requests_have_different_draws():
    """Different secrets, purposes, pairs and orders of a pair have no common draw (false alarm below 1e-34)."""
    one, first = Secret.fresh(), np.arange(50, dtype=np.uint64)
    runs = [
        one.draws("a", first, 100),
        one.draws("b", first, 100),
        one.draws("", first, 100),
        one.draws("a", np.full(50, 100, dtype=np.uint64), first),
        Secret.fresh().draws("a", first, 100),
        Secret.from_seed(0).draws("a", first, 100),
        Secret.from_seed(1).draws("a", first, 100),
        Secret.from_seed(-1).draws("a", first, 100),
    ]
    assert len({tuple(row) for run in runs for row in run.tolist()}) == 50 * len(runs)


def test_bits_are_balanced():
    """In a million draws, each of the 128 bits is 1 about half of the time (false alarm below 1e-9)."""
    size = 10**6
    drawn = Secret.fresh().draws("balance", np.arange(size, dtype=np.uint64), 0)
    tolerance = math.sqrt(size / 2 * math.log(2 * 128 / 1e-9))  # Hoeffding, 128 bits
    for word in drawn.T:
        for bit in range(64):
            ones = int(((word >> np.uint64(bit)) & np.uint64(1)).sum())
            assert abs(ones - size / 2) < tolerance


@given(st.binary(min_size=32, max_size=32), st.lists(st.binary(max_size=20), max_size=6))
def test_draws_of_texts_depend_on_all_bytes_and_the_length(key, texts):
    """For a text of up to 15 bytes, the draw is AES of the bytes, zeros and the length.

    For longer texts, it is keyed BLAKE2b.
    """
    subkey = hashlib.blake2b(b"noise/text", key=key, digest_size=32, person=b"voxpop purpose").digest()
    expected = []
    for text in texts:
        if len(text) <= 15:
            block = text + bytes(15 - len(text)) + bytes([len(text)])
            expected.append(Cipher(algorithms.AES(subkey), modes.ECB()).encryptor().update(block))
        else:
            expected.append(hashlib.blake2b(text, key=subkey, digest_size=16, person=b"voxpop text").digest())
    drawn = text_draws(Secret(key, private=True), texts)
    assert [row.astype("<u8").tobytes() for row in drawn] == expected


def test_similar_texts_share_no_bits():
    """The cases are empty texts, trailing zeros, and lengths near the block size (false alarm below 1e-30)."""
    texts = [b"", b"\0", b"\0\0", b"a", b"a\0", b"a" * 14, b"a" * 15, b"a" * 16, b"a" * 15 + b"\0", b"a" * 2**20]
    texts += [b"a" * 14 + bytes([14]), bytes(15), bytes(16), b"\0" * 14]
    assert len({tuple(row) for row in text_draws(Secret.fresh(), texts).tolist()}) == len(texts)


def test_draws_of_a_text_do_not_depend_on_other_texts(monkeypatch):
    """The order of texts, other texts and the size of chunks do not change a draw."""
    secret, texts = Secret.fresh(), [str(number).encode() * (number % 5) for number in range(200)]
    whole = text_draws(secret, texts)
    assert (text_draws(secret, texts[::-3]) == whole[::-3]).all()
    monkeypatch.setattr("voxpop.privacy.secret._CHUNK", 7)
    assert (text_draws(secret, texts) == whole).all()


def text_draws(secret, texts):
    starts = np.cumsum([0, *(len(text) for text in texts)]).astype(np.int64)
    return secret.text_draws("noise", np.frombuffer(b"".join(texts), np.uint8), starts)


def test_a_restricted_secret_draws_only_for_its_purposes():
    """A restricted secret still works after pickling, does not reveal its key, and cannot draw for other purposes."""
    secret, one = Secret.fresh(), np.ones(1, np.uint64)
    restricted = pickle.loads(pickle.dumps(secret.restrict("a", "b", f"noise{TEXT}")))
    assert (restricted.draws("b", one, 5) == secret.draws("b", one, 5)).all()
    assert (text_draws(restricted, [b"x", b"y" * 40]) == text_draws(secret, [b"x", b"y" * 40])).all()
    assert (restricted.restrict("a").draws("a", one, 5) == secret.draws("a", one, 5)).all()
    for purpose in ("c", "noise", ""):
        with pytest.raises(InternalError, match="are available"):
            restricted.draws(purpose, one, 0)
    with pytest.raises(InternalError, match="are available"):
        restricted.restrict("c")
    assert repr(restricted) == "Restricted(a, b, noise/text)"
    assert secret._key not in pickle.dumps(restricted)


def test_a_seeded_secret_is_reproducible_and_not_private():
    """A secret without a seed is private."""
    first = np.arange(4, dtype=np.uint64)
    assert (Secret.from_seed(7).draws("x", first, 0) == Secret.from_seed(np.int64(7)).draws("x", first, 0)).all()
    assert not Secret.from_seed(7).private
    assert Secret.fresh().private


@pytest.mark.parametrize("seed", ["7", 7.0, True, None])
def test_a_seed_must_be_an_integer(seed):
    """Seeds of other types raise an error."""
    with pytest.raises(InputError, match="seed"):
        Secret.from_seed(seed)


def test_a_secret_cannot_be_printed_or_copied():
    """The text of a secret does not contain the key, and pickling and copying raise an error."""
    secret = Secret(b"k" * 32, private=True)
    assert repr(secret) == str(secret) == "Secret(private=True)"
    for spread in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(InputError, match="pickled or copied"):
            spread(secret)
    with pytest.raises(TypeError):
        vars(secret)
    with pytest.raises(InputError, match="32 bytes"):
        Secret(b"short", private=True)
