"""Tests of all kinds of tokenisers."""

import re

import polars as pl
import pytest

import voxpop as vp
from support.look import corpus_documents, read_engine

TEXTS = ["Hello,  World\u2003x", "Añ b", ""]


def tokens(tokenizer: object) -> list[list[str]]:
    table = pl.DataFrame({"who": range(len(TEXTS)), "text": TEXTS})
    return [user[0] for user in corpus_documents(read_engine(table, user="who", text="text", tokenizer=tokenizer))]


@pytest.mark.parametrize(
    ("tokenizer", "expected"),
    [
        ("words", [["hello", "world", "x"], ["añ", "b"], []]),
        ("whitespace", [["Hello,", "World", "x"], ["Añ", "b"], []]),
        ("characters", [list("hello,worldx"), list("añb"), []]),
        (re.compile(r"[A-Z]\w*"), [["Hello", "World"], ["Añ"], []]),
        (lambda batch: [text.split("l") for text in batch], [["He", "", "o,  Wor", "d\u2003x"], ["Añ b"], [""]]),
    ],
)
def test_each_tokenizer_splits_as_documented(tokenizer, expected):
    """A tokeniser is a name, a pattern or a callable."""
    assert tokens(tokenizer) == expected


@pytest.mark.parametrize(
    ("tokenizer", "words"),
    [
        ("word", '"words", "whitespace", "characters"'),
        (3, "callable"),
        (lambda batch: [["a"]], "3 lists, got 1"),
        (lambda batch: [[1] for _ in batch], "different type"),
        (lambda batch: None, "NoneType"),
    ],
)
def test_invalid_tokenizers_are_rejected(tokenizer, words):
    """Unknown names, objects of other types, and callables with wrong results are rejected."""
    with pytest.raises(vp.errors.InputError, match=re.escape(words)):
        tokens(tokenizer)


def test_lack_of_memory_is_not_reported_as_an_error_of_the_tokenizer():
    """A MemoryError is propagated without its message, because each engine gives its own advice about memory."""

    def hungry(texts):
        raise MemoryError(f"too long: {texts}")

    with pytest.raises(MemoryError) as caught:
        tokens(hungry)
    assert not any(text in str(caught.value) for text in TEXTS if text)
    assert caught.value.__suppress_context__
