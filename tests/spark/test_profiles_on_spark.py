"""Profiles on Spark have the same values, counts and cover as local profiles, in memory and within a limit."""

import polars as pl
import pytest

import voxpop as vp

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
    """Joint values, words, counts and cover agree; the types of the DataFrame determine the columns."""
    local = pl.DataFrame(ROWS)
    frame = spark.createDataFrame(local.rows(), schema=local.columns)
    chosen = {"user": "who", "text": ["note"], "joint": [("city", "year")]}
    profiling = vp.ProfileMechanism.of(frame, **chosen)
    assert profiling.columns == vp.ProfileMechanism.of(local, **chosen).columns
    assert list(profiling.left_out) == ["price"]
    ways = (frame, {"partitions": partitions}), (local, {}), (local, {"memory": "3GiB"})
    found = [
        vp.profile(source, **chosen, budget=BUDGET, options=vp.ReadOptions(**how, progress=False), seed=3)
        for source, how in ways
    ]
    assert found[0] == found[1] == found[2]
    assert len(found[0].joint["city", "year"]) == 4
