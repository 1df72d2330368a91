"""Tests of the generator of texts, including the sizes, the distribution, and the phrases that are found."""

import numpy as np
import pytest
from benchmarks.datasets.phrases import PhraseBook, popular, write_texts

import voxpop as vp
from support.look import load_engine


@pytest.mark.jit
def test_stock_phrases_are_found(tmp_path):
    """With 4,000 users, the most popular of 30 stock phrases is released in full."""
    write_texts(tmp_path / "texts", users=4000, tokens=400_000, words=2000, phrases=30, seed=4)
    corpus = load_engine(tmp_path / "texts")
    rng = np.random.default_rng(4)
    book = PhraseBook.drawn(2000, 30, rng)
    phrase = tuple(f"word{token:09}" for token in book.tokens[: book.starts[1]])
    release = vp.NGrams(max_length=len(phrase)).release(corpus, vp.Budget(8, 1e-6), seed=1)
    assert phrase in release


def test_generated_texts_have_the_requested_size(tmp_path):
    """The number of tokens is within a tenth of the request, and the tokens of every user end with an end mark."""
    write_texts(tmp_path / "texts", users=500, tokens=200_000, words=1000, phrases=100)
    corpus = load_engine(tmp_path / "texts")
    assert corpus.user_key.size == 500
    assert abs(corpus.tokens.size / 200_000 - 1) < 0.1
    assert (corpus.tokens[corpus.user_start[1:] - 1] == -1).all()
    assert corpus.tokens.min() == -1
    assert corpus.tokens.max() < 1000


def test_a_seed_gives_the_same_texts(tmp_path):
    """The same seed gives the same corpus, and another seed gives another corpus."""
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_texts(tmp_path / name, users=50, tokens=5000, words=100, phrases=10, seed=seed)
    first, again, other = (np.asarray(load_engine(tmp_path / name).tokens) for name in "abc")
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_popularity_decreases_with_the_rank():
    """The first of 1,000 words is drawn about one time in ten, as the distribution predicts."""
    drawn = popular(1000, 100_000, np.random.default_rng(1))
    assert drawn.min() == 0
    assert drawn.max() <= 999
    assert abs((drawn == 0).mean() - np.log(2) / np.log(1000)) < 0.005
