"""Tests of the numbers of places, jobs and tasks in a session with default settings."""

from itertools import count
from typing import ClassVar

import polars as pl
import pytest
from framed import framed

import voxpop as vp
from support.look import read_engine
from voxpop.engine.spark.session import NOT_ADAPTIVE, _wait_for_executors, cores, with_setting
from voxpop.errors import InputError

BUDGET = vp.Budget(4, 1e-8)
_NUMBERS = count()
[(ADAPTIVE, _)] = NOT_ADAPTIVE.items()


def test_the_number_of_places_is_the_number_of_cores(spark, elsewhere):
    """The number of places does not depend on the table or settings, because one more row must not change it.

    With an order-dependent weighting, the effect of a user depends on the other users in the same place.
    """
    one = pl.DataFrame({"who": [1], "what": ["tea"]})
    many = pl.DataFrame({"who": range(3000), "what": ["tea"] * 3000})
    assert cores(spark) == 2
    places = set()
    for frame in (framed(spark, one), framed(spark, many), framed(spark, many).repartition(30)):
        for setting in ("200", "7", "1"):
            spark.conf.set("spark.sql.shuffle.partitions", setting)
            corpus = read_engine(frame, user="who", text="what")
            places.add((corpus._places, corpus._state.rdd.getNumPartitions()))
    spark.conf.unset("spark.sql.shuffle.partitions")
    assert places == {(2, 2)}
    assert (
        read_engine(frame, user="who", text="what", options=vp.ReadOptions(partitions=5))._state.rdd.getNumPartitions()
        == 5
    )


class Growing:
    """A session with a number of executors that depends on the workload."""

    conf: ClassVar = {"spark.dynamicAllocation.enabled": "true", "spark.sql.shuffle.partitions": "70"}


def test_with_dynamic_allocation_the_number_of_places_is_a_setting():
    """With dynamic allocation, the number of executors would depend on the data."""
    assert cores(Growing()) == 70


@pytest.mark.parametrize("wrong", [0, 1.5, True, 2**21])
def test_partitions_of_a_spark_frame_must_be_a_whole_number(spark, wrong):
    """For a local table, the option is rejected."""
    table = pl.DataFrame({"who": [1], "what": ["tea"]})
    with pytest.raises(InputError, match="whole number"):
        read_engine(framed(spark, table), user="who", text="what", options=vp.ReadOptions(partitions=wrong))
    with pytest.raises(InputError, match="option for Spark DataFrames"):
        read_engine(table, user="who", text="what", options=vp.ReadOptions(partitions=2))


def counted(spark, work):
    """Return the number of jobs, the sorted numbers of tasks of the executed stages, and the result."""
    context = spark.sparkContext
    group = f"counted {next(_NUMBERS)}"
    context.setJobGroup(group, "a release")
    done = work()
    context.setLocalProperty("spark.jobGroup.id", None)
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(group)]
    stages = {number: tracker.getStageInfo(number) for job in jobs for number in job.stageIds}
    return len(jobs), sorted(stage.numTasks for stage in stages.values() if stage and stage.numCompletedTasks), done


@pytest.mark.parametrize("partitions", [1, 3])
def test_no_round_has_more_tasks_than_places(spark, partitions):
    """With one place, Spark would repartition rows that no column assigns to places."""
    table = pl.DataFrame({"who": [n % 300 for n in range(900)], "what": [f"w{n % 7}" for n in range(900)]})
    corpus = read_engine(framed(spark, table), user="who", items="what", options=vp.ReadOptions(partitions=partitions))
    _, ran, release = counted(spark, lambda: vp.Items(max_items_per_user=3).release(corpus, vp.Budget(4, 1e-3), seed=1))
    assert len(release) == 7
    assert max(ran) <= max(partitions, 2)


def test_each_length_runs_two_jobs_with_one_task_per_place_or_core(spark, talk):
    """Each length has a vote and a measurement, and one more job is permitted for all lengths together."""
    corpus = read_engine(framed(spark, talk), user="who", text="what", options=vp.ReadOptions(partitions=3))
    ngrams = vp.papers.DPNE(max_length=3, max_phrases_per_user=4)
    jobs, ran, release = counted(spark, lambda: ngrams.release(corpus, BUDGET, seed=2))
    assert max(len(gram) for gram in release.each_gram()) == 3
    assert jobs <= 2 * 3 + 1
    assert max(ran) <= 3 + 2  # The stages have three places, and a public list with one part per core.
    assert sum(ran) <= jobs * (3 + 2 + 2)
    assert spark.conf.get(ADAPTIVE) == "true"


def test_the_setting_of_the_session_is_restored(spark):
    """The setting is restored after several concurrent uses and after an error."""
    with with_setting(spark, ADAPTIVE, "false"), with_setting(spark, ADAPTIVE, "false"):
        assert spark.conf.get(ADAPTIVE) == "false"
    assert spark.conf.get(ADAPTIVE) == "true"
    with pytest.raises(ZeroDivisionError), with_setting(spark, ADAPTIVE, "false"):
        raise ZeroDivisionError
    assert spark.conf.get(ADAPTIVE) == "true"
    spark.conf.set(ADAPTIVE, "false")
    with with_setting(spark, ADAPTIVE, "false"):
        pass
    assert spark.conf.get(ADAPTIVE) == "false"
    spark.conf.unset(ADAPTIVE)


def test_workers_exclude_permanent_objects_from_garbage_collection(spark):
    """Spark collects garbage after each task.

    If all objects of numba were included, a collection would take longer than most tasks.
    """

    def look(batches):
        import gc

        import pyarrow as pa

        from voxpop.engine.spark.worker import safely

        for batch in batches:
            with safely("look"):
                pass
            yield pa.RecordBatch.from_pydict({"id": pa.array([gc.get_freeze_count()] * batch.num_rows)})

    frame = spark.range(1)
    found = frame.mapInArrow(look, "id bigint").toArrow()["id"].to_pylist()
    assert found[0] > 10_000


class Arriving:
    """A context with four executors, which register one after another."""

    def __init__(self, monkeypatch, every=1.5):
        self.now, self.every = 0.0, every
        monkeypatch.setattr("voxpop.engine.spark.session.time", self)

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds

    @property
    def defaultParallelism(self):  # noqa: N802  # Spark's name
        return 2 * min(4, 1 + int(self.now / self.every))


def test_the_driver_waits_until_no_more_executors_register(monkeypatch):
    """With too few executors, the number of partitions would be too small, and the release would be different."""
    context = Arriving(monkeypatch)
    _wait_for_executors(context)
    assert context.defaultParallelism == 8
    assert context.now < 9


def test_the_wait_for_executors_ends_after_half_a_minute(monkeypatch):
    """In this test, the number of executors never stops increasing."""
    context = Arriving(monkeypatch)
    monkeypatch.setattr(Arriving, "defaultParallelism", property(lambda self: int(self.now)))
    _wait_for_executors(context)
    assert 30 <= context.now < 31
