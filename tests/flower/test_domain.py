"""Tests that the public domain of a round contains every possible vote once, at a place computed from public values."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import voxpop as vp
from voxpop.errors import InputError
from voxpop.mechanisms.heavy_hitters.constants import MOST_SUMS
from voxpop.mechanisms.heavy_hitters.plan import HittersPlan
from voxpop.mechanisms.heavy_hitters.protocol import Prefix, Rules, Trie, is_valid
from voxpop.privacy.trie.ballot import Ballot
from voxpop_flower.federation import LETTERS, Domain, public_symbols

SYMBOLS = ("a", "b", "c")


@given(st.integers(1, 3), st.integers(0, 3), st.integers(2, 6), st.integers(0, 2), st.data())
def test_the_domain_contains_exactly_the_valid_votes(unit, first, max_length, rounds, data):
    """The domain is compared with all strings of symbols, ended or not, that the server would accept as votes."""
    rules = Rules(Ballot(0.5, 2), 1 + max_length // unit, unit, max_length, first=first)
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
    placed = [domain.prefix_at(place) for place in range(len(domain))]
    assert set(placed) == valid
    assert len(domain) == len(placed) == len(valid)
    assert [domain.place_of(prefix) for prefix in placed] == list(range(len(domain)))
    assert all(domain.place_of(prefix) is None for prefix in every if prefix not in valid)


@pytest.mark.parametrize("unit", ["auto", 1, 2, 3])
@pytest.mark.parametrize("symbols", [3, 26])
def test_a_plan_contains_the_number_of_sums_per_round(unit, symbols):
    """The plan contains the size of the domain of the first round and, per live prefix, of the second round."""
    mechanism = vp.HeavyHitters(max_length=7, unit=unit)
    plan = HittersPlan(mechanism, vp.Budget(1, 1e-6), mechanism.rules(Ballot(0.5, 2)))  # The ballot has no influence.
    letters = tuple(LETTERS[:symbols])
    first = Domain(Trie(), plan.rules, letters)
    size = plan.rules.size(1)
    live = frozenset({Prefix(("a",) * size), Prefix(("b",) * size)})
    second = Domain(Trie((live,)), plan.rules, letters)
    assert plan.sums(symbols) == (len(first), len(second) // 2)


def test_a_vector_contains_only_votes_for_public_letters():
    """Votes can be read from their vector. A vote with a letter that is not public has no place in the vector."""
    domain = Domain(Trie(), Rules(Ballot(0.5, 2), 3, 1, 3), public_symbols("characters", None))
    votes = Counter({Prefix(("a",)): 3, Prefix(("z",)): 1})
    assert domain.votes(domain.vector(votes + Counter({Prefix(("é",)): 9}))) == votes
    assert domain.votes(domain.vector(votes) + domain.vector(votes)) == votes + votes
    assert domain.vector(votes).dtype == np.uint32


def test_a_round_with_too_many_sums_is_rejected():
    """A round has at most 16,777,216 sums.

    Larger rounds are rejected in advance, and the error contains the number of prefixes that would fit.
    """
    rules, letters = Rules(Ballot(0.5, 2), 3, 4, 12), public_symbols("characters", None)
    ten = Trie().grown(frozenset(Prefix(("a", "b", "c", letter)) for letter in "abcdefghij"))
    assert len(Domain(ten, rules, letters)) == 4_752_550
    more = Trie().grown(frozenset(Prefix(tuple(f"{a}{b}cd")) for a in "abcdef" for b in "abcdef"))
    with pytest.raises(InputError, match=r"round 2 has 17,109,180 sums.* 16,777,216 .* 35 live prefixes"):
        Domain(more, rules, letters)
    assert MOST_SUMS * 4 == 64 * 2**20


def test_a_list_of_300_000_tokens_is_accepted():
    """Later rounds have up to 55 live prefixes. The places of votes are computed instead of listed."""
    tokens, rules = tuple(sorted(f"t{number}" for number in range(300_000))), Rules(Ballot(0.5, 2), 5, 1, 5)
    assert len(Domain(Trie(), rules, tokens)) == 300_000
    later = Domain(Trie().grown(frozenset(Prefix((token,)) for token in tokens[:55])), rules, tokens)
    assert len(later) == 55 * 300_001
    last = Prefix((tokens[54], tokens[-1]))
    assert later.place_of(last) == len(later) - 1
    assert later.prefix_at(len(later) - 1) == last
    with pytest.raises(InputError, match="55 live prefixes"):
        Domain(Trie().grown(frozenset(Prefix((token,)) for token in tokens[:56])), rules, tokens)


def test_different_domains_have_different_digests():
    """Other letters, another trie or another length give another digest, so sums over another domain are detected."""
    rules, trie = Rules(Ballot(0.5, 2), 3, 1, 3), Trie().grown(frozenset({Prefix(("a",))}))
    domains = [
        Domain(trie, rules, SYMBOLS),
        Domain(trie, rules, ("a", "b", "d")),
        Domain(Trie().grown(frozenset({Prefix(("b",))})), rules, SYMBOLS),
        Domain(trie, Rules(Ballot(0.5, 2), 3, 2, 3, first=1), SYMBOLS),
    ]
    assert len({domain.digest for domain in domains}) == len(domains)


@pytest.mark.parametrize(
    ("alphabet", "declared", "count"),
    [("bytes", None, 256), ("characters", None, 26), ("characters", "éab", 3), ("tokens", "good morning", 2)],
)
def test_public_symbols_are_sorted_and_tokens_must_be_declared(alphabet, declared, count):
    """Public symbols are sorted, and tokens must be declared."""
    symbols = public_symbols(alphabet, declared)
    assert len(symbols) == count
    assert list(symbols) == sorted(symbols)
    with pytest.raises(InputError, match="public list"):
        public_symbols("tokens", None)
    with pytest.raises(InputError, match="twice"):
        public_symbols("characters", "aa")
