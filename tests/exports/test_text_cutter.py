"""Tests that `Cutter` splits one text as a corpus splits many texts."""

import pickle
import re

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import voxpop as vp
from support.look import corpus_documents, read_engine
from voxpop.reading.one_text import Cutter

PIECES = [
    *"aA zZ hHtTpPsSwW:/.'09-_\u2018\u2019\u02bc\uff07",
    "\n",
    "\x1c",
    "é",
    "e\u0301",
    "\u0301",
    "İ",
    "Σ",
    "σ",
    "ß",
    "ﬁ",
    "한",
    "½",
    *'\u00ad\u200d\ufe0f\u0307\u00b7"()今กに\u3002',
    "http://",
    "www.",
]
TEXTS = st.one_of(st.text(max_size=30), st.lists(st.sampled_from(PIECES), max_size=20).map("".join))


def by_corpus(text, tokenizer):
    table = pl.DataFrame({"who": [1], "text": [text]}, schema={"who": pl.Int64, "text": pl.String})
    return corpus_documents(read_engine(table, user="who", text="text", tokenizer=tokenizer))[0][0]


@pytest.mark.parametrize("tokenizer", ["words", "whitespace", "characters", re.compile(r"[A-Z]\w*")])
@given(text=TEXTS)
@settings(max_examples=150)
def test_a_text_is_split_as_in_the_corpus(tokenizer, text):
    """Every tokenizer gives the same tokens as a corpus of the same text."""
    assert Cutter(tokenizer)(text) == by_corpus(text, tokenizer)


def test_a_callable_receives_one_text_at_a_time():
    """A callable tokenizer receives a list of one text."""
    assert Cutter(lambda texts: [text.split("|") for text in texts])("a b|c") == ["a b", "c"]


def test_cutters_can_be_pickled():
    """Cutters can be pickled, so a vectorizer can be saved and sent to other processes."""
    assert pickle.loads(pickle.dumps(Cutter("words")))("A b") == ["a", "b"]


@pytest.mark.parametrize(
    ("tokenizer", "text", "words"), [(None, "a b", "lists of tokens"), ("words", ["a"], "tokenizer=None")]
)
def test_texts_and_lists_are_distinguished(tokenizer, text, words):
    """A text instead of a list of tokens, or a list instead of a text, raises an error."""
    with pytest.raises(vp.errors.InputError, match=words):
        Cutter(tokenizer)(text)


def test_unknown_tokenizers_are_rejected():
    """The error for an unknown tokenizer lists the valid names."""
    with pytest.raises(vp.errors.InputError, match="words, whitespace, characters"):
        Cutter("syllables")
