"""Tests of the order in which users are weighed. An additional user does not reorder other users on any path."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.corpora import corpus_of
from support.three_paths import (
    FewBits,
    distance,
    in_memory,
    l2_shares,
    on_spark,
    users_of,
    weigh_in_memory,
    weigh_on_spark,
    weigh_within_limit,
    within_limit,
)
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.engine.local.weigh import weighing_order
from voxpop.privacy.secret import Secret

PATHS = pytest.mark.parametrize("path", [in_memory, within_limit, on_spark])
LOW = st.tuples(st.integers(0, 6), st.sampled_from([2, 4, 8, 16, 32])).flatmap(
    # One draw of bytes takes less time than a draw of each number.
    lambda shape: st.binary(min_size=shape[1], max_size=shape[1]).map(
        lambda drawn: [(n & 3) << shape[0] for n in drawn]
    )
)
HASHES = st.one_of(LOW, LOW.map(lambda hashes: [2**64 - 1 - each for each in hashes]), st.just([5] * 16))


@PATHS
@given(hashes=HASHES, data=st.data())
@settings(max_examples=60, deadline=None)
def test_users_are_sorted_by_hash_and_then_by_key(path, hashes, data):
    """The order is exact on every path, and users with the same hash or the same key remain separate users."""
    keys = data.draw(st.lists(st.integers(0, len(hashes) - 1), min_size=1, max_size=40), label="keys")
    sizes = data.draw(st.lists(st.integers(1, 70), min_size=len(keys), max_size=len(keys)), label="sizes")
    expected = sorted(range(len(keys)), key=lambda place: (hashes[keys[place]], keys[place]))
    assert path(users_of(keys, sizes), FewBits(hashes)) == expected


@PATHS
@given(hashes=HASHES, data=st.data())
@settings(max_examples=60, deadline=None)
def test_an_additional_user_does_not_reorder_the_other_users(path, hashes, data):
    """Any user can be removed, whether or not the number of users crosses a power of two."""
    keys = data.draw(st.permutations(range(len(hashes))), label="keys")
    extra = data.draw(st.integers(0, len(keys) - 1), label="extra")
    fewer = [key for place, key in enumerate(keys) if place != extra]
    every, left = (users_of(some, [1] * len(some)) for some in (keys, fewer))
    order = [keys[place] for place in path(every, FewBits(hashes)) if place != extra]
    assert order == [fewer[place] for place in path(left, FewBits(hashes))]


@PATHS
@given(hashes=HASHES, data=st.data())
@settings(max_examples=60, deadline=None)
def test_the_weighing_order_does_not_depend_on_positions(path, hashes, data):
    """Any order of users in the table gives the same weighing order."""
    shuffled = data.draw(st.permutations(range(len(hashes))), label="keys")
    orders = [
        [keys[place] for place in path(users_of(keys, [1] * len(keys)), FewBits(hashes))]
        for keys in (list(range(len(hashes))), shuffled)
    ]
    assert orders[0] == orders[1]


EIGHT = [8, 0, 64, 128, 192, 256, 320, 384]


@PATHS
def test_an_eighth_user_does_not_reorder_the_other_users(path):
    """In a broken variant, the number of compared bits depended on the number of users, so two users were swapped."""
    every = path(users_of(range(8), [1] * 8), FewBits(EIGHT))
    assert [user for user in every if user < 7] == path(users_of(range(7), [1] * 7), FewBits(EIGHT))
    assert sorted(every) == list(range(8))


WEIGHERS = pytest.mark.parametrize("weigh", [weigh_in_memory, weigh_within_limit, weigh_on_spark])


@WEIGHERS
def test_the_eighth_user_changes_the_histogram_by_at_most_one(weigh):
    """When the bits depended on the number of users, two of seven users were swapped, at a distance of 1.1803."""
    held = ["ab", "abc", "z", "z", "z", "a", "z", "c"]
    every, fewer = (corpus_of([[[*items]] for items in some]) for some in (held, held[:7]))
    secret, shares = FewBits(EIGHT), l2_shares(4, 1.86)
    apart = distance(*(weigh(corpus, shares, secret, "test") for corpus in (every, fewer)))
    assert 0.1 < apart <= 1 + 1e-9, apart


def by_the_bits_that_users_leave(keys, secret, pass_name):
    """Ignore as many low bits as the number of users has, as a broken variant within a memory limit once did."""
    return by_bits(keys.size.bit_length(), keys, secret, pass_name)


def by_33_bits(keys, secret, pass_name):
    """Order users who agree in 33 bits by position, as a broken variant in memory and on Spark once did."""
    return by_bits(31, keys, secret, pass_name)


def by_bits(low, keys, secret, pass_name):
    hashes = secret.draws(f"order/{pass_name}", keys, 0)[:, 0]
    return np.argsort(hashes >> np.uint64(low), kind="stable")


def test_a_mutant_whose_bits_depend_on_the_number_of_users_is_detected(monkeypatch):
    """The search with the same users finds a distance above 1 for the broken variant."""
    monkeypatch.setattr("voxpop.engine.local.corpus.weighing_order", by_the_bits_that_users_leave)
    with pytest.raises(AssertionError, match=r"1\.1"):
        test_the_eighth_user_changes_the_histogram_by_at_most_one(weigh_in_memory)


@pytest.mark.parametrize("twin", [by_33_bits, by_the_bits_that_users_leave])
def test_a_mutant_that_orders_by_position_is_detected(twin):
    """In the mutants, two users with equal compared bits are weighed in another order if they exchange positions."""
    secret, keys = FewBits([3, 3, 3, 3]), np.arange(4, dtype=np.uint64)
    orders = [some[twin(some, secret, "x")].tolist() for some in (keys, keys[::-1])]
    assert orders[0] != orders[1]
    assert [some[weighing_order(some, secret, "x")].tolist() for some in (keys, keys[::-1])] == [[0, 1, 2, 3]] * 2


MILLIONS = 1 << 23


def swapped_by_the_twin(secret, pass_name):
    """Return the pairs of users that are swapped if 40 bits are compared for 2^23 users, and 41 for one user fewer."""
    hashes = secret.draws(f"order/{pass_name}", np.arange(MILLIONS, dtype=np.uint64), 0)[:, 0]
    order = np.argsort(hashes)
    first, second = order[:-1], order[1:]
    differ = hashes[first] ^ hashes[second]
    found = (differ < 1 << 24) & (differ >= 1 << 23) & (first > second)
    return np.stack([first[found], second[found]], axis=1)


def millions(pairs, count):
    """Return a corpus of users. Only a few users have items.

    One user of each pair has two words, and the other user has one of these words. The last user has a separate word.
    """
    held = np.zeros(MILLIONS, np.int64)
    held[pairs[:, 0]], held[pairs[:, 1]], held[-1] = 1, 2, 1
    user_start = np.concatenate([[0], np.cumsum(held[:count])])
    tokens = np.full(user_start[-1], 2 * len(pairs), np.int32)
    for number, (one, other) in enumerate(pairs):
        tokens[user_start[one]] = 2 * number
        tokens[user_start[other] : user_start[other] + 2] = 2 * number, 2 * number + 1
    words = pa.array([f"w{number:02}" for number in range(2 * len(pairs) + 1)], pa.large_string())
    return LocalCorpus(tokens, user_start, np.arange(count, dtype=np.uint64), words, "items")


@pytest.mark.slow
@pytest.mark.parametrize("weigh", [weigh_in_memory, weigh_within_limit])
def test_one_user_among_two_to_the_23_changes_the_histogram_by_at_most_one(weigh, record_property):
    """When the number of bits depended on the number of users, real hashes swapped eight pairs of other users."""
    secret, pass_name = Secret.from_seed(1), "round 0/length 1"
    pairs = swapped_by_the_twin(secret, pass_name)
    assert len(pairs) == 8
    room = {} if weigh is weigh_in_memory else {"room": 1 << 30}
    one, other = (
        weigh(millions(pairs, count), l2_shares(10, 1.86), secret, pass_name, **room)
        for count in (MILLIONS, MILLIONS - 1)
    )
    record_property("figure", f"{distance(one, other):.4f} apart")
    assert 0.99 < distance(one, other) <= 1 + 1e-9
