"""Fixtures with a small corpus and a budget."""

import numpy as np
import polars as pl
import pytest

import voxpop as vp
from support.look import read_engine


@pytest.fixture(scope="session")
def crowd() -> vp.Corpus:
    """Return a corpus of 3,000 users with 1 to 30 of 2,000 items each. Items with low numbers are frequent."""
    rng = np.random.default_rng(5)
    users = np.repeat(np.arange(3000), rng.integers(1, 31, 3000))
    items = (2000 * rng.random(users.size) ** 3).astype(int)
    table = pl.DataFrame({"who": users, "what": [f"item {i:04}" for i in items]})
    return read_engine(table, user="who", items="what")


BUDGET = vp.Budget(epsilon=3, delta=np.exp(-10))


@pytest.fixture(scope="session")
def budget() -> vp.Budget:
    """Return the budget of the DPSU paper's experiments."""
    return BUDGET
