"""A fixture with a corpus for contract tests."""

import polars as pl
import pytest

import voxpop as vp


@pytest.fixture(scope="session")
def crowd_of_tea() -> vp.Corpus:
    """Return 400 users who all have tea and milk."""
    table = pl.DataFrame({"who": [u for u in range(400) for _ in range(2)], "what": ["tea", "milk"] * 400})
    return vp.read(table, user="who", items="what")
