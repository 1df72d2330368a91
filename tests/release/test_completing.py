"""Tests that compare `Release.complete` with a search over tuples, and tests of how prompts are split into tokens."""

import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import voxpop as vp
from naive import corpus as naive_corpus
from support.look import load_engine, read_engine
from voxpop.errors import InputError
from voxpop.reading.one_text import cut_prompt
from voxpop.release.result import StoredPlan
from voxpop.release.table import SCHEMA, table_of_lists

pytestmark = pytest.mark.usefixtures("fixed_secrets")

PLAN, GUARANTEE = StoredPlan({}), vp.Guarantee(4, 1e-7)
TOKENS = st.text("ab", min_size=1, max_size=2)
GRAMS = st.sets(st.lists(TOKENS, min_size=1, max_size=4).map(tuple), max_size=40)


def release_of(grams, token_source=""):
    rows = sorted(set(grams), key=lambda gram: (len(gram), gram))  # Strings and their bytes have the same order.
    table = pa.table({"gram": [list(row) for row in rows], "length": [len(row) for row in rows]}, schema=SCHEMA)
    return vp.Release(table, PLAN, GUARANTEE, token_source)


def through(grams, beginning):
    return sum(gram[: len(beginning)] == beginning for gram in grams)


def naive_continuations(grams, tokens, begun, limit):
    """Return the continuations of every context, from the longest to the shortest, by searching all grams."""
    found = []
    shortest = 0 if begun is not None or not tokens else 1
    for size in range(len(tokens), shortest - 1, -1):
        context = tokens[len(tokens) - size :]
        offered = {gram[size] for gram in grams if len(gram) > size and gram[:size] == context}
        fresh = offered - {token for token, *_ in found}
        fresh = {token for token in fresh if token.startswith(begun or "")}

        def key(token, context=context):
            ends = [(*context, token)[start:] for start in range(len(context) + 1)]
            # The comparison ends at the first prefix without grams, because `Completer` does not use later prefixes.
            counts = []
            for end in ends:
                counts.append(-through(grams, end))
                if counts[-1] == 0:
                    break
            return counts, [each.encode() for each in (*context, token)]

        found += [(token, context, through(grams, (*context, token))) for token in sorted(fresh, key=key)]
    return found[:limit]


def seen(completions):
    return [(each.token, each.context, each.phrases) for each in completions]


def downward_closed(grams):
    return {gram[i:j] for gram in grams for i in range(len(gram)) for j in range(i + 1, len(gram) + 1)}


@given(GRAMS.map(downward_closed), st.lists(TOKENS, max_size=5), st.integers(1, 6))
def test_completions_equal_those_of_a_search_over_all_grams(grams, prompt, limit):
    """If every part of a gram is released, contexts, order and counts are the same."""
    found = release_of(grams).complete(prompt, limit)
    assert seen(found) == naive_continuations(grams, tuple(prompt), None, limit)


@given(GRAMS, st.lists(TOKENS, max_size=5))
def test_completions_are_found_if_parts_of_grams_are_missing(grams, prompt):
    """For any set of grams, the continuations and contexts equal those of the search, possibly in another order."""
    found = seen(release_of(grams).complete(prompt, 1000))
    expected = naive_continuations(grams, tuple(prompt), None, 1000)
    assert sorted(found) == sorted(expected)
    assert [len(context) for _, context, _ in found] == sorted((len(c) for _, c, _ in found), reverse=True)


@given(GRAMS.map(downward_closed), st.lists(TOKENS, max_size=3), st.text("ab", max_size=2))
def test_unfinished_words_are_completed(grams, before, begun):
    """If the last word was not released, it is completed in the context of the words before it."""
    begun = begun + "c"
    grams = grams | downward_closed({(*gram, begun + "x") for gram in sorted(grams)[:5]})
    found = release_of(grams).complete(" ".join([*before, begun]), 5)
    assert seen(found) == naive_continuations(grams, tuple(before), begun, 5)


PHRASES = {("thank", "you", "for"), ("thank", "you", "f"), ("you", "found"), ("x", "the"), ("the", "end"), ("f", "x")}


@pytest.mark.parametrize(
    ("prompt", "tokens"),
    [
        ("thank you", ["f", "for", "found"]),
        ("THANK  you ", ["f", "for", "found"]),
        ("thank you fo", ["for", "found"]),
        ("thank you f", ["x"]),  # "f" is released after "you", so it is a whole token.
        ("x f", ["f", "for", "found"]),  # No gram begins with "x f", so "f" is the beginning of a word.
        ("nothing f", ["x"]),
        ("x the end", ["end"]),  # No token follows "end", so "end" is completed to itself.
        ("unheard ", []),
        ("unheard", []),
    ],
)
def test_the_last_word_of_a_prompt_can_be_unfinished(prompt, tokens):
    """A last word is a whole token if it was released in its context and a token follows it.

    Otherwise, it is treated as the beginning of a word.
    """
    assert [each.token for each in release_of(downward_closed(PHRASES)).complete(prompt)] == tokens


def test_an_empty_prompt_returns_first_tokens():
    """Tokens with which more grams begin are returned first."""
    found = release_of([("a",), ("b",), ("b", "a")]).complete("")
    assert seen(found) == [("b", (), 2), ("a", (), 1)]
    assert found[0].gram == ("b",)


def test_an_empty_release_has_no_completions():
    """The result is an empty list."""
    assert release_of([]).complete("a") == []


@pytest.mark.parametrize(
    ("reading", "prompt", "tokens"),
    [
        ("words", "Don't!! panic", ["don't", "panic"]),
        ("words", "Don\u2019t \u2018panic\u2019", ["don't", "panic"]),
        ("words", "see https://example.org/a/b panic", ["see", "panic"]),
        ("words", "CAFE\u0301", ["caf\u00e9"]),
        ("whitespace", "Don't!! panic", ["Don't!!", "panic"]),
        ("characters", "Ab c", ["a", "b", "c"]),
        ("regex:[a-z]+", "don't", ["don", "t"]),
        ("", "Don't!! PANIC", ["Don't!!", "panic"]),
    ],
)
def test_prompts_are_split_like_the_texts(reading, prompt, tokens):
    """Prompts are split by the tokenizer that the release records, or at white space if none is recorded."""
    release = release_of([*((token,) for token in tokens), (*tokens, "next")], reading)
    assert release.complete(f"{prompt} ")[0].gram == (*tokens, "next")


def test_a_word_with_an_apostrophe_can_be_unfinished():
    """A last word with either kind of apostrophe can be unfinished. An apostrophe at the end completes the word."""
    for text in ("I don't", "I don\u2019t"):
        assert cut_prompt(text, "words", ()) == (["i", "don't"], True)
    assert cut_prompt("I don\u2019", "words", ()) == (["i", "don"], False)


def test_an_item_with_spaces_is_completed_as_a_whole():
    """Items are not split at white space."""
    release = release_of([("New",), ("New York",), ("York",)], "items")
    assert [each.token for each in release.complete("New ")] == ["New York"]
    assert [each.token for each in release.complete("New")] == ["New", "New York"]


@given(st.text(st.characters(codec="utf-8"), max_size=30))
def test_words_equal_the_words_of_private_texts(text):
    """The tokenizer of prompts agrees with the reference implementation of the tokenizer of private texts."""
    assert cut_prompt(text, "words", ()).tokens == naive_corpus.words(text)


@pytest.mark.parametrize("prompt", [3, None, [3], b"thank", {"a": 1}])
def test_invalid_prompts_are_rejected(prompt):
    """A prompt that is neither a text nor a list of strings raises `InputError`."""
    with pytest.raises(InputError, match="a prompt must be a text or a list of tokens"):
        release_of([("a",)]).complete(prompt)


@pytest.mark.parametrize("first", [0, -1, 2.5, True, "3"])
def test_invalid_numbers_of_rows_are_rejected(first):
    """Any number of rows other than a whole number of at least 1 raises `InputError`."""
    with pytest.raises(InputError, match="`first` must be a whole number"):
        release_of([("a",)]).complete("a", first)


def test_saved_releases_contain_the_name_of_the_tokenizer(tmp_path):
    """If the tokenizer is unknown, no name is saved."""
    release_of([("a",)], "words").save(tmp_path / "known")
    release_of([("a",)]).save(tmp_path / "unknown")
    assert vp.load(tmp_path / "known").token_source == "words"
    assert vp.load(tmp_path / "known") != vp.load(tmp_path / "unknown")
    assert b"token_source" not in (tmp_path / "unknown" / "release.json").read_bytes()


def test_mechanisms_record_the_tokenizer_of_texts(tmp_path):
    """`read` records the name of the tokenizer, and saved corpora and all kinds of releases contain it."""
    import re

    import polars as pl

    table = pl.DataFrame({"who": range(600), "what": ["Thank YOU", "thank you"] * 300})
    budget = vp.Budget(4, 1e-7)
    corpus = read_engine(table, user="who", text="what")
    corpus.save(tmp_path / "corpus")
    for each in (corpus, load_engine(tmp_path / "corpus")):
        phrases = vp.NGrams(max_length=2).release(each, budget, seed=1)
        assert (phrases.token_source, [c.token for c in phrases.complete("THANK ")]) == ("words", ["you"])
    assert vp.Items().release(corpus, budget).token_source == "words"
    assert vp.HeavyHitters().release(corpus, budget).token_source == "words"
    assert read_engine(table, user="who", items="what").token_source == "items"
    assert read_engine(table, user="who", text="what", tokenizer=re.compile("[a-z]+")).token_source == "regex:[a-z]+"
    assert read_engine(table, user="who", text="what", tokenizer=re.compile("[a-z]+", re.I)).token_source == ""
    assert read_engine(table, user="who", text="what", tokenizer=lambda texts: [[] for _ in texts]).token_source == ""


def test_a_completion_takes_less_than_ten_milliseconds(capsys):
    """A call on 100,000 phrases takes about 0.1 ms of processor time. The limit is ten times the documented 1 ms."""
    numbers = np.arange(60_000)
    triples = np.stack([numbers % 300, numbers % 331, numbers % 7], axis=1)
    rows = [np.unique(triples[:, :length], axis=0) for length in (1, 2, 3)]
    tokens = pa.array([f"w{number:03}" for number in range(331)]).take(pa.array(np.concatenate([*map(np.ravel, rows)])))
    lengths = np.repeat([1, 2, 3], [len(each) for each in rows]).astype(np.int32)
    grams = pa.ListArray.from_arrays(np.append(0, np.cumsum(lengths)), tokens)
    release = vp.Release(pa.table([grams, lengths], schema=SCHEMA), PLAN, GUARANTEE)
    assert len(release) > 100_000
    release.complete("w001")
    prompts = [f"w{i % 300:03} w{i % 331:03} w" for i in range(1000)]
    assert release.complete(prompts[7])[0].gram == ("w007", "w007", "w000")
    begun = time.process_time()
    for prompt in prompts:
        release.complete(prompt)
    seconds = (time.process_time() - begun) / len(prompts)
    print(f"complete on {len(release):,} phrases: {1000 * seconds:.3f} ms of processor time")
    assert seconds < 10 * 0.001


def test_counts_rank_completions():
    """Within a context, continuations are ordered by their number of users. Continuations without a count are last."""
    rows = [["a"], ["b"], ["c"], ["a", "b"], ["a", "c"], ["a", "c", "d"], ["b", "e", "f"]]
    release = vp.Release(table_of_lists(rows), StoredPlan({}), vp.Guarantee(4, 1e-7), "whitespace")
    counts = vp.Counts(release, np.array([9, 8, 7, 50, 6, 5, 4]), 1.0, StoredPlan({}), vp.Guarantee(1, 1e-8))
    assert [each.token for each in release.complete("a ")] == ["c", "b"]
    assert [(each.token, each.users) for each in counts.complete("a ")] == [("b", 50), ("c", 6)]
    assert [(each.token, each.users) for each in counts.complete("b ")] == [("e", None)]
    assert [each.token for each in counts.complete("a ", 1)] == ["b"]
    assert {each.users for each in release.complete("a ")} == {None}
