"""Tests that Hugging Face tokenizers have the tokens of the release in the same order."""

import re

import pytest

import voxpop as vp
from support.languages import SENTENCES, SIGNS
from voxpop.reading.one_text import Cutter
from voxpop.reading.segmenting import needs_dictionary, words

pytest.importorskip("tokenizers", reason="tokenizers is not installed: make exports")

TEXTS = [
    "Thank you VERY much, don't!",
    "see https://thank.you/very and www.x now, HTTPS://Y",
    "ÉTE\u0301 e\u0301te\u0301 snake_case 'quoted' 12½",
    "ΣΑΣ ΣΣ. İSTANBUL straße",
    "don\u2019t \u2018quote\u2019 rock\u2018n\u2019roll p\u02bcyat\u02bc \u02bcem l\uff07eau \u2019",
    "नमस्ते 한국어",
    "",
]
SPACED = [text for text in (*SENTENCES.values(), *SIGNS) if not any(map(needs_dictionary, words(text)))]


@pytest.mark.parametrize("tokenizer", ["words", "whitespace", "characters", re.compile(r"[A-Za-z]+")])
def test_texts_are_split_as_by_voxpop(released, tokenizer):
    """If every token is in the vocabulary, the tokenizer gives the same tokens as voxpop and no unknown tokens."""
    texts = [*TEXTS, *SPACED]
    cut = [Cutter(tokenizer)(text) for text in texts]
    made = vp.exports.to_tokenizer(released((token,) for tokens in cut for token in tokens), tokenizer)
    assert [made.encode(text).tokens for text in texts] == cut
    assert len(SPACED) > 60


def test_words_that_need_a_dictionary_are_accepted_only_in_lists(released):
    """A file contains no dictionary, so releases with such words are rejected.

    However, lists of such words are encoded.
    """
    words_of = released([("今天",), ("tea",)])
    with pytest.raises(vp.errors.InputError, match="is_pretokenized=True"):
        vp.exports.to_tokenizer(words_of)
    assert vp.exports.to_tokenizer(words_of, None).encode(["今天", "x"], is_pretokenized=True).tokens == [
        "今天",
        "[UNK]",
    ]


def test_the_vocabulary_consists_of_the_single_tokens(phrases):
    """The unknown token has id 0, and single tokens follow in canonical order. Phrases have no id."""
    made = vp.exports.to_tokenizer(phrases)
    assert made.get_vocab() == {"[UNK]": 0, "don't": 1, "thank": 2, "very": 3, "you": 4, "été": 5}
    assert made.encode("thank him").ids == [2, 0]


def test_a_saved_tokenizer_can_be_loaded(phrases, tmp_path):
    """The library loads the saved tokenizer."""
    from tokenizers import Tokenizer

    vp.exports.write(phrases, tmp_path / "tokenizer.json", format="tokenizer")
    again = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert again.encode("Don't thank X").tokens == ["don't", "thank", "[UNK]"]


def test_lists_of_tokens_are_read(released):
    """In lists of tokens, items with spaces are single tokens."""
    made = vp.exports.to_tokenizer(released([("New York",), ("tea",)]), None)
    assert made.encode(["New York", "coffee"], is_pretokenized=True).tokens == ["New York", "[UNK]"]


def test_impossible_arguments_are_rejected(released, phrases):
    """A released token "[UNK]" and a tokenizer that a file cannot contain are rejected."""
    with pytest.raises(vp.errors.InputError, match="itself a released token"):
        vp.exports.to_tokenizer(released([("[UNK]",)]), "whitespace")
    with pytest.raises(vp.errors.InputError, match="callable"):
        vp.exports.to_tokenizer(phrases, lambda texts: [[] for _ in texts])
