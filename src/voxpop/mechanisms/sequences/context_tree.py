"""The tree of contexts: noisy counts of the symbols that follow each context, and its tables. Public arrays."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from voxpop.kernels.arrays import Bools, Floats, Int32s, Int64s
from voxpop.kernels.sequences import nodes_of
from voxpop.reading.arrow import array_of, int64_array, lists_of, string_array

if TYPE_CHECKING:
    import polars as pl

ROOT, OTHERS = -1, -2


@dataclass(frozen=True, eq=False)
class ContextTree:
    """Contexts by node, shorter ones first, and the counts of the symbols after them.

    A node's children are its context with one symbol more before it; steps in none of them are counted by the node
    "others" of the same parent. So every step of a sequence is in exactly one node that has no children.

    Attributes:
        width: number of symbols and the end mark, symbol `width - 1`; before a sequence, it denotes the beginning.
        max_length: most steps of a sequence.
        parents: int32 by node, the context without its oldest symbol; -1 for the root.
        before: int32 by node, that oldest symbol; `ROOT` for the root, `OTHERS` for all symbols without a child.
        scales: float64 by node, the scale of the noise on its counts.
        counts: int64 (nodes, width), noisy, below 0 too.
    """

    width: int
    max_length: int
    parents: Int32s
    before: Int32s
    scales: Floats
    counts: Int64s

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return int(self.parents.size)

    @cached_property
    def depths(self) -> Int32s:
        """int32 by node, the length of its context; that of "others" is one more than its parent's."""
        depths = np.zeros(self.nodes, np.int32)
        for node in range(1, self.nodes):
            # Parents come before children.
            depths[node] = depths[self.parents[node]] + 1
        return depths

    @cached_property
    def child(self) -> Int32s:
        """int32 by node * width + symbol before it, the node of the longer context, or -1."""
        child = np.full(self.nodes * self.width, -1, np.int32)
        named = np.flatnonzero(self.before >= 0)
        # int64: nodes times symbols may pass 2^31.
        child[self.parents[named].astype(np.int64) * self.width + self.before[named]] = named
        return child

    @cached_property
    def others(self) -> Int32s:
        """int32 by node, its node "others", or -1."""
        others = np.full(self.nodes, -1, np.int32)
        mine = np.flatnonzero(self.before == OTHERS)
        others[self.parents[mine]] = mine
        return others

    @cached_property
    def begun(self) -> Bools:
        """By node, whether its context reaches back to the beginning."""
        begun: Bools = self.before == self.width - 1
        return begun

    @cached_property
    def contexts(self) -> Int32s:
        """int32 (nodes, longest), oldest symbol first, without the beginning, padded with -1; "others" have none."""
        rows = np.full((self.nodes, int(self.depths.max(initial=0))), -1, np.int32)
        for node in range(1, self.nodes):
            if self.before[node] == OTHERS:
                continue
            above = self.parents[node]
            size = int((rows[above] >= 0).sum())
            first = [] if self.begun[node] else [self.before[node]]
            # One symbol more on the left: contexts grow backwards.
            rows[node, : size + len(first)] = [*first, *rows[above, :size]]
        return rows

    def find(self, rows: Int32s, lengths: Int64s, begun: Bools) -> Int32s:
        """Return the node of each history: of the longest context that it ends in."""
        return nodes_of(np.ascontiguousarray(rows), lengths, begun, self.width, (self.child, self.others))

    def with_level(self, parents: Int32s, before: Int32s, scales: Floats, counts: Int64s) -> "ContextTree":
        """Return the tree with more nodes."""
        return ContextTree(
            self.width,
            self.max_length,
            np.concatenate([self.parents, parents]),
            np.concatenate([self.before, before]),
            np.concatenate([self.scales, scales]),
            np.concatenate([self.counts, counts]),
        )


def context_table(alphabet: tuple[str, ...], tree: ContextTree, estimates: Floats) -> "pl.DataFrame":
    """Return the table of a model; see `SequenceModel.to_polars`.

    Args:
        alphabet: the symbols.
        tree: the released counts.
        estimates: float64 (nodes, width), the smoothed counts.
    """
    import polars as pl

    width = tree.width
    # "Others" have the context of their parent.
    named = np.where(tree.before == OTHERS, tree.parents, np.arange(tree.nodes))
    context = tree.contexts[named]
    # (nodes * width, longest + 1): a context, padded, and the symbol after it; the end mark does not change the gram.
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
            "estimate": estimates.ravel(),
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
