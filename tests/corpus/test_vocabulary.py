"""Tests that lists of words are merged in the order of their bytes."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from voxpop.reading.words import merge_words

LISTS = st.lists(st.lists(st.tuples(st.text(max_size=4), st.booleans()), unique_by=lambda each: each[0]), max_size=3)


@given(lists=LISTS)
def test_lists_of_words_are_merged(lists):
    """The merged words are distinct and sorted by UTF-8 bytes, and include every used word."""
    words = [pa.array([word for word, _ in each], pa.large_string()) for each in lists]
    used = [np.array([use for _, use in each], np.bool_) for each in lists]
    vocabulary, names = merge_words(words, used)
    kept = {word for each in lists for word, use in each if use}
    assert vocabulary.to_pylist() == sorted(kept, key=str.encode)
    for mine, each in zip(names, lists, strict=True):
        found = [vocabulary[int(name)].as_py() if name >= 0 else None for name in mine]
        assert found == [word if word in kept else None for word, _ in each]
