"""What runs on the executors for sequences; see `voxpop.spark.tasks`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from voxpop.arrays import Int64s
from voxpop.spark.frames import Arrays, laid_together, pieces, texts_of
from voxpop.spark.tasks import Answer, Batches, corpus_of
from voxpop.spark.worker import safely, task

if TYPE_CHECKING:
    from voxpop.corpus.draws import Draws
    from voxpop.corpus.engine import Combine, Rows, TreeNoise
    from voxpop.corpus.tree_walk import MemoryTreeWalk


@task
def cut_sequences_of(
    batches: Batches, *, max_length: int, combine: "Combine", secret: "Draws", public: bytes | None = None
) -> Answer:
    """Cut one sequence of each user of a partition."""
    arrays, sent = laid_together(batches, public)
    if not arrays:
        return
    alphabet = tuple(texts_of(sent["word_data"], sent["word_starts"]).to_pylist())
    yield from _rows_of(corpus_of(arrays).tree_walk(alphabet, max_length, combine, secret))


@task
def count_below(batches: Batches, *, depth: int, alphabet: int, block: int) -> Answer:
    """Count what continues the nodes of a depth, each count with the block of its node."""
    arrays, _ = laid_together(batches)
    if arrays:
        yield _by_block(_counting_of(arrays, alphabet).count(depth), block)


@task
def enter_nodes(batches: Batches, *, depth: int, alphabet: int, public: bytes | None = None) -> Answer:
    """Go on to the nodes that were opened."""
    arrays, sent = laid_together(batches, public)
    if not arrays:
        return
    counting = _counting_of(arrays, alphabet)
    counting.count(depth)
    counting.enter(depth, sent["wanted"])
    if (counting.places >= 0).any():
        yield from _rows_of(counting)


@task
def open_steps_of(batches: Batches, *, alphabet: int, max_length: int) -> Answer:
    """Put the steps under the root of contexts."""
    arrays, _ = laid_together(batches)
    if arrays:
        counting = _counting_of(arrays, alphabet)
        counting.open_steps(max_length)
        yield from _rows_of(counting)


@task
def count_steps_of(batches: Batches, *, alphabet: int, block: int) -> Answer:
    """Count what follows the contexts, each count with the block of its node."""
    arrays, _ = laid_together(batches)
    if arrays:
        yield _by_block(_counting_of(arrays, alphabet).count_following(), block)


@task
def lengthen_steps_of(batches: Batches, *, depth: int, alphabet: int, public: bytes | None = None) -> Answer:
    """Move each step to a longer context."""
    arrays, sent = laid_together(batches, public)
    if not arrays:
        return
    counting = _counting_of(arrays, alphabet)
    counting.lengthen(depth, sent["keys"], sent["longer"], sent["others"])
    if (counting.places >= 0).any():
        yield from _rows_of(counting)


def noisy_children(counts: pa.Table, nodes: pa.Table, *, noise: "TreeNoise[Rows]", width: int) -> pa.Table:
    """Return the released children of one block of nodes: noise is added to the sums of all partitions."""
    with safely("noisy_children"):
        nodes = nodes.sort_by("row")
        first = int(nodes["row"][0].as_py())
        mine = noise.of_nodes(
            first, *(np.asarray(nodes[name]).astype(np.int64) for name in ("parents", "shares", "heights"))
        )
        keys, places = np.unique(np.asarray(counts["name"]).astype(np.int64), return_inverse=True)
        sums = np.zeros(keys.size, np.int64)
        np.add.at(sums, places, np.asarray(counts["weight"]).astype(np.int64))
        rows = mine(keys - first * width, sums)
        columns = [rows.rows + first, rows.symbols, rows.counts]
        return pa.table([pa.array(column) for column in columns], ["row", "symbol", "count"])


def _by_block(counted: tuple[Int64s, Int64s], block: int) -> pa.RecordBatch:
    """Return keys and how often each occurs, each with the block of its node."""
    keys, counts = counted
    columns = [pa.array(keys // block), pa.array(keys), pa.array(counts)]
    return pa.RecordBatch.from_arrays(columns, ["block", "name", "weight"])


def _rows_of(counting: "MemoryTreeWalk") -> Iterator[pa.RecordBatch]:
    arrays: Arrays = {"symbols": counting.symbols, "places": counting.places}
    return pieces(arrays)


def _counting_of(arrays: Arrays, alphabet: int) -> "MemoryTreeWalk":
    from voxpop.corpus.tree_walk import MemoryTreeWalk

    return MemoryTreeWalk.at(arrays["symbols"], arrays["places"], alphabet)
