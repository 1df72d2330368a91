"""Tests that spaCy finds exactly the released grams."""

import dataclasses

import pytest

import voxpop as vp

pytest.importorskip("spacy", reason="spaCy is not installed: make exports")


def test_a_matcher_finds_phrases(phrases):
    """Single words and phrases are found in any case, even if spaCy tokenizes differently from voxpop."""
    import spacy

    nlp = spacy.blank("en")
    document = nlp("Thank you very much, don't!")
    found = {document[begin:end].text for _, begin, end in vp.exports.to_phrase_matcher(phrases, nlp)(document)}
    assert found == {"Thank", "you", "very", "Thank you", "you very", "Thank you very", "don't"}


def test_apostrophes_typed_on_phones_match(phrases):
    """Words of the tokenizer "words" match with either kind of apostrophe.

    Tokens of the tokenizer "whitespace" match exactly.
    """
    import spacy

    nlp = spacy.blank("en")
    documents = [nlp("I don't"), nlp("I don\u2019t")]
    for reading, found in (("words", [1, 1]), ("whitespace", [1, 0])):
        matcher = vp.exports.to_phrase_matcher(dataclasses.replace(phrases, token_source=reading), nlp)
        assert [len(matcher(document)) for document in documents] == found


def test_matches_have_the_label_and_may_need_the_exact_spelling(released):
    """Matches have the given label. With ORTH, case is significant."""
    import spacy

    nlp = spacy.blank("en")
    matcher = vp.exports.to_phrase_matcher(released([("Tea",)]), nlp, label="drink", attribute="ORTH")
    ((label, *_),) = matcher(nlp("Tea, not tea"))
    assert nlp.vocab.strings[label] == "drink"


def test_an_entity_ruler_loads_the_patterns(phrases, tmp_path):
    """An entity ruler loads the file of patterns."""
    import spacy

    vp.exports.write(phrases, tmp_path / "patterns.jsonl", format="spacy")
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler", config={"phrase_matcher_attr": "LOWER"})
    ruler.from_disk(tmp_path / "patterns.jsonl")
    assert [(entity.text, entity.label_) for entity in nlp("Well, Thank you very much").ents] == [
        ("Thank you very", "released")
    ]
