"""Sequences on a cluster: each partition counts, noise is added where the counts are."""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from voxpop.spark.closures import closure
from voxpop.spark.failures import answer
from voxpop.spark.frames import STATE, run_with_public
from voxpop.spark.holder import Holder
from voxpop.spark.remaining import public_words
from voxpop.spark.sequence_tasks import count_below, cut_sequences_of, enter_nodes, noisy_children

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from voxpop.corpus.engine import Combine, Lender, Rows, TreeNoise

Int64s = NDArray[np.int64]
NODES_AT_ONCE = 1 << 10
"""Nodes whose children get their noise on one executor."""


class SparkCounting:
    """What `Counting` answers: `released` children of the nodes, `enter` those that are continued."""

    def __init__(
        self, state: "DataFrame", alphabet: tuple[str, ...], max_length: int, combine: "Combine", secret: "Lender"
    ) -> None:
        """Cut every user's one sequence."""
        self._holder = Holder()
        self._alphabet = len(alphabet)
        public = public_words(pa.array(alphabet, pa.large_string()))
        mine = secret.lend("sequences/sample")
        work = closure(cut_sequences_of, max_length=max_length, combine=combine, secret=mine)
        self._state = self._holder.hold(run_with_public(state, work, public, STATE))

    def released(self, depth: int, noise: "TreeNoise[Rows]") -> "Rows":
        """Count below nodes of this depth, add noise on the executors, and return what it leaves.

        Nodes are dealt out in blocks; the counts of a block meet its nodes' public numbers on one executor.
        """
        width = self._alphabet + 1
        count = closure(count_below, depth=depth, alphabet=self._alphabet, block=width * NODES_AT_ONCE)
        counts = self._state.mapInArrow(count, "block bigint, name bigint, weight bigint").groupBy("block")
        bare = noise.lent()
        nodes = self._state.sparkSession.createDataFrame(_nodes(noise)).groupBy("block")
        work = closure(noisy_children, noise=bare, width=width)
        found = answer(counts.cogroup(nodes).applyInArrow(work, "row bigint, symbol int, count bigint").toArrow)
        return noise.joined(*(np.asarray(found.column(name)) for name in ("row", "symbol", "count")))

    def enter(self, depth: int, wanted: Int64s) -> None:
        """Put each position under the node whose gram starts there, one symbol longer than those last counted."""
        work = closure(enter_nodes, depth=depth, alphabet=self._alphabet)
        self._state = self._holder.hold(run_with_public(self._state, work, {"wanted": wanted}, STATE))


def _nodes(noise: "TreeNoise[Rows]") -> pa.Table:
    """Return the public numbers of the nodes, one row each, with the block of each."""
    columns = {name: pa.array(column, pa.int64()) for name, column in noise.nodes().items()}
    size = len(next(iter(columns.values())))
    return pa.table({"block": pa.array(np.arange(size) // NODES_AT_ONCE), "row": pa.array(np.arange(size)), **columns})
