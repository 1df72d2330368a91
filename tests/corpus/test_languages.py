"""In 69 languages, every code path gives the same words, and ICU gives nearly the same words."""

import unicodedata

import polars as pl
import pytest
from icu4py.breakers import WordBreaker

import voxpop as vp
from naive import corpus as naive_corpus
from support.languages import SENTENCES, SIGNS
from support.look import corpus_documents, read_engine
from voxpop.reading.one_text import Cutter, cut_prompt
from voxpop.reading.segmenting import folded, kind_of_character, needs_dictionary, words

TEXTS = [*SENTENCES.values(), *SIGNS]


@pytest.mark.parametrize("text", TEXTS)
def test_single_texts_and_the_reference_implementation_agree(text):
    """A text gives the same words as a single text, as a prompt, and in the loops of the reference implementation."""
    expected = naive_corpus.words(text)
    assert len(expected) >= 3
    assert words(text) == Cutter("words")(text) == cut_prompt(text, "words", ()).tokens == expected


@pytest.mark.parametrize("sentences", [False, True])
@pytest.mark.parametrize("memory", [None, "1GiB"])
def test_a_corpus_contains_the_same_words(sentences, memory):
    """A corpus of all languages contains the words of each text, whether or not sentences are split first."""
    table = pl.DataFrame({"who": range(len(TEXTS)), "text": TEXTS})
    cut = vp.Tokenizer(sentences=sentences)
    options = vp.ReadOptions(memory=memory)
    users = corpus_documents(read_engine(table, user="who", text="text", tokenizer=cut, options=options))
    parts = [naive_corpus.sentences(text) if sentences else [text] for text in TEXTS]
    assert users == [[naive_corpus.words(part) for part in each] for each in parts]


def test_the_words_of_a_row_depend_only_on_this_row():
    """Every text has the same words before, after and between texts of other scripts."""
    table = pl.DataFrame({"who": range(3 * len(TEXTS)), "text": [*TEXTS, *TEXTS[::-1], *TEXTS]})
    users = corpus_documents(read_engine(table, user="who", text="text"))
    alone = [[words(text)] for text in TEXTS]
    assert users == [*alone, *alone[::-1], *alone]


def by_icu(text: str) -> list[str]:
    """Split a folded text by the rules of ICU, and return the parts that contain a letter or number."""
    return [
        part for part in WordBreaker(folded(text), "") if any(unicodedata.category(each)[0] in "LN" for each in part)
    ]


@pytest.mark.parametrize("language", SENTENCES)
def test_words_equal_those_of_icu(language):
    """Every sentence is split as ICU splits it."""
    assert words(SENTENCES[language]) == by_icu(SENTENCES[language])


def test_words_from_a_dictionary_are_marked():
    """Only words of Han, Kana, Thai, Lao, Khmer and Burmese are marked as words from a dictionary."""
    unspaced = {"Chinese", "Chinese, traditional", "Japanese", "Thai", "Lao", "Khmer", "Burmese"}
    for language, text in SENTENCES.items():
        assert {needs_dictionary(word) for word in words(text)} == {language in unspaced}, language


def test_kinds_follow_the_names_of_characters():
    """The kinds agree with Unicode names, which identify characters of Hebrew, Hangul and scripts without spaces."""
    codes = [code for code in range(0x30000) if unicodedata.category(chr(code))[0] in "LMN"]
    visible = [chr(code) for code in codes if not naive_corpus.is_invisible(chr(code))]
    assert len(visible) > 100_000
    for character in visible:
        if character in naive_corpus.BETWEEN + "\u02bc":
            continue
        kind = kind_of_character(character)
        assert (kind in "cd") == naive_corpus.is_unspaced(character), ascii(character)
        assert (kind in "hn") == naive_corpus.is_hebrew(character), ascii(character)
