"""Small corpora of sequences."""

import numpy as np
import polars as pl
import pytest

import voxpop as vp

PAGES = ["home", "news", "sport", "weather"]


@pytest.fixture(scope="session")
def visits() -> vp.Corpus:
    """Return 6,000 users with one sequence each, from a chain that likes to stay and to begin at home."""
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
    return vp.read(pl.DataFrame({"who": range(6000), "pages": sequences}), user="who", sequence="pages")


@pytest.fixture(scope="session", params=["balanced", "published"])
def model(request, visits) -> vp.SequenceModel:
    """Return a model of the visits, by each rule of consistency."""
    sequences = vp.Sequences(max_length=8, max_gram=4, alphabet=PAGES, consistency=request.param, tree="grams")
    return sequences.release(visits, vp.Budget(3), seed=1)


@pytest.fixture(scope="session")
def contexts(visits) -> vp.SequenceModel:
    """Return a model of what follows contexts in the visits."""
    return vp.Sequences(max_length=8, max_gram=4, alphabet=PAGES).release(visits, vp.Budget(3), seed=1)
