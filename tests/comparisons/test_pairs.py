"""Tests of the generator of pairs, including the users, set sizes and seeds."""

import polars as pl
import pytest
from benchmarks.datasets.pairs import QUANTILES, write_pairs


@pytest.fixture(scope="module")
def pairs(tmp_path_factory) -> pl.DataFrame:
    """Return the pairs of 20,000 users."""
    path = tmp_path_factory.mktemp("pairs") / "pairs.parquet"
    write_pairs(path, users=20_000, items=100_000, seed=3)
    return pl.read_parquet(path)


def test_pairs_are_distinct_and_every_user_has_pairs(pairs):
    """No pair occurs twice, and every user has at least one pair."""
    assert pairs.is_duplicated().sum() == 0
    assert pairs["user"].n_unique() == 20_000


@pytest.mark.parametrize(("share", "size"), QUANTILES[:5])
def test_set_sizes_follow_the_table_of_the_paper(pairs, share, size):
    """The shares are within 1.5 percentage points of Table 1 (over 4 standard deviations of each share)."""
    sizes = pairs.group_by("user").len()["len"]
    assert (sizes <= size).mean() == pytest.approx(share, abs=0.015)


def test_a_seed_gives_the_same_pairs(tmp_path):
    """The same seed gives the same file, and another seed gives another file."""
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_pairs(tmp_path / name, users=500, items=5000, seed=seed)
    first, again, other = (pl.read_parquet(tmp_path / name) for name in "abc")
    assert first.equals(again)
    assert not first.equals(other)
