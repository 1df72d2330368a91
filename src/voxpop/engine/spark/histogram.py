"""Weights that stay on the executors: decisions and noise are sent to them."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from voxpop.engine.spark.frames import Answer, Batches, closure
from voxpop.engine.spark.session import answer, cores
from voxpop.engine.spark.tasks import LOW_BITS, MOST_WEIGHT
from voxpop.engine.spark.worker import task
from voxpop.errors import InternalError
from voxpop.kernels.arrays import Int64s

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from voxpop.engine.contract import Decision, LevelRule, Noise


class SparkHistogram:
    """The queries of `Histogram`, on weights that are never collected.

    Every action may be run again, by Spark or by the caller: its noise is a function of the secret and the gram.
    """

    def __init__(self, weights: "DataFrame", *, words: bool) -> None:
        """Take the weights of all partitions.

        Args:
            weights: columns name, high and low, one row per partition and item.
            words: whether names are the bytes of words.
        """
        self._weights = weights
        self._words = words
        self._texts: pa.LargeStringArray | None = None

    def chosen(self, decision: "Decision") -> Int64s:
        """Return the names that pass, rising; words get the numbers 0, 1, 2, ... in order of their bytes."""
        kind = "name binary" if self._words else "name bigint"
        work = closure(decide, coins=decision.restricted(), words=self._words)
        names = answer(_summed(self._weights).mapInArrow(work, kind)).column("name").combine_chunks()
        if not self._words:
            return np.sort(np.asarray(names).astype(np.int64))
        ordered = sorted(names.to_pylist())  # the order of bytes
        self._texts = pa.array(ordered, pa.large_binary()).cast(pa.large_string())
        return np.arange(len(ordered))

    def noisy_levels(self, levels: "LevelRule", spurious_names: Int64s, theirs: Int64s) -> tuple[Int64s, Int64s]:
        """Return the names of a level above 0, rising, and their levels; words are numbered as by `chosen`.

        The candidates with votes stay on the executors: the levels of candidates that may have no holder are sent
        there.
        """
        from pyspark.sql import functions as sql

        nothing = sql.lit(0).cast("bigint")
        rows = self._weights.withColumn("spurious", nothing)
        if spurious_names.size:
            table = pa.table({"name": pa.array(spurious_names, pa.int64()), "spurious": pa.array(theirs, pa.int64())})
            some = self._frame(table).select("name", nothing.alias("high"), nothing.alias("low"), "spurious")
            rows = rows.unionByName(some)
        kind = f"name {'binary' if self._words else 'bigint'}, level bigint"
        grading = closure(level, levels=levels.restricted(), words=self._words)
        found = answer(_summed(rows, "spurious").mapInArrow(grading, kind))
        names, reached = found.column("name").combine_chunks(), np.asarray(found.column("level")).astype(np.int64)
        if self._words:
            order = np.array(sorted(range(len(names)), key=names.to_pylist().__getitem__), np.int64)
            self._texts = names.take(pa.array(order)).cast(pa.large_binary()).cast(pa.large_string())
            return np.arange(order.size), reached[order]
        numbers = np.asarray(names).astype(np.int64)
        order = np.argsort(numbers)
        return numbers[order], reached[order]

    def texts(self, ids: Int64s) -> pa.LargeStringArray:
        """Return the words of numbers that `chosen` gave."""
        if self._texts is None:
            raise InternalError("texts were asked of weights before words were chosen")
        return self._texts.take(pa.array(ids))

    def measured(self, noise: "Noise", size: int) -> Int64s:
        """Return the noisy weight of every rank below `size`: noise is added before anything leaves the executors."""
        everything = self._with_nothing(self._weights.sparkSession.range(size).toDF("name"))
        noisy = _summed(everything).mapInArrow(
            closure(add_noise, noise=noise.restricted()), "name bigint, cells bigint"
        )
        found = answer(noisy)
        cells = np.empty(size, np.int64)
        cells[np.asarray(found.column("name"))] = np.asarray(found.column("cells"))
        return cells

    def _with_nothing(self, names: "DataFrame") -> "DataFrame":
        """Add names with a weight of 0."""
        from pyspark.sql import functions as sql

        zero = sql.lit(0).cast("bigint")
        return self._weights.unionByName(names.select("name", zero.alias("high"), zero.alias("low")))

    def _frame(self, table: pa.Table) -> Any:
        return self._weights.sparkSession.createDataFrame(table)

    def __repr__(self) -> str:
        return "SparkHistogram(private)"


def _summed(weights: "DataFrame", *more: str) -> "DataFrame":
    """Add up the partitions: the one shuffle of a length.

    A partition names a gram once, so adding up before the shuffle would only cost; and each task writes a file's worth
    for each task that it shuffles to, so there are as many of these as run at once.
    """
    from pyspark.sql import functions as sql

    placed = weights.repartition(cores(weights.sparkSession), "name")
    return placed.groupBy("name").agg(*(sql.sum(each).alias(each) for each in ("high", "low", *more)))


@task
def decide(batches: Batches, *, coins: "Decision", words: bool) -> Answer:
    """Yield the names that pass by their coin."""
    for batch in batches:
        yield _passed(batch, coins, words=words)


def _passed(batch: pa.RecordBatch, coins: "Decision", *, words: bool) -> pa.RecordBatch:
    names, weights = batch.column("name"), _weights_of(batch)
    ids, texts = (np.empty(0, np.int64), _texts(names)) if words else (np.asarray(names), None)
    return pa.RecordBatch.from_arrays([names.filter(pa.array(coins(weights, ids, texts)))], ["name"])


@task
def level(batches: Batches, *, levels: "LevelRule", words: bool) -> Answer:
    """Yield the names of a level above 0: by their own noise where they have weight; without weight, as simulated."""
    for batch in batches:
        names, weights = batch.column("name"), _weights_of(batch)
        held, reached = weights > 0, np.array(batch.column("spurious"))
        mine = names.filter(pa.array(held))
        if words:
            reached[held] = levels(weights[held], np.empty(0, np.int64), _texts(mine))
        else:
            reached[held] = levels(weights[held], np.asarray(mine), None)
        kept = pa.array(reached > 0)
        yield pa.RecordBatch.from_arrays([names.filter(kept), pa.array(reached).filter(kept)], ["name", "level"])


def _texts(names: pa.Array) -> Any:
    from voxpop.reading.arrow import text_buffers

    return text_buffers(names.cast(pa.large_binary()).cast(pa.large_string()))


@task
def add_noise(batches: Batches, *, noise: "Noise") -> Answer:
    """Yield noisy weights in whole cells."""
    for batch in batches:
        names = np.asarray(batch.column("name"))
        cells = noise(_weights_of(batch), names)
        yield pa.RecordBatch.from_arrays([pa.array(names), pa.array(cells)], ["name", "cells"])


def _weights_of(batch: pa.RecordBatch) -> Int64s:
    """Return summed weights, cut off where nothing depends on them any more: min(x, c) brings no two sums apart."""
    high, low = (np.asarray(batch.column(name)) for name in ("high", "low"))
    high = high + (low >> LOW_BITS)
    whole = (high << LOW_BITS) | (low & ((1 << LOW_BITS) - 1))
    return np.where(high >= MOST_WEIGHT >> LOW_BITS, MOST_WEIGHT, whole)
