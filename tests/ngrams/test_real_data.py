"""N-grams on real text and clicks: the paper's numbers, and what guiding adds."""

import numpy as np
import pytest
from benchmarks.baselines.all_grams import AllGrams
from benchmarks.evaluation import private_spurious_share

import voxpop as vp
from support.look import read_engine

PAPER = [17, 254, 1273, 1954, 2221, 2020]
"""DPNE, Table 4, row DPNE."""


def by_length(release, longest):
    return np.bincount(release.grams["length"].to_numpy(), minlength=longest + 1)[1:]


@pytest.fixture(scope="module")
def clicks(data_dir) -> vp.Corpus:
    """Return MSNBC, one visitor one user."""
    return read_engine(data_dir / "msnbc.parquet", user="user", sequence="sequence")


@pytest.fixture(scope="module")
def posts(data_dir) -> vp.Corpus:
    """Return the posts, one post one user."""
    return read_engine(data_dir / "reddit_posts.parquet", user="user", text="text")


@pytest.mark.slow
@pytest.mark.data
def test_msnbc_as_published(clicks):
    """Within 4 percent in every cell and 2 in total over the mean of 5 runs; ours are within 2 and 0.5."""
    plan = vp.papers.DPNE(max_length=6, limit=10).plan(vp.Budget(1, 1e-7))
    mean = np.mean([by_length(plan.release(clicks), 6) for _ in range(5)], axis=0)
    assert mean == pytest.approx(PAPER, rel=0.04)
    assert mean.sum() == pytest.approx(sum(PAPER), rel=0.02)


@pytest.mark.slow
@pytest.mark.data
def test_msnbc_by_default_releases_half_as_much_again(clicks):
    """1.6 times the paper's total; ours is near 1.78 with a deviation of 0.01."""
    guided = vp.NGrams(max_length=6, limit=10).release(clicks, vp.Budget(1, 1e-7))
    assert len(guided) > 1.6 * sum(PAPER)
    assert private_spurious_share(AllGrams.of(clicks, 6), guided, 6) < 0.01


@pytest.mark.slow
@pytest.mark.data
def test_guided_extraction_from_text_releases_three_times_the_published(posts):
    """3.5 times, at the same epsilon and delta, the published one at its limit of 100; ours is near 4.0.

    What nobody holds is at most eta of it, counted up to five words.
    """
    budget = vp.Budget(4, 1e-7)
    published = vp.papers.DPNE().release(posts, budget)
    guided = vp.NGrams().release(posts, budget)
    assert len(published) == pytest.approx(43_514, rel=0.03)
    assert len(guided) > 3.5 * len(published)
    longer = by_length(guided, 9)[5:].sum()
    spurious = private_spurious_share(AllGrams.of(posts, 5), guided, 5) * len(guided) - longer
    assert spurious < 0.01 * (len(guided) - longer)


@pytest.mark.slow
@pytest.mark.data
def test_values_release_more_of_what_counts(data_dir):
    """Phrases of four words, and they alone: twice as many as where all count; 1,315 and 672."""
    chat = read_engine(data_dir / "ubuntu_irc.parquet", user="user", text="text")
    released = [
        by_length(vp.NGrams(4, values=values).release(chat, vp.Budget(4, 1e-7)), 4)[-1]
        for values in (None, [0, 0, 0, 1])
    ]
    assert released[1] > 1.6 * released[0]
