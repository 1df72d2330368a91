"""Tests that profiles on Spark equal local profiles in memory and within a memory limit, including counts and cover."""

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


LISTS = {"city": ["Delft", "Lund", "nowhere"], "year": [2020, 1900], "note": ["thank", "zebra"]}


@pytest.mark.parametrize("known", [None, LISTS], ids=["no lists", "lists"])
@pytest.mark.parametrize("partitions", [3, None], ids=["spread", "handed over"])
def test_a_profile_is_the_same_on_spark_and_on_local_engines(spark, partitions, known):
    """Joint values, words, counts and cover are equal. The types in the DataFrame determine the columns."""
    local = pl.DataFrame(ROWS)
    frame = spark.createDataFrame(local.rows(), schema=local.columns)
    chosen = {"user": "who", "text": ["note"], "joint": [("city", "year")]}
    profiling = vp.ProfileMechanism.of(frame, **chosen)
    assert profiling.columns == vp.ProfileMechanism.of(local, **chosen).columns
    assert list(profiling.left_out) == ["price"]
    ways = (frame, {"partitions": partitions}), (local, {}), (local, {"memory": "3GiB"})
    found = [
        vp.profile(source, **chosen, known=known, budget=BUDGET, options=vp.ReadOptions(**how, progress=False), seed=3)
        for source, how in ways
    ]
    assert found[0] == found[1] == found[2]
    assert len(found[0].joint["city", "year"]) == 4


@pytest.mark.parametrize("partitions", [3, None], ids=["spread", "handed over"])
@pytest.mark.parametrize("each", [1, 5], ids=["one number per key", "rounds"])
def test_keys_with_counts_are_the_same_on_spark_and_on_local_engines(spark, partitions, each):
    """Keys, counts, the chosen entry and the sums of other rows are equal, for one and for several keys per user."""
    rows = {
        "who": [number // each for number in range(1500 * each)],
        "city": [["Delft", "a|b", "Lund", None][number % 4] for number in range(1500 * each)],
        "year": [2020 + number % 7 for number in range(1500 * each)],
    }
    local = pl.DataFrame(rows)
    frame = spark.createDataFrame(local.rows(), schema=local.columns)
    ways = (frame, {"partitions": partitions}), (local, {}), (local, {"memory": "3GiB"})
    found = [
        vp.profile(
            source,
            user="who",
            joint=[("city", "year")],
            budget=BUDGET,
            options=vp.ReadOptions(**how, progress=False),
            seed=3,
        )
        for source, how in ways
    ]
    assert found[0] == found[1] == found[2]
    assert found[0].plan.chosen == (0 if each == 1 else 4)
    assert len(found[0].joint["city", "year"]) == 21


def test_keys_of_users_in_parts_are_the_same_on_spark_and_on_local_engines(spark):
    """Users with one, two and more keys are in different parts, and their keys and counts are equal."""
    held = [1 + (who % 10 >= 7) + (who % 10 == 9) * (1 + who // 10 % 3) for who in range(1500)]
    rows = [(who, f"city {(who // 3 + place) % 6}") for who, n in enumerate(held) for place in range(n)]
    local = pl.DataFrame(rows, schema=["who", "city"], orient="row")
    frame = spark.createDataFrame(local.rows(), schema=local.columns)
    keyed = vp.KeyCounts.of(local, user="who", joint=[("city",)])
    ways = (frame, {"partitions": 3}), (local, {}), (local, {"memory": "3GiB"})
    plan, found = keyed.plan(BUDGET), []
    for source, how in ways:
        corpus = keyed.read(source, user="who", options=vp.ReadOptions(**how, progress=False))
        found.append(plan.release(corpus, seed=3))
    assert found[0] == found[1] == found[2]
    assert found[0].plan.chosen == 3
    assert len(found[0]) == 6
