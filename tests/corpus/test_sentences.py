"""Sentences: the places where texts are cut, and the assignment of sentences to users."""

import polars as pl
import pyarrow as pa
import pytest

import voxpop as vp
from support.look import corpus_documents, read_engine
from voxpop.errors import InputError
from voxpop.reading.tokenizers import split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ('He said "no." Then left', ['He said "no."', "Then left"]),
        ("3.14 and v1.2 stay", ["3.14 and v1.2 stay"]),
        ("a line\nanother  \n\n third", ["a line", "another", "third"]),
        ("wait... what?! yes", ["wait...", "what?!", "yes"]),
        ("", [""]),
        (None, [""]),
    ],
)
def test_where_texts_are_cut(text, sentences):
    """Texts are cut after stops followed by space, and at line ends."""
    found, starts = split_sentences(pa.array([text, "x"], pa.large_string()))
    assert found.to_pylist() == [*sentences, "x"]
    assert starts.tolist() == [0, len(sentences), len(sentences) + 1]


@pytest.mark.parametrize("tokenizer", ["words", "whitespace"])
def test_a_users_sentences_become_documents_of_that_user(tokenizer):
    """The rows of one user may be separate."""
    table = pl.DataFrame({"who": [1, 2, 1], "text": ["a b. c", "d", None]})
    corpus = read_engine(table, user="who", text="text", tokenizer=vp.Tokenizer(tokenizer, sentences=True))
    stop = "" if tokenizer == "words" else "."
    expected = {("a", f"b{stop}"), ("c",)}
    users = [{tuple(document) for document in user if document} for user in corpus_documents(corpus)]
    assert sorted(map(sorted, users)) == sorted(map(sorted, [expected, {("d",)}]))


def test_only_texts_have_sentences():
    """Lists are already tokenised."""
    table = pl.DataFrame({"who": [1], "words": [["a"]]})
    with pytest.raises(InputError, match="sentences=True"):
        read_engine(table, user="who", tokens="words", tokenizer=vp.Tokenizer(sentences=True))
