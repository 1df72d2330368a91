"""Tests of the coverage of k-anonymity on a table that is small enough to count by hand."""

import polars as pl
from benchmarks.evaluation import private_coverage, private_user_counts

import voxpop as vp
from support.look import read_engine


def test_a_release_covers_the_common_items():
    """Each user counts once.

    A release of the two common items covers two thirds of all items, and all items of at least two users.
    """
    table = pl.DataFrame({"who": [*range(300), *range(300), 1, 1], "what": ["a"] * 300 + ["b"] * 300 + ["c", "c"]})
    corpus = read_engine(table, user="who", items="what")
    assert private_user_counts(corpus).tolist() == [300, 300, 1]
    release = vp.Items(max_items_per_user=5).release(corpus, vp.Budget(3, 1e-9))
    coverage = private_coverage(corpus, release, [1, 2, 301])
    assert coverage["held"].to_list() == [3, 2, 0]
    assert coverage["covered"].to_list() == [2 / 3, 1.0, None]
    assert coverage["size_ratio"].to_list() == [2 / 3, 1.0, None]
