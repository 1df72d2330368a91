"""The released counts of what follows contexts as a table, and the tree from its columns."""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from voxpop.arrays import Floats, Int64s
from voxpop.arrow import array_of, int64_array, lists_of, string_array
from voxpop.sequences.context_tree import OTHERS, ROOT, ContextTree
from voxpop.sequences.settling import Settled

if TYPE_CHECKING:
    import polars as pl


def context_table(alphabet: tuple[str, ...], tree: ContextTree, settled: Settled) -> "pl.DataFrame":
    """Return the table of a model of contexts; see `SequenceModel.to_polars`."""
    import polars as pl

    width = tree.width
    # "Others" stand under the context of their parent.
    named = np.where(tree.before == OTHERS, tree.parents, np.arange(tree.nodes))
    context = tree.contexts[named]
    # (nodes * width, longest + 1): a context, padded, and what follows it; the end mark leaves the gram as it is.
    rows = np.column_stack([np.repeat(context, width, axis=0), np.tile(np.arange(width), tree.nodes)])
    ends = rows[:, -1] == width - 1
    rows[ends, -1] = -1
    kept = rows >= 0
    flat = string_array(alphabet).take(array_of(rows[kept]))
    grams = pa.LargeListArray.from_arrays(int64_array(np.concatenate([[0], np.cumsum(kept.sum(axis=1))])), flat)
    return pl.DataFrame(
        {
            "gram": pl.Series(values=grams, dtype=pl.List(pl.String)),
            "begins": np.repeat(tree.begun[named], width),
            "others": np.repeat(tree.before == OTHERS, width),
            "ends": ends,
            "count": tree.counts.ravel(),
            "estimate": (settled.totals[:, None] * settled.chances).ravel(),
            "scale": np.repeat(tree.scales, width),
        }
    )


def context_columns(tree: ContextTree) -> pa.Table:
    """Return the columns of a tree, one row per node."""
    counts = lists_of(int64_array(tree.counts.ravel()), np.full(tree.counts.size // tree.width, tree.width))
    return pa.table(
        {
            "parent": array_of(tree.parents),
            "before": array_of(tree.before),
            "scale": array_of(tree.scales),
            "counts": counts,
        }
    )


def context_tree_of(
    width: int, max_length: int, parents: Int64s, before: Int64s, scales: Floats, counts: Int64s
) -> ContextTree:
    """Return the tree of a table.

    Args:
        width: number of symbols and the end mark.
        max_length: most steps of a sequence.
        parents: by node.
        before: by node.
        scales: by node.
        counts: of all nodes, one behind the other.

    Returns:
        The tree.

    Raises:
        ValueError: where nodes are missing, doubled or out of order.
    """
    nodes = parents.size
    if counts.size != nodes * width or nodes == 0 or not (np.isfinite(scales) & (scales > 0)).all():
        raise ValueError("not the counts of whole nodes")
    if parents[0] != -1 or before[0] != ROOT or (parents[1:] < 0).any() or (parents[1:] >= np.arange(1, nodes)).any():
        raise ValueError("not a tree")
    if ((before[1:] != OTHERS) & ((before[1:] < 0) | (before[1:] >= width))).any():
        raise ValueError("not symbols")
    # (parent, before) as one number: `before` is from -2 to width - 1.
    if np.unique(parents * (width + 2) + before + 2).size != nodes:
        raise ValueError("not distinct")
    closed = (before == OTHERS) | (before == width - 1)
    if closed[parents[1:]].any():
        raise ValueError("something precedes a beginning")
    links = parents.astype(np.int32), before.astype(np.int32)
    return ContextTree(width, max_length, *links, scales.astype(np.float64), counts.reshape(nodes, width))
