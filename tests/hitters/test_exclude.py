"""Tests of the public words that users do not vote for, and of the one word that each user votes for."""

import re

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import voxpop as vp
from support.exact import votes_gate
from support.look import read_engine
from voxpop.cli import main
from voxpop.errors import InputError, SourceError
from voxpop.mechanisms.heavy_hitters.exclude import PublicList
from voxpop.mechanisms.heavy_hitters.protocol import Electorate, Rules, grown_trie, polled, prefix_votes, spell
from voxpop.privacy.secret import Secret
from voxpop.privacy.trie.ballot import Ballot

BUDGET = vp.Budget(1, 1e-6)
WORDS = st.text(alphabet="abé", min_size=1, max_size=6)
USERS = st.lists(st.lists(WORDS, max_size=5), min_size=1, max_size=30)


def rules_of(alphabet: str = "characters") -> Rules:
    return Rules(Ballot(0.9, 2, 0.2, 0.2), 3, 2, 5, alphabet, "one", 2)


def table_of(users: list[list[str]]) -> pl.DataFrame:
    """Return one row per user. One user has a word with symbols of another alphabet, so that no table is empty."""
    rows = [*users, ["z"]]
    return pl.DataFrame({"who": range(len(rows)), "what": rows}, schema_overrides={"what": pl.List(pl.String)})


def votes(corpus, rules: Rules, exclude: PublicList, secret: Secret):
    spelling = spell(corpus, rules, exclude)
    electorate = Electorate.of(spelling, corpus.user_key, rules)
    return grown_trie(spelling, electorate, rules, votes_gate(rules, secret)).levels


@given(USERS, st.sets(WORDS, max_size=3), st.integers(0, 3))
def test_excluded_words_are_removed_before_a_user_chooses(users, words, seed):
    """With a list of excluded words, the votes are the same as for a table without these words."""
    exclude, secret = PublicList.of(words), Secret.from_seed(seed)
    whole = read_engine(table_of(users), user="who", items="what")
    rest = read_engine(table_of([[w for w in held if w not in words] for held in users]), user="who", items="what")
    keys = {int(key): place for place, key in enumerate(rest.user_key)}
    assert set(keys) <= set(map(int, whole.user_key))
    assert votes(whole, rules_of(), exclude, secret) == votes(rest, rules_of(), PublicList.of(()), secret)


@given(USERS, st.sets(WORDS, max_size=3), st.sampled_from(["characters", "bytes"]), st.integers(0, 3))
def test_a_corpus_of_only_the_voted_words_gives_the_same_votes(users, words, alphabet, seed):
    """In every round, the votes of the reduced corpus equal those of the whole corpus.

    The reduced corpus contains only the words that users vote for.
    """
    exclude, secret, rules = PublicList.of(words), Secret.from_seed(seed), rules_of(alphabet)
    whole = read_engine(table_of(users), user="who", items="what")
    few = polled(whole, rules, exclude)
    assert votes(few, rules, PublicList.of(()), secret) == votes(whole, rules, exclude, secret)
    assert np.diff(few.user_start).max() <= 1
    assert set(few.vocabulary.to_pylist()).isdisjoint(words)
    assert len(few.vocabulary) == len(set(few.tokens.tolist()))


@given(USERS, st.lists(st.lists(WORDS, min_size=1, max_size=3), max_size=2), st.integers(0, 3))
def test_a_corpus_of_only_the_voted_phrases_gives_the_same_votes(users, phrases, seed):
    """The votes for documents of tokens are also the same.

    An excluded list of tokens excludes the document that equals it.
    """
    rules, secret = rules_of("tokens"), Secret.from_seed(seed)
    whole = read_engine(table_of(users), user="who", tokens="what")
    exclude = PublicList.of(map(tuple, phrases))
    few = polled(whole, rules, exclude)
    one, other = (spell(few, rules), spell(whole, rules, exclude))
    first, second = (Electorate.of(s, c.user_key, rules) for s, c in ((one, few), (other, whole)))
    assert prefix_votes(one, first, _root(), rules, secret) == prefix_votes(other, second, _root(), rules, secret)
    assert votes(few, rules, PublicList.of(()), secret) == votes(whole, rules, exclude, secret)
    held = {one.word(number) for number in range(one.sizes.size)}
    assert held.isdisjoint(map(tuple, phrases))


def _root():
    from voxpop.mechanisms.heavy_hitters.protocol import Trie

    return Trie()


TEXTS = pl.DataFrame({"who": range(800), "text": ["Sun SUN star", "Good Morning"] * 400})


@pytest.mark.parametrize(
    ("tokenizer", "listed", "gone"),
    [
        ("words", ["SUN", "New York"], {"sun"}),
        ("whitespace", ["SUN"], {"SUN"}),
        ("whitespace", ["sun"], set()),
        ("whitespace", ["Sun", "star "], {"star"}),
        ("characters", ["S"], {"s"}),
        (re.compile("[a-z]+"), ["SUNun"], {"un"}),
        (lambda texts: [text.split() for text in texts], ["Good"], {"Good"}),
    ],
)
def test_the_tokenizer_of_the_data_normalises_the_list(tokenizer, listed, gone):
    """A listed word is split like a text.

    The name of a callable tokenizer is unknown, so the entries must already be its tokens.
    """
    corpus = vp.read(TEXTS, user="who", text="text", tokenizer=tokenizer)
    plain = set(vp.HeavyHitters(max_length=8).release(corpus, BUDGET, seed=1))
    found = set(vp.HeavyHitters(max_length=8, exclude=listed).release(corpus, BUDGET, seed=1))
    assert found.isdisjoint(gone)
    assert (found != plain) == bool(gone & plain)


def test_passes_with_a_deny_list_find_further_words():
    """Each pass excludes the words that earlier passes released, so users vote for their next word."""
    table = pl.DataFrame({"who": [*range(600)] * 6, "what": ["tea"] * 1800 + ["milk"] * 1200 + ["oats"] * 600})
    corpus, found = vp.read(table, user="who", items="what"), []
    for _ in range(3):
        found += vp.HeavyHitters(max_length=6, exclude=found).release(corpus, BUDGET, seed=2).to_list()
    assert found == ["tea", "milk", "oats"]


def test_phrases_are_excluded_by_an_earlier_release_and_by_texts():
    """A phrase of a release is a list of tokens, and the tokenizer splits strings."""
    corpus = vp.read(TEXTS, user="who", text="text")
    hitters = vp.HeavyHitters(max_length=4, alphabet="tokens")
    found = hitters.release(corpus, BUDGET, seed=1)
    assert set(found) == {("sun", "sun", "star"), ("good", "morning")}
    assert list(vp.HeavyHitters(4, "tokens", exclude=found).release(corpus, BUDGET, seed=1)) == []
    rest = vp.HeavyHitters(4, "tokens", exclude=["GOOD  morning!"]).release(corpus, BUDGET, seed=1)
    assert list(rest) == [("sun", "sun", "star")]


def test_plan_and_release_record_size_and_fingerprint(tmp_path):
    """The record contains the size and the fingerprint of the list, but no words.

    The saved plan can be verified but cannot run.
    """
    listed = tmp_path / "words.txt"
    listed.write_text("Sun\n\n star \nSun\n", encoding="utf-8-sig")
    hitters = vp.HeavyHitters(max_length=6, exclude=listed)
    assert hitters == vp.HeavyHitters(max_length=6, exclude=["star", "Sun"])
    assert hash(hitters) == hash(vp.HeavyHitters(max_length=6, exclude={"star": 1, "Sun": 2}.keys()))
    assert hitters != vp.HeavyHitters(max_length=6)
    record = hitters.plan(BUDGET).to_dict()["exclude"]
    assert record["size"] == 2
    corpus = vp.read(TEXTS, user="who", text="text")
    release = hitters.release(corpus, BUDGET)
    release.save(tmp_path / "found")
    assert vp.load(tmp_path / "found").plan.to_dict()["exclude"] == record
    assert "star" not in (tmp_path / "found" / "release.json").read_text()
    assert main(["verify", str(tmp_path / "found")]) == 0
    assert "public list of 2 (sha256 " in str(hitters.plan(BUDGET))
    with pytest.raises(InputError, match="Give the list again"):
        vp.HeavyHitters(max_length=6, exclude=record).release(corpus, BUDGET)


def test_the_command_line_reads_excluded_words_from_a_file(tmp_path):
    """The option `--exclude` takes a file with one word per line."""
    TEXTS.write_parquet(tmp_path / "t.parquet")
    (tmp_path / "words.txt").write_text("sun\n")
    call = ["heavy-hitters", str(tmp_path / "t.parquet"), "--user", "who", "--text", "text", "--epsilon", "1"]
    more = ["--delta", "1e-6", "--seed", "1", "--exclude", str(tmp_path / "words.txt"), "-o", str(tmp_path / "found")]
    assert main([*call, *more]) == 0
    assert "sun" not in vp.load(tmp_path / "found").to_list()
    assert vp.load(tmp_path / "found").plan.to_dict()["exclude"]["size"] == 1


@pytest.mark.parametrize("given", [3, None, [3], ["a", ("b", 1)], b"abc", [b"abc"], {1: 2}.keys()])
def test_other_lists_are_rejected_without_quoting_them(given):
    """A value of the wrong type raises an error that names the type found."""
    with pytest.raises(InputError, match="`exclude` must be a list of strings"):
        vp.HeavyHitters(exclude=given)


@pytest.mark.parametrize("given", [["a", "\ud800"], [("a", "\udfff")]])
def test_half_of_a_surrogate_pair_is_rejected_without_quoting_it(given):
    """No token contains half of a surrogate pair, and encoding such an entry would fail later."""
    with pytest.raises(InputError, match="half of a surrogate pair"):
        vp.HeavyHitters(exclude=given)


def test_a_file_that_cannot_be_read_is_an_error(tmp_path):
    """The error names the file and quotes none of its bytes."""
    (tmp_path / "latin").write_bytes(b"caf\xe9\n")
    for name in ("latin", "missing"):
        with pytest.raises(SourceError, match="UTF-8 with one word per line"):
            vp.HeavyHitters(exclude=tmp_path / name)
