"""Tests that noise is drawn only once, which avoids known failures on Spark (see docs/design/0005-spark.md)."""

import os
import subprocess
import sys

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from framed import framed

import voxpop as vp
from searches.sensitivity import Written
from voxpop.engine.contract import check_engine
from voxpop.engine.spark import frames as holder
from voxpop.engine.spark.histogram import SparkHistogram
from voxpop.privacy.decisions import NoisyLevels, ReleaseDecisions, ThresholdRule
from voxpop.privacy.secret import Secret
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting

BUDGET = vp.Budget(epsilon=4, delta=1e-8)
ITEMS = 2000
FALSE_ALARM = 1e-9


def weights(spark):
    """Return 2,000 items in several partitions. Each item is released with probability 1/2."""
    return spark.range(0, ITEMS, 1, 4).selectExpr("id AS name", "0L AS high", f"{1 << 20}L AS low")


def coins(secret):
    return ReleaseDecisions(ThresholdRule("gaussian", 1.0, 1 << 20, 2.0**-20), secret, "noise/x")


def redrawn(frame):
    """Run a known broken variant, in which noise is drawn in a filter that every action evaluates again."""

    def keep(batches):
        rng = np.random.default_rng()
        for batch in batches:
            passed = rng.standard_normal(batch.num_rows) > 0
            yield pa.RecordBatch.from_arrays([batch.column("name").filter(pa.array(passed))], ["name"])

    return frame.mapInArrow(keep, "name bigint")


def captured(frame):
    """Run a broken variant with a generator in its closure, so that every partition draws the same noise."""
    rng = np.random.default_rng(0)

    def keep(batches):
        for batch in batches:
            passed = rng.standard_normal(batch.num_rows) > 0
            yield pa.RecordBatch.from_arrays([batch.column("name").filter(pa.array(passed))], ["name"])

    return frame.mapInArrow(keep, "name bigint")


def names_of(frame):
    return np.sort(np.asarray(frame.toArrow()["name"])).tolist()


def is_half_and_half(mask):
    """Return whether decisions look fair and differ between the four partitions, except for false alarms."""
    parts = mask.reshape(4, -1)
    bound = np.sqrt(ITEMS / 4 * np.log(2 * 10 / FALSE_ALARM) / 2)  # Hoeffding's bound for parts and pairs of parts
    same = [np.sum(parts[i] == parts[j]) for i in range(4) for j in range(i)]
    return all(abs(count - ITEMS / 8) < bound for count in [*parts.sum(1), *same])


def test_a_second_action_has_the_same_noise(spark):
    """In the broken variant, two actions draw different noise, so they are two releases."""
    twin = redrawn(weights(spark))
    assert names_of(twin) != names_of(twin)
    histogram, secret = SparkHistogram(weights(spark), words=False), Secret.fresh()
    first = histogram.chosen(coins(secret)).tolist()
    assert first == histogram.chosen(coins(secret)).tolist()
    assert first != histogram.chosen(coins(Secret.fresh())).tolist()
    none = np.empty(0, np.int64)
    levels = NoisyLevels((coins(secret).rule,), secret, coins(secret).purpose)
    assert [names.tolist() for names in (histogram.noisy_levels(levels, none, none)[0] for _ in range(2))] == [
        first,
        first,
    ]


def test_lost_blocks_are_recomputed_with_the_same_noise(spark):
    """The broken variant draws new noise after its persisted blocks are lost."""
    twin = redrawn(weights(spark)).persist()
    before = names_of(twin)
    assert names_of(twin) == before
    twin.unpersist(True)
    assert names_of(twin) != before
    kept, secret = weights(spark).persist(), Secret.fresh()
    histogram = SparkHistogram(kept, words=False)
    before = histogram.chosen(coins(secret)).tolist()
    kept.unpersist(True)
    assert histogram.chosen(coins(secret)).tolist() == before


def test_partitions_do_not_share_noise(spark):
    """A generator in a closure draws the same noise in all partitions (false alarm below 1e-8)."""
    twin = np.isin(np.arange(ITEMS), names_of(captured(weights(spark))))
    assert (twin.reshape(4, -1) == twin[: ITEMS // 4]).all()
    assert not is_half_and_half(twin)
    ours = SparkHistogram(weights(spark), words=False).chosen(coins(Secret.fresh()))
    assert is_half_and_half(np.isin(np.arange(ITEMS), ours))


LOST = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
import voxpop as vp

folder = Path(sys.argv[1])
(folder / "events").mkdir()
spark = (
    SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false")
    .config("spark.local.dir", str(folder / "blocks")).config("spark.eventLog.enabled", "true")
    .config("spark.eventLog.compress", "false").config("spark.eventLog.dir", f"file://{folder / 'events'}")
    .getOrCreate()
)
table = spark.range(600).selectExpr("id AS who", "concat('green tea number ', id % 7) AS what")
people = vp.read(table, user="who", text="what", options=vp.ReadOptions(partitions=3))
ngrams, budget = vp.papers.DPNE(max_length=2, max_phrases_per_user=4), vp.Budget(4, 1e-8)
before = ngrams.release(people, budget, seed=5)
for kept in spark.sparkContext._jsc.getPersistentRDDs().values():
    kept.unpersist(True)
lost = [file for file in (folder / "blocks").rglob("shuffle_*") if not file.unlink()]
same = ngrams.release(people, budget, seed=5).grams.equals(before.grams)
spark.stop()
failed = sum(file.read_text().count('"Reason":"FetchFailed"') for file in (folder / "events").rglob("events_*"))
print(len(before) > 3, bool(lost), same, failed > 0)
"""


def test_a_lost_shuffle_is_computed_again_with_the_same_release(java, tmp_path):
    """The test deletes the persisted states and the shuffle files, which Spark then fails to fetch.

    The test uses a separate session, because Spark treats the executor of a local session as lost after such a failure.
    """
    env = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run([sys.executable, "-c", LOST, tmp_path], capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == "True True True True"


def test_recomputing_every_state_gives_the_same_release(read_both, talk, monkeypatch):
    """In this test, no state is kept between lengths, so each action computes all states again from the source."""
    local, spread = read_both(talk)
    ngrams = vp.papers.DPNE(max_length=3, max_phrases_per_user=4)
    kept = ngrams.release(spread, BUDGET, seed=5)
    monkeypatch.setattr(holder.Holder, "hold", lambda self, state, theirs=False: state)
    forgotten = ngrams.release(read_both(talk)[1], BUDGET, seed=5)
    assert kept.grams.equals(forgotten.grams)
    assert kept.grams.equals(ngrams.release(local, BUDGET, seed=5).grams)


class DiesAtFirst(Written):
    """A weighting with even shares that ends its worker process on the first attempt of every task."""

    def shares(self, weights, cutoff):
        from pyspark import TaskContext

        context = TaskContext.get()
        if context is not None and context.attemptNumber() == 0:
            os._exit(1)
        return np.full(len(weights), 1 / np.sqrt(len(weights)))


class Even(DiesAtFirst):
    """The same weighting without the failure."""

    def shares(self, weights, cutoff):
        return np.full(len(weights), 1 / np.sqrt(len(weights)))


def dying_tokenizer(texts):
    """Split a text at spaces, and end the process on the first attempt."""
    from pyspark import TaskContext

    if TaskContext.get().attemptNumber() == 0:
        os._exit(1)
    return [text.split() for text in texts]


def test_repeated_tasks_give_the_same_weights(spark, read_both, talk):
    """The first worker process of each task ends, both during reading and during weighing."""
    small = talk.filter(pl.col("who") < 200)
    corpus = vp.read(
        framed(spark, small), user="who", text="what", tokenizer=dying_tokenizer, options=vp.ReadOptions(partitions=2)
    )
    calm = vp.read(
        framed(spark, small), user="who", text="what", tokenizer="whitespace", options=vp.ReadOptions(partitions=2)
    )
    setting, secret = RuleSetting(4, 2, 40, 2**46), Secret.from_seed(1)
    died, lived = (
        check_engine(data).weigh(CalibratedRule(rule, setting), 4, secret, "items")._weights.toArrow()
        for data, rule in ((corpus, DiesAtFirst()), (calm, Even()))
    )
    assert died.sort_by("name").equals(lived.sort_by("name"))
    assert died.num_rows > 5


@pytest.mark.parametrize("setting", ["spark.sql.adaptive.enabled"])
def test_the_query_plan_of_spark_does_not_change_the_release(spark, read_both, talk, setting):
    """The query plans are those with and without adaptive execution."""
    ngrams = vp.papers.DPNE(max_length=2, max_phrases_per_user=4)
    before = spark.conf.get(setting)
    releases = []
    for value in ("true", "false"):
        spark.conf.set(setting, value)
        releases.append(ngrams.release(read_both(talk)[1], BUDGET, seed=5))
    spark.conf.set(setting, before)
    assert releases[0].grams.equals(releases[1].grams)
