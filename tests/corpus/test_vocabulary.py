"""Merging lists of words: both ways agree, and order is that of bytes."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from voxpop.reading.words import merge_few, merge_many, merge_words

LISTS = st.lists(st.lists(st.tuples(st.text(max_size=4), st.booleans()), unique_by=lambda each: each[0]), max_size=3)


@given(lists=LISTS)
def test_few_and_many_words_are_merged_alike(lists):
    """Distinct, sorted by UTF-8 bytes, every word in use found again."""
    words = [pa.array([word for word, _ in each], pa.large_string()) for each in lists]
    used = [np.array([use for _, use in each], np.bool_) for each in lists]
    few, many = merge_few(words, used), merge_many(words, used)
    kept = {word for each in lists for word, use in each if use}
    assert few[0].to_pylist() == many[0].to_pylist() == sorted(kept, key=str.encode)
    for mine, theirs, each in zip(few[1], many[1], lists, strict=True):
        assert mine.tolist() == theirs.tolist()
        found = [few[0][int(name)].as_py() if name >= 0 else None for name in mine]
        assert found == [word if word in kept else None for word, _ in each]


def test_ten_thousand_words_and_one_more():
    """The border between the two ways changes nothing."""
    for size in (10_000, 10_001):
        words = pa.array([f"word {number}" for number in range(size)], pa.large_string())
        vocabulary, (names,) = merge_words([words], [np.ones(size, np.bool_)])
        assert vocabulary.take(pa.array(names)).equals(words)
