"""Tests that the methods of the polars namespace give the same results as the functions."""

import polars as pl
import pytest

import voxpop as vp
import voxpop.exports.polars

TABLE = pl.DataFrame({"who": range(4000), "shop": [7, 8] * 1999 + [7, 4711]})


@pytest.mark.parametrize("table", [TABLE, TABLE.lazy()], ids=["frame", "lazy"])
def test_the_namespace_filters_and_replaces_rows(table):
    """Eager and lazy tables can be read, and their rows can be filtered and replaced."""
    mechanism = vp.papers.OptimalSelection()
    keys = mechanism.release(table.voxpop.read(user="who", items="shop"), vp.Budget(1, 1e-8))
    assert keys.to_list() == [7, 8]
    kept = table.voxpop.filter(keys)
    assert isinstance(kept, type(table))
    assert kept.lazy().collect().equals(vp.exports.filter(keys, TABLE))
    other = table.voxpop.with_other(keys, other=-1).lazy().collect()
    assert other.equals(vp.exports.with_other(keys, TABLE, other=-1))
