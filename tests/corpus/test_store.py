"""Tests of corpora that are saved to disk."""

import os
import stat

import numpy as np
import polars as pl
import pytest

import voxpop as vp
from support.look import load_engine, read_engine
from voxpop.engine.local import corpus as store
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.errors import SourceError


@pytest.fixture
def corpus() -> LocalCorpus:
    """Return a corpus of two users."""
    return read_engine(pl.DataFrame({"who": ["a", "b"], "text": ["one two", "two three"]}), user="who", text="text")


def same(first: LocalCorpus, second: LocalCorpus) -> bool:
    arrays = all(np.array_equal(getattr(first, n), getattr(second, n)) for n in ("tokens", "user_start", "user_key"))
    return arrays and first.vocabulary.equals(second.vocabulary) and first.kind == second.kind


def test_a_saved_corpus_is_loaded(tmp_path, corpus):
    """A corpus can be saved to the same folder twice. The loaded corpus gives the same release as the original."""
    corpus.save(tmp_path / "c")
    corpus.save(tmp_path / "c")
    loaded = load_engine(tmp_path / "c")
    assert same(corpus, loaded)
    assert isinstance(loaded.tokens, np.memmap)
    union, budget = vp.Items(), vp.Budget(20, 0.5)
    assert list(union.release(loaded, budget, seed=1)) == list(union.release(corpus, budget, seed=1))
    assert os.listdir(tmp_path) == ["c"]


def test_only_the_owner_may_read_a_saved_corpus(tmp_path, corpus):
    """The folder and its files contain private texts."""
    corpus.save(tmp_path / "c")
    for path in [tmp_path / "c", *(tmp_path / "c").iterdir()]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_other_folders_are_not_overwritten(tmp_path, corpus):
    """A folder with other contents remains unchanged."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("keep")
    with pytest.raises(SourceError, match="not a corpus"):
        corpus.save(tmp_path / "mine")
    assert (tmp_path / "mine" / "notes").read_text() == "keep"


def test_a_failed_save_leaves_the_old_corpus(tmp_path, corpus, monkeypatch):
    """After an error during writing, the old corpus is unchanged and no temporary files remain."""
    corpus.save(tmp_path / "c")
    monkeypatch.setattr(
        store.np.lib.format,
        "write_array_header_1_0",
        lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")),
    )
    with pytest.raises(SourceError, match="No space left"):
        corpus.save(tmp_path / "c")
    assert same(corpus, load_engine(tmp_path / "c"))
    assert os.listdir(tmp_path) == ["c"]


@pytest.mark.parametrize("name", ["tokens.npy", "user_start.npy", "vocabulary.arrow", "corpus.json"])
def test_damage_is_detected(tmp_path, corpus, name):
    """A truncated file causes an error with advice."""
    corpus.save(tmp_path / "c")
    path = tmp_path / "c" / name
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(SourceError, match=r"damaged|saved anew"):
        load_engine(tmp_path / "c")


def test_other_folders_are_rejected(tmp_path, corpus):
    """A folder without a corpus and a corpus of another version are rejected."""
    with pytest.raises(SourceError, match="not a saved corpus"):
        load_engine(tmp_path)
    corpus.save(tmp_path / "c")
    (tmp_path / "c" / "corpus.json").write_text('{"version": 99}')
    with pytest.raises(SourceError, match="another version"):
        load_engine(tmp_path / "c")


def test_an_empty_vocabulary_can_be_saved(tmp_path):
    """A corpus can be saved if its vocabulary is empty because its only user has no text."""
    empty = read_engine(pl.DataFrame({"who": [1], "text": [""]}), user="who", text="text")
    empty.save(tmp_path / "c")
    assert same(empty, load_engine(tmp_path / "c"))
