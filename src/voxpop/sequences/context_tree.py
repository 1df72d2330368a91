"""The tree of contexts: how often each symbol follows the symbols before it, with noise. Public arrays."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from voxpop.arrays import Bools, Floats, Int32s, Int64s
from voxpop.kernels.contexts import nodes_of

ROOT, OTHERS = -1, -2


@dataclass(frozen=True, eq=False)
class ContextTree:
    """Contexts by node, shorter ones first, and what follows them.

    A node's children are its context with one symbol more before it; what is in none of them is counted by the node
    "others" of the same parent. So every step of a sequence is in exactly one node that has no children.

    Attributes:
        width: number of symbols and the end mark, symbol `width - 1`; before a sequence, that stands for its beginning.
        max_length: most steps of a sequence.
        parents: int32 by node, the context without its oldest symbol; -1 for the root.
        before: int32 by node, that oldest symbol; `ROOT` for the root, `OTHERS` for what no other child has.
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
        """int32 by node, the node of what none of its children has, or -1."""
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
