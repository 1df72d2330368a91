"""Tests of merging, on disk, the vocabularies of parts of the data."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from voxpop.reading.limited import memory
from voxpop.reading.limited import sorter as word_runs
from voxpop.reading.limited.memory import MemoryLimit
from voxpop.reading.limited.sorter import SHARE_OF_HEADS, WordRuns

WORDS = st.sets(st.text(max_size=6), min_size=1, max_size=30)


def runs_of(lists, room, folder):
    """Return lists of words as runs within a memory limit of `room` bytes."""
    runs = WordRuns(MemoryLimit(room + memory.FIXED_MEMORY, room, folder))
    for words in lists:
        runs.add(pa.array(sorted(words, key=str.encode), pa.large_string()))
    return runs


@given(st.lists(WORDS, min_size=1, max_size=5), st.sampled_from([1, 4000, 1 << 20]))
def test_any_lists_are_merged(tmp_path_factory, lists, room):
    """Each word occurs once, words are sorted, and every list receives the numbers of its words."""
    runs = runs_of(lists, room, tmp_path_factory.getbasetemp())
    merged = runs.merged().to_pylist()
    assert merged == sorted(set().union(*lists), key=str.encode)
    for number, words in enumerate(lists):
        assert [merged[name] for name in runs.names(number)] == sorted(words, key=str.encode)


def test_the_number_of_merges_is_the_number_of_blocks_of_one_list(monkeypatch, tmp_path):
    """The number of merges does not grow with the number of lists.

    The test merges forty lists of 2,000 words, and reads about 90 words of each list at a time.
    """
    rng = np.random.default_rng(0)
    every = [f"w{number:07}" for number in range(6000)]
    lists = [rng.choice(every, 2000, replace=False).tolist() for _ in range(40)]
    merges = []
    real = word_runs.merge_words
    monkeypatch.setattr(word_runs, "merge_words", lambda *given: merges.append(len(given[0])) or real(*given))
    runs = runs_of(lists, SHARE_OF_HEADS * 40 * 90 * (8 + 8), tmp_path)
    assert len(runs.merged()) == len({word for words in lists for word in words})
    assert len(merges) < 3 * 2000 / 90
