"""Tests of the positions where sentences end, and of the assignment of sentences to users."""

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
        ("Wait... What?! yes", ["Wait...", "What?!", "yes"]),
        ("an abbreviation, e.g. this, ends nothing", ["an abbreviation, e.g. this, ends nothing"]),
        ("天气很好。我们去公园！谢谢", ["天气很好。", "我们去公园！", "谢谢"]),
        ("「行きます。」そうですか？はい", ["「行きます。」", "そうですか？", "はい"]),
        ("आप कैसे हैं। मैं ठीक हूँ॥ अच्छा", ["आप कैसे हैं।", "मैं ठीक हूँ॥", "अच्छा"]),
        ("كيف حالك؟ أنا بخير", ["كيف حالك؟", "أنا بخير"]),
        ("آج موسم اچھا ہے۔ چلو", ["آج موسم اچھا ہے۔", "چلو"]),
        ("Բարև։ Լավ եմ", ["Բարև։", "Լավ եմ"]),
        ("ሰላም። ደህና ነህ፧ አዎ", ["ሰላም።", "ደህና ነህ፧", "አዎ"]),
        ("မင်္ဂလာပါ။ ကောင်းတယ်။", ["မင်္ဂလာပါ။", "ကောင်းတယ်။"]),
        ("a line\u2028another\u2029third", ["a line", "another", "third"]),
        ("", [""]),
        (None, [""]),
    ],
)
def test_texts_are_split_after_full_stops_and_at_line_ends(text, sentences):
    """The full stops of every script end a sentence, as in UAX #29."""
    found, starts = split_sentences(pa.array([text, "x"], pa.large_string()))
    assert found.to_pylist() == [*sentences, "x"]
    assert starts.tolist() == [0, len(sentences), len(sentences) + 1]


@pytest.mark.parametrize("tokenizer", ["words", "whitespace"])
def test_a_users_sentences_become_documents_of_that_user(tokenizer):
    """The rows of one user need not be adjacent."""
    table = pl.DataFrame({"who": [1, 2, 1], "text": ["A b. C", "d", None]})
    corpus = read_engine(table, user="who", text="text", tokenizer=vp.Tokenizer(tokenizer, sentences=True))
    stop = "" if tokenizer == "words" else "."
    a, c = "ac" if tokenizer == "words" else "AC"
    expected = {(a, f"b{stop}"), (c,)}
    users = [{tuple(document) for document in user if document} for user in corpus_documents(corpus)]
    assert sorted(map(sorted, users)) == sorted(map(sorted, [expected, {("d",)}]))


def test_the_sentences_option_is_rejected_for_lists():
    """The option is rejected for lists, because lists are already tokenised."""
    table = pl.DataFrame({"who": [1], "words": [["a"]]})
    with pytest.raises(InputError, match="sentences=True"):
        read_engine(table, user="who", tokens="words", tokenizer=vp.Tokenizer(sentences=True))
