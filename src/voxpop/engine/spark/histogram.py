"""Weights that remain on the executors. Decisions and noise are sent to the executors."""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.engine.spark.frames import LOW_BITS, AnswerBatches, SparkBatches, closure, words_of
from voxpop.engine.spark.session import answer, cores
from voxpop.engine.spark.tasks import MOST_SUM
from voxpop.engine.spark.worker import task
from voxpop.errors import InternalError
from voxpop.kernels.arrays import Int64s
from voxpop.privacy.opening import Opening, opened
from voxpop.reading.arrow import text_buffers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SparkHistogram:
    """The queries of `Weights` on weights that are never collected on the driver.

    Spark or the caller may repeat any action, because the noise is a function of the secret and the gram.
    """

    def __init__(self, weights: "DataFrame", *, words: bool) -> None:
        """Store the weights of all partitions.

        Args:
            weights: The columns name, high and low, with one row per partition and item.
            words: Whether names are the bytes of words.
        """
        self._weights = weights
        self._words = words
        self._texts: pa.LargeStringArray | None = None

    def chosen(self, decision: Opening) -> Int64s:
        """Return the names that pass the decision, in increasing order.

        Words are numbered from 0 in the order of their bytes.
        """
        return self._released(self._weights, decision)[0]

    def noisy_levels(self, levels: Opening, spurious_names: Int64s, theirs: Int64s) -> tuple[Int64s, Int64s]:
        """Return the names with a level above 0, in increasing order, and their levels.

        Words are numbered as in `chosen`. The candidates with votes remain on the executors. The executors receive the
        levels of simulated candidates.
        """
        from pyspark.sql import functions as sql

        rows = self._weights
        if spurious_names.size:
            columns = {"name": spurious_names, "high": np.zeros_like(theirs), "low": np.zeros_like(theirs)}
            simulated = pa.table({name: pa.array(column) for name, column in {**columns, "spurious": theirs}.items()})
            nothing = sql.lit(0).cast("bigint").alias("spurious")
            some = rows.sparkSession.createDataFrame(simulated)
            rows = rows.select("*", nothing).unionByName(some)
        return self._released(rows, levels)

    def _released(self, rows: "DataFrame", levels: Opening) -> tuple[Int64s, Int64s]:
        kind = f"name {'binary' if self._words else 'bigint'}, level bigint"
        grading = closure(level, levels=levels.restricted(), words=self._words)
        found = answer(_summed(rows).mapInArrow(grading, kind))
        names, reached = found.column("name").combine_chunks(), np.asarray(found.column("level")).astype(np.int64)
        order = np.asarray(pc.array_sort_indices(names))  # for words, this is the order of their bytes
        ordered = names.take(pa.array(order))
        if self._words:
            self._texts = words_of(ordered)
            return np.arange(order.size), reached[order]
        return np.asarray(ordered).astype(np.int64), reached[order]

    def texts(self, ids: Int64s) -> pa.LargeStringArray:
        """Return the words of ids that `chosen` returned."""
        if self._texts is None:
            raise InternalError("the words of ids were requested before any words were chosen")
        return self._texts.take(pa.array(ids))

    def measured(self, noise: Opening, size: int) -> Int64s:
        """Return the noisy weight of every rank below `size`. Executors add the noise before any weight leaves them."""
        from pyspark.sql import functions as sql

        nothing = sql.lit(0).cast("bigint")
        ranks = self._weights.sparkSession.range(size).select(
            sql.col("id").alias("name"), nothing.alias("high"), nothing.alias("low")
        )
        adding = closure(add_noise, noise=noise.restricted())
        found = answer(_summed(self._weights.unionByName(ranks)).mapInArrow(adding, "name bigint, cells bigint"))
        cells = np.empty(size, np.int64)
        cells[np.asarray(found.column("name"))] = np.asarray(found.column("cells"))
        return cells


def _summed(weights: "DataFrame") -> "DataFrame":
    """Add up the weights of the partitions, in the only shuffle of each length.

    Each gram occurs once in a partition, so a sum before the shuffle would save nothing. Each task writes one block for
    each task after the shuffle. Therefore there are no more tasks after the shuffle than run in parallel.
    """
    from pyspark.sql import functions as sql

    placed = weights.repartition(cores(weights.sparkSession), "name")
    return placed.groupBy("name").agg(*(sql.sum(each).alias(each) for each in weights.columns if each != "name"))


@task
def level(batches: SparkBatches, *, levels: Opening, words: bool) -> AnswerBatches:
    """Yield the names with a level above 0. Names with weight use their own noise. Names without weight are simulated.

    A name that passes a decision has level 1.
    """
    for batch in batches:
        names, weights = batch.column("name"), _weights_of(batch)
        held, reached = weights > 0, np.zeros(weights.size, np.int64)
        if "spurious" in batch.schema.names:
            reached[:] = np.asarray(batch.column("spurious"))
        mine = names.filter(pa.array(held))
        texts = text_buffers(words_of(mine)) if words else None
        ids = np.empty(0, np.int64) if words else np.asarray(mine)
        reached[held] = opened(levels, weights[held], ids, texts)
        kept = pa.array(reached > 0)
        yield pa.RecordBatch.from_arrays([names.filter(kept), pa.array(reached).filter(kept)], ["name", "level"])


@task
def add_noise(batches: SparkBatches, *, noise: Opening) -> AnswerBatches:
    """Yield noisy weights in whole cells."""
    for batch in batches:
        names = np.asarray(batch.column("name"))
        cells = opened(noise, _weights_of(batch), names)
        yield pa.RecordBatch.from_arrays([pa.array(names), pa.array(cells)], ["name", "cells"])


def _weights_of(batch: pa.RecordBatch) -> Int64s:
    """Return the summed weights, clipped at a bound above which results do not change.

    Clipping never increases the distance between two sums.
    """
    high, low = (np.asarray(batch.column(name)) for name in ("high", "low"))
    high = high + (low >> LOW_BITS)
    whole = (high << LOW_BITS) | (low & ((1 << LOW_BITS) - 1))
    return np.where(high >= MOST_SUM >> LOW_BITS, MOST_SUM, whole)
