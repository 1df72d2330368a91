"""Profiles on Spark: the same values, counts and cover as on this machine."""

import polars as pl
import pytest

import voxpop as vp
from voxpop.engine.contract import check_engine

BUDGET = vp.Budget(4, 1e-6)
ROWS = {
    "who": [number % 300 for number in range(900)],
    "city": [["Delft", "a|b", None][number % 3] for number in range(900)],
    "year": [2024 + number % 2 for number in range(900)],
    "price": [0.5] * 900,
    "note": ["Thank you", "thank | you", None] * 300,
}


@pytest.mark.parametrize("partitions", [3, None], ids=["spread", "handed over"])
def test_a_profile_is_the_same(spark, partitions):
    """Joint values, words, counts and cover; columns are chosen by the types of the DataFrame."""
    local = pl.DataFrame(ROWS)
    frame = spark.createDataFrame(local.rows(), schema=local.columns)
    chosen = {"user": "who", "text": ["note"], "joint": [("city", "year")]}
    profiling = vp.Profiling.of(frame, **chosen)
    assert profiling.columns == vp.Profiling.of(local, **chosen).columns
    assert list(profiling.left_out) == ["price"]
    options = vp.ReadOptions(partitions=partitions, progress=False)
    plan = profiling.plan(BUDGET)
    found = [
        plan.release(profiling.read(source, user="who", options=how), seed=3)
        for source, how in ((frame, options), (local, vp.ReadOptions(progress=False)))
    ]
    assert found[0] == found[1]
    assert len(found[0].joint["city", "year"]) == 4
    assert check_engine(profiling.read(local, user="who")).kind == "tokens"
