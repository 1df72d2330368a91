"""One secret: reproducible within a release, unrelated between purposes, and never shown."""

import copy
import hashlib
import math
import pickle

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from voxpop.errors import InputError
from voxpop.privacy import Secret

words = st.integers(0, 2**64 - 1)


@given(st.binary(min_size=32, max_size=32), st.text(max_size=20), words, words)
def test_draws_are_aes_of_the_pair(key, purpose, first, second):
    """A draw is the AES-256 block of the two numbers, little endian, under the purpose's subkey."""
    subkey = hashlib.blake2b(purpose.encode(), key=key, digest_size=32, person=b"voxpop purpose").digest()
    block = first.to_bytes(8, "little") + second.to_bytes(8, "little")
    expected = Cipher(algorithms.AES(subkey), modes.ECB()).encryptor().update(block)
    drawn = Secret(key, private=True).draws(purpose, np.array([first], dtype=np.uint64), second)
    assert [int(word).to_bytes(8, "little") for word in drawn[0]] == [expected[:8], expected[8:]]


def test_a_draw_depends_on_its_pair_alone():
    """Neither order, nor neighbours, nor the size of the request changes a draw."""
    secret, size = Secret.fresh(), 2**18 + 7
    first = np.arange(size, dtype=np.uint64)
    second = first[::-1] % np.uint64(5)
    whole = secret.draws("order", first, second)
    assert whole.shape == (size, 2)
    assert whole.dtype == np.uint64
    chosen = np.random.default_rng(1).permutation(size)[:1000]
    assert (secret.draws("order", first[chosen], second[chosen]) == whole[chosen]).all()
    assert (secret.draws("order", first[3::7], second[3::7]) == whole[3::7]).all()


def test_one_second_number_for_all():
    """An integer stands for an array of it."""
    secret, first = Secret.fresh(), np.arange(9, dtype=np.uint64)
    repeated = np.full(9, 2**64 - 1, dtype=np.uint64)
    assert (secret.draws("x", first, 2**64 - 1) == secret.draws("x", first, repeated)).all()
    assert secret.draws("x", first[:0], 0).shape == (0, 2)


def test_different_things_get_different_bits():
    """Other secrets, purposes, positions and orders of a pair share no draw (false alarm below 1e-34)."""
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
    """Each of the 128 bits is one in half of a million draws (false alarm below 1e-9)."""
    size = 10**6
    drawn = Secret.fresh().draws("balance", np.arange(size, dtype=np.uint64), 0)
    tolerance = math.sqrt(size / 2 * math.log(2 * 128 / 1e-9))  # Hoeffding, 128 bits
    for word in drawn.T:
        for bit in range(64):
            ones = int(((word >> np.uint64(bit)) & np.uint64(1)).sum())
            assert abs(ones - size / 2) < tolerance


def test_a_seed_is_reproducible_and_marked():
    """A seeded secret says that it is not private."""
    first = np.arange(4, dtype=np.uint64)
    assert (Secret.from_seed(7).draws("x", first, 0) == Secret.from_seed(np.int64(7)).draws("x", first, 0)).all()
    assert not Secret.from_seed(7).private
    assert Secret.fresh().private


@pytest.mark.parametrize("seed", ["7", 7.0, True, None])
def test_only_integers_are_seeds(seed):
    """Anything else is refused."""
    with pytest.raises(InputError, match="seed"):
        Secret.from_seed(seed)


def test_a_secret_shows_and_copies_nothing():
    """Neither printing nor pickling nor copying gets at the key."""
    secret = Secret(b"k" * 32, private=True)
    assert repr(secret) == str(secret) == "Secret(private=True)"
    for spread in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(InputError, match="pickled or copied"):
            spread(secret)
    with pytest.raises(TypeError):
        vars(secret)
    with pytest.raises(InputError, match="32 bytes"):
        Secret(b"short", private=True)
