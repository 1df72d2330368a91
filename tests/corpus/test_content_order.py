"""Tests that the order of documents does not depend on row positions, with a search over neighbouring tables."""

import math
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.corpora import corpus_of
from support.look import read_engine
from voxpop.engine.local import read as reading
from voxpop.engine.local.read import in_content_order
from voxpop.errors import MemoryLimitError
from voxpop.kernels.words import hash_strings
from voxpop.reading.limited.memory import FIXED_MEMORY, MemoryLimit

TRIES = 60


def by_size(files):
    """Return the rows in the order in which Spark reads files, with the largest file first."""
    return pl.concat(sorted(files, key=lambda file: -file.height))


def neighbours(rng):
    """Return a table of two files, and the same table with one additional user in one of the files."""
    files = []
    for size in (9, 8):
        texts = [" ".join(rng.choice(["a", "b", "B c"], 2)) for _ in range(size)]
        files.append(pl.DataFrame({"who": rng.integers(0, 6, size), "what": texts}))
    more = pl.DataFrame({"who": [99] * 3, "what": ["b a", "", "z"]})
    return by_size(files), by_size([files[0], pl.concat([files[1], more])])


def held(corpus):
    """Return the documents of each user in order."""
    words = np.array([*corpus.vocabulary.to_pylist(), "/"], object)
    starts = corpus.user_start
    return {
        key: " ".join(words[corpus.tokens[starts[place] : starts[place + 1]]])
        for place, key in enumerate(corpus.user_key.tolist())
    }


def moved(order, tmp_path, *, limited=False, enough=math.inf):
    """Return the largest number of users with a changed order of documents after one user is added.

    The search ends when it finds a number above `enough`.
    """
    rng, most = np.random.default_rng(3), 0
    for _ in range(TRIES):
        found = []
        for table in neighbours(rng):
            corpus = read_engine(table, user="who", text="what")
            corpus = corpus.within(MemoryLimit(FIXED_MEMORY + 2**24, 2**24, tmp_path)) if limited else corpus
            found.append(held(order(corpus)))
        most = max(most, sum(found[0][key] != found[1].get(key) for key in found[0]))
        if most > enough:
            break
    return most


@pytest.mark.parametrize("limited", [False, True])
def test_an_additional_user_does_not_move_documents_of_other_users(tmp_path, limited):
    assert moved(in_content_order, tmp_path, limited=limited) == 0


def test_a_mutant_that_keeps_the_row_order_is_detected(tmp_path):
    """The broken variant keeps the order in which Spark reads the rows."""
    assert moved(lambda corpus: corpus, tmp_path, enough=2) > 2


def test_a_mutant_that_sorts_by_word_frequency_is_detected(tmp_path):
    """In the broken variant, the order of tokens depends on the rows of all users."""

    def by_frequency(corpus):
        counts = np.bincount(corpus.tokens[corpus.tokens >= 0], minlength=len(corpus.vocabulary))
        order = np.argsort(counts, kind="stable")
        ranks = np.empty(order.size, np.int32)
        ranks[order] = np.arange(order.size)
        mine = corpus.tokens >= 0
        corpus.tokens[mine] = ranks[corpus.tokens[mine]]
        in_content_order(corpus)
        corpus.tokens[mine] = order.astype(np.int32)[corpus.tokens[mine]]
        return corpus

    assert moved(by_frequency, tmp_path, enough=1) > 1


@given(
    users=st.lists(st.lists(st.lists(st.sampled_from("abcde"), max_size=4), max_size=6), min_size=1, max_size=5),
    at_once=st.integers(1, 9),
)
def test_documents_are_sorted_like_python_lists(users, at_once):
    """Empty documents are first, prefixes precede longer documents, and no user receives a document of another user."""
    corpus = corpus_of(users)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_POSITIONS_READ_AT_ONCE", at_once)
        found = held(in_content_order(corpus))
    for key, documents in zip(corpus.user_key.tolist(), users, strict=True):
        assert found.get(key, "") == " ".join(word for each in sorted(documents) for word in (*each, "/"))


def test_the_order_of_users_with_equal_keys_does_not_depend_on_the_rows(monkeypatch):
    """Users can choose ids with equal hashes, because the hash of strings is fixed."""
    monkeypatch.setattr("voxpop.reading.users.hash_strings", lambda *texts: hash_strings(*texts) % np.uint64(3))
    rng = np.random.default_rng(5)
    rows = pl.DataFrame({"who": [f"u{n % 20}" for n in range(60)], "what": [f"w{n}" for n in rng.integers(0, 30, 60)]})
    for column in ("text", "items"):
        found = []
        for seed in range(4):
            mixed = rows.sample(fraction=1.0, shuffle=True, seed=seed)
            corpus = in_content_order(read_engine(mixed, user="who", **{column: "what"}))
            starts = corpus.user_start
            users = [sorted(corpus.tokens[a:b].tolist()) for a, b in pairwise(starts)]
            found.append(
                [[user for user, k in zip(users, corpus.user_key, strict=True) if k == key] for key in range(3)]
            )
        assert len(users) == 20
        assert found[0] == found[1] == found[2] == found[3]


def test_events_keep_the_order_of_their_times():
    """Sequences keep the order of their event times, and items have no order."""
    rows = pl.DataFrame({"who": [1, 1, 1], "at": [1, 5, 9], "what": ["c", "a", "b"]})
    corpus = read_engine(rows, user="who", sequence="what", order="at", session_gap=2)
    assert held(in_content_order(corpus, documents=False)) == {1: "c / a / b /"}
    assert held(in_content_order(corpus)) == {1: "a / b / c /"}
    items = read_engine(rows, user="who", items="what")
    assert held(in_content_order(items)) == {1: "c a b"}


def test_documents_of_one_user_that_do_not_fit_are_rejected(tmp_path):
    """All documents of one user must fit into memory at the same time."""
    corpus = read_engine(pl.DataFrame({"who": [1] * 1000, "what": ["b", "a"] * 500}), user="who", text="what")
    tight = corpus.within(MemoryLimit(FIXED_MEMORY + 28 * 1999, 28 * 1999, tmp_path))
    with pytest.raises(MemoryLimitError, match="documents of one user"):
        in_content_order(tight)
    assert held(in_content_order(corpus.within(MemoryLimit(FIXED_MEMORY + 2**20, 2**20, tmp_path))))[1].startswith(
        "a / a /"
    )
