"""A test with the MSNBC data of the paper, which has 17 pages and 989,818 users."""

import numpy as np
import polars as pl
import pytest
from benchmarks.evaluation import as_sequences, private_length_distance, private_sequences

import voxpop as vp
from support.look import read_engine

PAGES = [str(page) for page in range(1, 18)]


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.jit
def test_a_model_of_msnbc_resembles_the_data(data_dir):
    """Single-page counts agree up to noise, and numbers of users and lengths are close (false alarm below 1e-12)."""
    corpus = read_engine(data_dir / "msnbc.parquet", user="user", sequence="sequence")
    model = vp.Sequences(max_length=20, max_gram=5, alphabet=PAGES).release(corpus, vp.Budget(1))
    truth = (
        pl.read_parquet(data_dir / "msnbc.parquet")["sequence"].list.head(20).explode().cast(pl.String).value_counts()
    )
    counts = dict(truth.iter_rows())
    singles = model.to_polars().filter(
        (pl.col("gram").list.len() == 1) & ~pl.col("ends") & ~pl.col("begins") & ~pl.col("others")
    )
    for gram, count in singles.select("gram", "count").iter_rows():
        assert abs(count - counts[gram[0]]) < 34 * model.plan.scale
    assert model.n_users == pytest.approx(989_818, rel=0.02)
    drawn = model._sampler.draw(np.arange(100_000, dtype=np.uint64))
    symbols, sizes = drawn.symbols, drawn.sizes
    drawn = as_sequences(symbols, sizes, 17)
    assert private_length_distance(private_sequences(corpus, model.alphabet), drawn, 20) < 0.08
