"""A scikit-learn vectorizer counts exactly the released grams."""

import pickle
from collections import Counter

import pytest

import voxpop as vp
from voxpop.release.cutting import Cutter

pytest.importorskip("sklearn", reason="scikit-learn is not installed: make exports")

TEXTS = ["Thank you VERY much, thank you!", "See https://thank.you/very: don't", "", "you very very ÉTÉ"]


def by_hand(release, text):
    tokens = Cutter("words")(text)
    longest = max(len(gram) for gram in release)
    grams = Counter(tuple(tokens[i : i + k]) for k in range(1, longest + 1) for i in range(len(tokens) - k + 1))
    return [grams[gram] for gram in release]


def test_counts_are_those_of_the_released_grams(phrases):
    """Columns are grams in canonical order, and each counts as by hand."""
    counted = vp.exports.to_count_vectorizer(phrases).transform(TEXTS).toarray()
    assert counted.tolist() == [by_hand(phrases, text) for text in TEXTS]
    assert counted.sum() > 10


def test_a_real_release_counts_its_own_texts():
    """From a table to a vectorizer, with every gram found where it was written."""
    import polars as pl

    table = pl.DataFrame({"who": range(2000), "what": ["Thank you very much!", "See you soon, don't wait"] * 1000})
    posts = vp.read(table, user="who", text="what")
    release = vp.NGrams(max_length=3, limit=20).release(posts, vp.Budget(4, 1e-7))
    counted = vp.exports.to_count_vectorizer(release, binary=True).transform(table["what"].head(2).to_list()).toarray()
    assert counted.tolist() == [[min(1, n) for n in by_hand(release, text)] for text in table["what"].head(2)]
    assert counted.sum() > 12


def test_names_and_pickling(phrases):
    """Names are grams with spaces; a vectorizer survives a pickle."""
    vectorizer = pickle.loads(pickle.dumps(vp.exports.to_count_vectorizer(phrases)))
    assert vectorizer.get_feature_names_out().tolist() == [" ".join(gram) for gram in phrases]
    assert vectorizer.transform(["thank you"]).sum() == 3


def test_items_with_spaces(released):
    """Items of lists are counted whole, spaces and all."""
    items = released([("New York",), ("tea, green",), ("York",)])
    counted = vp.exports.to_count_vectorizer(items, tokenizer=None).transform(
        [["New York", "York", "New York"], ["New"]]
    )
    assert counted.toarray().tolist() == [[2, 1, 0], [0, 0, 0]]


def test_grams_that_read_the_same_are_refused(released):
    """("new york",) and ("new", "york") cannot be told apart as strings."""
    both = released([("new",), ("york",), ("new york",), ("new", "york")])
    with pytest.raises(vp.errors.InputError, match="two grams become one"):
        vp.exports.to_count_vectorizer(both)
