"""The public domain of a round: every vote that could be cast, once, at a place that follows from what is public."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxpop.errors import InputError
from voxpop.hitters.domain import MOST_SUMS, Domain, public_symbols
from voxpop.hitters.prefix import Prefix
from voxpop.hitters.rules import Rules
from voxpop.hitters.server import is_valid
from voxpop.hitters.trie import Trie

SYMBOLS = ("a", "b", "c")


@given(st.integers(1, 3), st.integers(0, 3), st.integers(2, 6), st.integers(0, 2), st.data())
def test_the_domain_is_every_valid_vote_and_nothing_else(unit, first, max_length, rounds, data):
    """Against all strings of symbols, ended and not, that the server would take for a vote."""
    rules = Rules(0.5, 2, 1 + max_length // unit, unit, max_length, first=first)
    trie = Trie()
    for number in range(1, rounds + 1):
        size = rules.size(number)
        grown = [Prefix(word) for word in product(SYMBOLS, repeat=min(size, max_length))]
        trie = trie.grown(frozenset(data.draw(st.lists(st.sampled_from(grown), max_size=3))))
    domain = Domain(trie, rules, SYMBOLS)
    every = [
        Prefix(word, ended)
        for size in range(max_length + 1)
        for word in product(SYMBOLS, repeat=size)
        for ended in (0, 1)
    ]
    valid = {Prefix(each.symbols, bool(each.ended)) for each in every if is_valid(each, trie, rules)}
    assert set(domain.prefixes) == valid
    assert len(domain) == len(domain.prefixes) == len(valid)


def test_votes_come_back_and_strangers_are_left_out():
    """A vector says what was put in; a letter that is not public has no place."""
    domain = Domain(Trie(), Rules(0.5, 2, 3, 1, 3), public_symbols("characters", None))
    votes = Counter({Prefix(("a",)): 3, Prefix(("z",)): 1})
    assert domain.votes(domain.vector(votes + Counter({Prefix(("é",)): 9}))) == votes
    assert domain.votes(domain.vector(votes) + domain.vector(votes)) == votes + votes
    assert domain.vector(votes).dtype == np.uint32


def test_vectors_are_bounded():
    """More than four million sums are refused before any is made, by the number of what may grow."""
    rules = Rules(0.5, 2, 3, 4, 12)
    trie = Trie().grown(frozenset(Prefix(("a", "b", "c", letter)) for letter in "abcdefghij"))
    with pytest.raises(InputError, match="round 2 has 4,752,550 prefixes that may grow"):
        Domain(trie, rules, public_symbols("characters", None))
    assert MOST_SUMS * 4 == 16 * 2**20
    thousand = Trie().grown(frozenset(Prefix((number,)) for number in range(1000)))
    tokens = tuple(str(number) for number in range(50_000))
    with pytest.raises(InputError, match="smaller `unit`, fewer `symbols`"):
        Domain(thousand, Rules(0.5, 2, 5, 1, 5), tokens)


@pytest.mark.parametrize(
    ("alphabet", "declared", "count"),
    [("bytes", None, 256), ("characters", None, 26), ("characters", "éab", 3), ("tokens", "good morning", 2)],
)
def test_public_symbols(alphabet, declared, count):
    """In an order that everybody knows; tokens must be declared."""
    symbols = public_symbols(alphabet, declared)
    assert len(symbols) == count
    assert list(symbols) == sorted(symbols)
    with pytest.raises(InputError, match="public list"):
        public_symbols("tokens", None)
    with pytest.raises(InputError, match="not repeat"):
        public_symbols("characters", "aa")
