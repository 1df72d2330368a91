"""Weights that stay on the executors: decisions and noise are sent to them."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from voxpop.arrays import Int64s
from voxpop.errors import InternalError
from voxpop.privacy.decide import TableRule
from voxpop.privacy.decisions import ReleaseDecisions
from voxpop.spark.closures import closure
from voxpop.spark.cores import cores
from voxpop.spark.failures import answer
from voxpop.spark.frames import run_with_public
from voxpop.spark.tasks import add_noise, decide, decide_by_table, level

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from voxpop.corpus.engine import Decision, LevelRule, Noise


class SparkHistogram:
    """What `Histogram` answers, of weights that nobody collects.

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
        names = answer(self._passed(decision.restricted(), kind)).column("name").combine_chunks()
        if not self._words:
            return np.sort(np.asarray(names).astype(np.int64))
        ordered = sorted(names.to_pylist())  # the order of bytes
        self._texts = pa.array(ordered, pa.large_binary()).cast(pa.large_string())
        return np.arange(len(ordered))

    def _passed(self, coins: "Decision", schema: str) -> "DataFrame":
        """Send coins to the sums; a table of probabilities is public, large, and must not travel with their key."""
        sums = _summed(self._weights)
        if not (isinstance(coins, ReleaseDecisions) and isinstance(coins.rule, TableRule)):
            return sums.mapInArrow(closure(decide, coins=coins, words=self._words), schema)
        table = coins.rule.table
        settings = {"secret": coins.secret, "purpose": coins.purpose, "words": self._words}
        work = closure(decide_by_table, least=table.least, turn=table.turn, **settings)
        return run_with_public(sums, work, {"tails": table.tails}, schema)

    def noisy_levels(self, levels: "LevelRule", spurious_names: Int64s, theirs: Int64s) -> tuple[Int64s, Int64s]:
        """Return the names of a level above 0, rising, and their levels; words are numbered as by `chosen`.

        Who has votes stays on the executors: the levels of candidates that nobody may hold are sent there.
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
            raise InternalError("texts were asked of weights before words were chosen.")
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
