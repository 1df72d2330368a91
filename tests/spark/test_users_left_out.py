"""Tests of rows without a user on Spark."""

import polars as pl
import pytest

import voxpop as vp
from support.exact import Exact
from support.look import read_engine
from voxpop.errors import SourceError
from voxpop.privacy.secret import Secret

ROWS = {"who": ["ann", None, "bob", "NULL", "nan", ""], "what": list("abcdef")}


@pytest.mark.parametrize("partitions", [None, 2])
def test_rows_without_a_user_are_skipped(spark, partitions, capsys):
    """Executors and the local engine skip these rows, and a message contains the number of skipped rows."""
    frame = spark.createDataFrame(pl.DataFrame(ROWS).to_arrow())
    options = vp.ReadOptions(partitions=partitions, missing_users="drop", exact=True)
    engine = read_engine(frame, user="who", items="what", options=options)
    assert "4 rows have no user and were skipped" in capsys.readouterr().err
    pools = engine.pools(Secret.from_seed(1))
    assert pools.sizes((2,)).measured(Exact(), 2).tolist() == [2, 0]


@pytest.mark.parametrize("partitions", [None, 2])
def test_rows_without_a_user_are_rejected_without_the_option(spark, partitions):
    """Executors and the local engine raise an error at the latest when users are counted."""
    frame = spark.createDataFrame(pl.DataFrame(ROWS).to_arrow())

    def counted():
        engine = read_engine(frame, user="who", items="what", options=vp.ReadOptions(partitions=partitions))
        return engine.pools(Secret.from_seed(1)).sizes((2,)).measured(Exact(), 2)

    with pytest.raises(SourceError, match="belongs to no user"):
        counted()
