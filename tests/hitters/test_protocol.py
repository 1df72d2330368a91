"""Tests that the client of one user, the arrays of all users and the paper's loops cast the same votes."""

from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import voxpop as vp
from naive.hitters import by_share, found_words, grow_trie, most_frequent
from naive.protocol import cast_vote, client_of, count_votes, round_votes, run_protocol, votes_cast
from support.exact import votes_gate
from support.look import read_engine
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.mechanisms.heavy_hitters.protocol import (
    ROOT,
    Electorate,
    Prefix,
    Rules,
    Trie,
    grow,
    grown_trie,
    is_over,
    is_valid,
    prefix_after,
    prefix_votes,
    spell,
    twins_of,
)
from voxpop.privacy.secret import Secret
from voxpop.privacy.trie.ballot import Ballot

LETTERS = "abé€𝄞"
WORDS = st.text(alphabet=LETTERS, min_size=1, max_size=6)
USERS = st.lists(st.lists(WORDS, min_size=1, max_size=5), min_size=1, max_size=40)


def rules_of(
    words: str,
    unit: int,
    rate: float,
    theta: int = 2,
    max_length: int = 6,
    again: float = 0.0,
    first: int = 0,
    alphabet: str = "characters",
) -> Rules:
    rounds = 1 + max(0, -(-(max_length - (first or unit)) // unit))
    ballot = Ballot(rate, theta, again, again)
    return Rules(ballot, rounds, unit, max_length, alphabet, words, first)


def corpus_of(users: list[list[str]], keys: list[int] | None = None) -> LocalCorpus:
    """Return a corpus with one row per user. If keys are given, the users have these keys."""
    table = pl.DataFrame({"who": list(range(len(users))), "what": users}, schema_overrides={"what": pl.List(pl.String)})
    corpus = read_engine(table, user="who", items="what")
    if keys is None:
        return corpus
    return LocalCorpus(corpus.tokens, corpus.user_start, np.array(keys, np.uint64), corpus.vocabulary, corpus.kind)


def symbols(word: str, alphabet: str) -> tuple[object, ...]:
    return tuple(word.encode()) if alphabet == "bytes" else tuple(word)


def all_clients(users, corpus, rules, alphabet="characters"):
    twins = twins_of(corpus.user_key)
    return [
        client_of(int(key), Counter(symbols(word, alphabet) for word in words), rules, int(twin))
        for words, key, twin in zip(users, corpus.user_key, twins, strict=True)
    ]


@given(
    USERS,
    st.sampled_from(["one", "many"]),
    st.integers(1, 4),
    st.sampled_from([0.25, 0.7, 0.999]),
    st.sampled_from(["characters", "bytes"]),
    st.integers(0, 3),
    st.booleans(),
    st.sampled_from([0.0, 0.5]),
    st.integers(0, 4),
)
def test_arrays_and_clients_cast_the_same_votes(users, words, unit, rate, alphabet, seed, same_key, again, first):
    """In every round, the same users cast the same votes for the same prefixes, and the same words are found."""
    rules = rules_of(words, unit, rate, 3, 9, again, first, alphabet)
    secret = Secret.from_seed(seed)
    corpus = corpus_of(users, [7] * len(users) if same_key else None)
    clients = all_clients(users, corpus, rules, alphabet)
    spelling = spell(corpus, rules)
    electorate = Electorate.of(spelling, corpus.user_key, rules)
    trie = Trie()
    for level in grown_trie(spelling, electorate, rules, votes_gate(rules, secret)).levels:
        known, size = rules.size(trie.rounds), rules.size(trie.rounds + 1)
        votes = round_votes(clients, trie, rules, secret)
        asked, cast = electorate.sampled(trie.rounds, rules, secret)
        having, chosen = electorate.choices(asked, trie.rounds, rules, secret)
        words = [spelling.word(number) for number in chosen.tolist()]
        said = zip(asked[having].tolist(), words, cast[having].tolist(), strict=True)
        assert {user: vote for user, vote in enumerate(votes) if vote is not None} == {
            user: (prefix_after(word, size), times)
            for user, word, times in said
            if prefix_after(word, known) in trie.live
        }
        counted = count_votes(votes, trie, rules)
        assert prefix_votes(spelling, electorate, trie, rules, secret) == counted
        trie = grow(trie, counted, rules)
        assert level == trie.levels[-1]
    assert is_over(trie, rules)
    assert trie == run_protocol(clients, rules, secret)


@given(USERS, st.sampled_from(["one", "many"]), st.integers(1, 4), st.integers(0, 3))
def test_clients_agree_with_the_loops_of_the_paper(users, words, unit, seed):
    """The trie equals the trie of the paper's loops, with the same coins and the same choice of words."""
    rules, secret = rules_of(words, unit, 0.7, max_length=8), Secret.from_seed(seed)
    corpus = corpus_of(users)
    clients = all_clients(users, corpus, rules)

    def sampled(user: int, number: int) -> bool:
        return votes_cast(user, 0, number - 1, rules, secret) > 0

    def choose(user: int, number: int, held: Counter[str]) -> str:
        if words == "one":
            return most_frequent(held)
        return by_share(held, int(secret.draws(f"word/round {number}", np.array([user], np.uint64), 0)[0, 0]))

    fitting = [Counter(word for word in held if len(word) <= rules.longest) for held in users]
    naive = grow_trie(fitting, sampled, choose, rules.ballot.theta, rules.rounds, unit)
    trie = run_protocol(clients, rules, secret)
    levels = [{"".join(p.symbols) + "$" * p.ended for p in level} for level in trie.levels]
    assert [level for level in levels if level] == naive
    assert {"".join(word) for word in trie.words} == found_words(naive)


def test_phrases_of_tokens_are_released(tmp_path):
    """With the alphabet of tokens, a word is a document. Common phrases are found in canonical order."""
    rows = [["good", "morning"], ["good"], ["how", "are", "you"], ["how", "are", "they", "and", "you"]]
    table = pl.DataFrame({"who": range(800), "what": [rows[i % 4] for i in range(800)]})
    corpus = read_engine(table, user="who", tokens="what")
    found = vp.HeavyHitters(max_length=4, alphabet="tokens").release(corpus, vp.Budget(2, 1e-6), seed=1)
    assert list(found) == [("good",), ("good", "morning"), ("how", "are", "you")]


@given(st.lists(st.lists(st.lists(st.integers(0, 3), max_size=5), max_size=3), min_size=1, max_size=30))
def test_arrays_and_clients_find_the_same_phrases(users):
    """Arrays and clients find the same phrases in documents of tokens, including empty and too long documents."""
    users = [[[f"t{token}" for token in document] for document in user] for user in users]
    table = pl.DataFrame(
        {
            "who": [number for number, user in enumerate(users) for _ in user] + [len(users)],
            "what": [document for user in users for document in user] + [["x"]],
        },
        schema_overrides={"what": pl.List(pl.String)},
    )
    corpus = read_engine(table, user="who", sequence="what")
    held: dict[int, list[tuple[str, ...]]] = {}
    for who, document in zip(table["who"], table["what"].to_list(), strict=True):
        held.setdefault(who, []).append(tuple(document))
    rules, secret = rules_of("many", 1, 0.9, max_length=5, alphabet="tokens"), Secret.from_seed(2)
    clients = [client_of(who, Counter(documents), rules) for who, documents in held.items()]
    spelling = spell(corpus, rules)
    trie = grown_trie(spelling, Electorate.of(spelling, corpus.user_key, rules), rules, votes_gate(rules, secret))
    assert trie == run_protocol(clients, rules, secret)


def test_users_with_the_same_key_are_sampled_independently():
    """Ten thousand users who share a key have separate coins (false alarm below 1e-9, 6.2 standard deviations)."""
    corpus = corpus_of([["ab"]] * 10_000, [1] * 10_000)
    rules = rules_of("one", 1, 0.3)
    electorate = Electorate.of(spell(corpus, rules), corpus.user_key, rules)
    for rounds in range(3):
        count = len(electorate.sampled(rounds, rules, Secret.from_seed(5))[0])
        assert abs(count - 3000) < 6.2 * (10_000 * 0.3 * 0.7) ** 0.5


@given(st.lists(st.integers(0, 5), max_size=30))
def test_users_with_equal_keys_are_numbered_in_order(keys):
    """The second user with a key gets the number 1."""
    twins = twins_of(np.array(keys, np.uint64))
    assert twins.tolist() == [keys[:place].count(key) for place, key in enumerate(keys)]


def test_a_user_does_not_vote_after_the_prefix_is_lost_or_the_word_has_ended():
    """A client votes only as long as the prefix of its word is in the trie and the word has not ended."""
    rules, secret = rules_of("one", 1, 0.5), Secret.from_seed(0)
    client = client_of(1, {("a", "b"): 1}, rules)
    trie = Trie()
    assert cast_vote(client, trie, rules, secret) == Prefix(("a",))
    assert cast_vote(client, trie.grown(frozenset()), rules, secret) is None
    trie = trie.grown(frozenset([Prefix(("a",))])).grown(frozenset([Prefix(("a", "b"))]))
    assert cast_vote(client, trie, rules, secret) == Prefix(("a", "b"), ended=True)
    assert cast_vote(client, trie.grown(frozenset([Prefix(("a", "b"), ended=True)])), rules, secret) is None
    assert cast_vote(client_of(1, {("a",) * 9: 1}, rules), Trie(), rules, secret) is None
    assert "a" not in repr(client).removeprefix("Client(private)")


@pytest.mark.parametrize(
    "vote",
    [
        None,
        "a",
        Prefix(("b", "c")),
        Prefix(("a",)),
        Prefix(("a", "b", "c")),
        Prefix(("b",), ended=True),
        Prefix((), ended=True),
        ROOT,
        Prefix(["a", "b"]),
    ],
)
def test_impossible_votes_are_not_counted(vote):
    """If "a" is in the trie, "ab" and the complete word "a" are valid votes, but the tested values are not."""
    trie, rules = Trie().grown(frozenset([Prefix(("a",))])), rules_of("one", 1, 0.5)
    good = [Prefix(("a", "b")), Prefix(("a",), ended=True)]
    assert all(is_valid(each, trie, rules) for each in good)
    assert not is_valid(vote, trie, rules)
    assert count_votes([(good[0], 1), (good[1], 3), (vote, 2), None], trie, rules) == Counter({good[0]: 1, good[1]: 3})


def test_a_run_stops_if_no_prefix_grows_and_after_the_last_round():
    """A run stops if no prefix grows, so the number of rounds is a function of the public trie."""
    rules = rules_of("one", 1, 0.5, max_length=3)
    trie = Trie()
    assert not is_over(trie, rules)
    assert is_over(trie.grown(frozenset()), rules)
    assert is_over(trie.grown(frozenset([Prefix(("a",), ended=True)])), rules)
    long = trie
    for size in range(1, 4):
        assert not is_over(long, rules)
        long = long.grown(frozenset([Prefix(("a",) * size)]))
    assert is_over(long, rules)
