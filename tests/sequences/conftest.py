"""Fixtures with small corpora of sequences and models."""

import numpy as np
import polars as pl
import pytest

import voxpop as vp
from support.look import read_engine

PAGES = ["home", "news", "sport", "weather"]


@pytest.fixture(scope="session")
def visits() -> vp.Corpus:
    """Return 6,000 users, each with one sequence from a Markov chain that begins at "home" and often repeats a page."""
    rng = np.random.default_rng(3)
    sequences = []
    for _ in range(6000):
        page, pages = int(rng.choice(4, p=[0.6, 0.2, 0.1, 0.1])), []
        while len(pages) < 12:
            pages.append(PAGES[page])
            if rng.random() < 0.25 + 0.1 * (page == 3):
                break
            page = page if rng.random() < 0.5 else int(rng.integers(4))
        sequences.append(pages)
    return read_engine(pl.DataFrame({"who": range(6000), "pages": sequences}), user="who", sequence="pages")


@pytest.fixture(scope="session")
def model(visits) -> vp.SequenceModel:
    """Return a model of the visits."""
    return vp.Sequences(max_length=8, max_gram=4, alphabet=PAGES).release(visits, vp.Budget(3), seed=1)


@pytest.fixture(scope="session")
def symbols_alone(visits) -> vp.SequenceModel:
    """Return a model of the visits that counts only single symbols."""
    return vp.Sequences(max_length=8, max_gram=1, alphabet=PAGES).release(visits, vp.Budget(3), seed=1)
