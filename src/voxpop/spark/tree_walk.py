"""Sequences on a cluster: each partition counts, noise is added where the counts are."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from voxpop.arrays import Int32s, Int64s
from voxpop.spark.closures import closure
from voxpop.spark.cores import cores, for_meeting
from voxpop.spark.failures import answer
from voxpop.spark.frames import STATE, Arrays, run_with_public
from voxpop.spark.holder import Holder
from voxpop.spark.round_walk import public_words
from voxpop.spark.sequence_tasks import (
    count_below,
    count_steps_of,
    cut_sequences_of,
    enter_nodes,
    lengthen_steps_of,
    noisy_children,
    open_steps_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from voxpop.corpus.engine import Combine, RestrictableDraws, Rows, TreeNoise
    from voxpop.spark.tasks import Answer

NODES_AT_ONCE = 1 << 10
"""Nodes whose children get their noise on one executor."""


class SparkTreeWalk:
    """What `MemoryTreeWalk` answers: `released` children of the nodes, `enter` those that are continued."""

    def __init__(
        self,
        state: "DataFrame",
        alphabet: tuple[str, ...],
        max_length: int,
        combine: "Combine",
        secret: "RestrictableDraws",
    ) -> None:
        """Cut every user's one sequence."""
        self._holder = Holder()
        self._alphabet = len(alphabet)
        public = public_words(pa.array(alphabet, pa.large_string()))
        mine = secret.restrict("sequences/sample")
        work = closure(cut_sequences_of, max_length=max_length, combine=combine, secret=mine)
        self._state = self._holder.hold(run_with_public(state, work, public, STATE))

    def released(self, depth: int, noise: "TreeNoise[Rows]") -> "Rows":
        """Count below nodes of this depth, add noise on the executors, and return what it leaves.

        Nodes are dealt out in blocks; the counts of a block meet its nodes' public numbers on one executor.
        """
        return self._released(noise, count_below, depth=depth)

    def _released(self, noise: "TreeNoise[Rows]", work: "Callable[..., Answer]", **fields: int) -> "Rows":
        width = self._alphabet + 1
        counts_of = closure(work, alphabet=self._alphabet, block=width * NODES_AT_ONCE, **fields)
        counts = self._state.mapInArrow(counts_of, "block bigint, name bigint, weight bigint")
        bare, tasks = noise.restricted(), for_meeting(cores(self._state.sparkSession))
        nodes = self._state.sparkSession.createDataFrame(_nodes(noise))
        both = (each.repartition(tasks, "block").groupBy("block") for each in (counts, nodes))
        add = closure(noisy_children, noise=bare, width=width)
        found = answer(next(both).cogroup(next(both)).applyInArrow(add, "row bigint, symbol int, count bigint"))
        return noise.joined(*(np.asarray(found.column(name)) for name in ("row", "symbol", "count")))

    def open_steps(self, max_length: int) -> None:
        """Begin anew for contexts; see `TreeWalk.open_steps`."""
        work = closure(open_steps_of, alphabet=self._alphabet, max_length=max_length)
        self._state = self._holder.hold(self._state.mapInArrow(work, STATE))

    def released_following(self, noise: "TreeNoise[Rows]") -> "Rows":
        """Count what follows the contexts, add noise on the executors, and return what it leaves."""
        return self._released(noise, count_steps_of)

    def lengthen(self, depth: int, keys: Int64s, longer: Int32s, others: Int32s) -> None:
        """Move each step to a longer context; see `TreeWalk.lengthen`."""
        work = closure(lengthen_steps_of, depth=depth, alphabet=self._alphabet)
        sent: Arrays = {"keys": keys, "longer": longer, "others": others}
        self._state = self._holder.hold(run_with_public(self._state, work, sent, STATE))

    def enter(self, depth: int, wanted: Int64s) -> None:
        """Put each position under the node whose gram starts there, one symbol longer than those last counted."""
        work = closure(enter_nodes, depth=depth, alphabet=self._alphabet)
        self._state = self._holder.hold(run_with_public(self._state, work, {"wanted": wanted}, STATE))


def _nodes(noise: "TreeNoise[Rows]") -> pa.Table:
    """Return the public numbers of the nodes, one row each, with the block of each."""
    columns = {name: pa.array(column, pa.int64()) for name, column in noise.nodes().items()}
    size = len(next(iter(columns.values())))
    return pa.table({"block": pa.array(np.arange(size) // NODES_AT_ONCE), "row": pa.array(np.arange(size)), **columns})
