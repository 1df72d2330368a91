"""Sequences on a cluster: each partition counts, and noise is added where the counts are."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from voxpop.engine.local.tree_walk import MemoryTreeWalk
from voxpop.engine.spark.frames import (
    Answer,
    Arrays,
    Holder,
    closure,
    on_state,
    pieces,
    run_with_public,
    texts_of,
    word_arrays,
)
from voxpop.engine.spark.session import answer, at_least_two, cores
from voxpop.engine.spark.tasks import corpus_of
from voxpop.engine.spark.worker import safely
from voxpop.kernels.arrays import Int32s, Int64s

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from voxpop.engine.contract import Counted, Draws, RestrictableDraws, TreeNoise


@on_state
def cut_sequences_of(arrays: Arrays, sent: Arrays, *, max_length: int, secret: "Draws") -> Answer:
    """Cut one sequence of each user of a partition."""
    alphabet = tuple(texts_of(sent).to_pylist())
    yield from _rows_of(corpus_of(arrays).tree_walk(alphabet, max_length, secret))


@on_state
def count_steps_of(
    arrays: Arrays, sent: Arrays, *, alphabet: int, block: int, counted: str, given: tuple[Int64s, ...]
) -> Answer:
    """Count what `TreeWalk.released` counts, each count with the block of its node."""
    keys, counts = getattr(_counting_of(arrays, alphabet), f"count_{counted}")(*given)
    columns = [pa.array(keys // block), pa.array(keys), pa.array(counts)]
    yield pa.RecordBatch.from_arrays(columns, ["block", "name", "weight"])


@on_state
def lengthen_steps_of(arrays: Arrays, sent: Arrays, *, depth: int, alphabet: int) -> Answer:
    """Move each step to a longer context."""
    counting = _counting_of(arrays, alphabet)
    counting.lengthen(depth, sent["keys"], sent["longer"], sent["others"])
    if (counting.places >= 0).any():
        yield from _rows_of(counting)


def noisy_counts(counts: pa.Table, nodes: pa.Table, *, noise: "TreeNoise") -> pa.Table:
    """Return the noisy counts of one block of nodes: noise is added to the sums of all partitions."""
    with safely("noisy_counts"):
        nodes = nodes.sort_by("row")
        first = int(nodes["row"][0].as_py())
        mine = noise.of_nodes(first, np.asarray(nodes["shares"]).astype(np.int64))
        keys, places = np.unique(np.asarray(counts["name"]).astype(np.int64), return_inverse=True)
        sums = np.zeros(keys.size, np.int64)
        np.add.at(sums, places, np.asarray(counts["weight"]).astype(np.int64))
        noisy = mine(keys - first * noise.width, sums)
        rows, symbols = (each.ravel() for each in np.indices(noisy.shape))
        columns = {"row": rows + first, "symbol": symbols.astype(np.int32), "count": noisy.ravel()}
        return pa.table({name: pa.array(column) for name, column in columns.items()})


def _rows_of(counting: MemoryTreeWalk) -> Iterator[pa.RecordBatch]:
    arrays: Arrays = {"symbols": counting.symbols, "places": counting.places}
    return pieces(arrays)


def _counting_of(arrays: Arrays, alphabet: int) -> MemoryTreeWalk:
    return MemoryTreeWalk(arrays["symbols"], alphabet, 0, arrays["places"])


NODES_AT_ONCE = 1 << 10
"""Nodes whose children get their noise on one executor."""


class SparkTreeWalk:
    """The counterpart of `MemoryTreeWalk` on a cluster."""

    def __init__(
        self,
        state: "DataFrame",
        alphabet: tuple[str, ...],
        max_length: int,
        secret: "RestrictableDraws",
    ) -> None:
        """Cut every user's one sequence."""
        self._holder = Holder()
        self._alphabet = len(alphabet)
        public = word_arrays(pa.array(alphabet, pa.large_string()))
        mine = secret.restrict("sequences/sample")
        work = closure(cut_sequences_of, max_length=max_length, secret=mine)
        self._state = self._holder.hold(run_with_public(state, work, public))

    def released(self, counted: "Counted", noise: "TreeNoise", *given: Int64s) -> Int64s:
        """Count, add noise on the executors, and return the noisy counts.

        Nodes are dealt out in blocks; the counts of a block meet its nodes' public numbers on one executor.
        """
        width = noise.width
        work = {"alphabet": self._alphabet, "block": width * NODES_AT_ONCE, "counted": counted, "given": given}
        counts_of = closure(count_steps_of, **work)
        counts = self._state.mapInArrow(counts_of, "block bigint, name bigint, weight bigint")
        bare, tasks = noise.restricted(), at_least_two(cores(self._state.sparkSession))
        rows = np.arange(noise.shares.size)
        public = {"block": rows // NODES_AT_ONCE, "row": rows, "shares": noise.shares}
        nodes = self._state.sparkSession.createDataFrame(pa.table({name: pa.array(public[name]) for name in public}))
        both = (each.repartition(tasks, "block").groupBy("block") for each in (counts, nodes))
        add = closure(noisy_counts, noise=bare)
        found = answer(next(both).cogroup(next(both)).applyInArrow(add, "row bigint, symbol int, count bigint"))
        counts = np.zeros((noise.shares.size, width), np.int64)
        counts[np.asarray(found["row"]), np.asarray(found["symbol"])] = np.asarray(found["count"])
        return counts

    def lengthen(self, depth: int, keys: Int64s, longer: Int32s, others: Int32s) -> None:
        """Move each step to a longer context; see `TreeWalk.lengthen`."""
        work = closure(lengthen_steps_of, depth=depth, alphabet=self._alphabet)
        sent: Arrays = {"keys": keys, "longer": longer, "others": others}
        self._state = self._holder.hold(run_with_public(self._state, work, sent))
