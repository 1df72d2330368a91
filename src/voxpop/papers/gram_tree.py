"""The tree of released grams of CAC12, with consistent probabilities (4.3.4) and synthetic sequences (4.3.5)."""

from dataclasses import dataclass

import numpy as np

from voxpop.kernels.arrays import Floats, Int32s, Int64s
from voxpop.kernels.grams import take_sequences

MOST_GRAMS = 1 << 27


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """The released children of the nodes at one depth, with one row per node.

    Attributes:
        parents: int64 by row, the entry of the tree for the gram that the row extends, in increasing order, or -1 for
            the root.
        scales: float64 by row, the scale of the noise on its counts.
        counts: int64 (rows, width), the noisy counts, at least 0, or -1 for children that are not released. The last
            column is the end mark.
    """

    parents: Int64s
    scales: Floats
    counts: Int64s


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """The released grams by node, shortest first.

    Each node has a row of `width` entries, one for each symbol and one for the end mark. Entry `node * width + symbol`
    is for the gram of the node followed by the symbol.

    Attributes:
        counts: int64 (nodes, width), the noisy counts, at least 0, or -1 for grams that are not released.
        chances: float64 (nodes, width), the consistent probability of every symbol, released or not.
        child: int32 (nodes, width), the node of each entry, or -1.
        parents: int64 by node, the entry of the node's gram, or -1 for the root.
        depths: int32 by node, the length of its gram.
        scales: float64 by node, the scale of the noise on its counts.
        neighbour: int32 by node, its Markov neighbour. The neighbour is the node of the longest proper suffix of its
            gram that has a node.
        totals: float64 by node, the consistent count of its gram.
    """

    counts: Int64s
    chances: Floats
    child: Int32s
    parents: Int64s
    depths: Int32s
    scales: Floats
    neighbour: Int32s
    totals: Floats

    @property
    def width(self) -> int:
        """The number of symbols, including the end mark, which is symbol `width - 1`."""
        return int(self.counts.shape[1])

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return int(self.depths.size)

    @property
    def entries(self) -> Int64s:
        """The entries of the released grams, in increasing order."""
        return np.flatnonzero(self.counts >= 0)

    def entry_totals(self) -> Floats:
        """Return the consistent count of each entry's gram, float64 (nodes, width)."""
        return self.totals[:, None] * self.chances

    def neighbours_of(self, entries: Int64s) -> Int32s:
        """Return the Markov neighbour of each entry's gram.

        The oldest symbols of the gram are dropped until a node is found.
        """
        above, symbols = np.divmod(entries, self.width)
        # The longest suffix of gy is a suffix of g followed by the symbol y.
        at = self.neighbour[above]
        while ((self.child[at, symbols] < 0) & (at > 0)).any():
            at = np.where(self.child[at, symbols] < 0, self.neighbour[at], at)
        return np.where(above == 0, 0, np.maximum(self.child[at, symbols], 0)).astype(np.int32)


def plant(level: Level) -> Tree:
    """Return the tree that consists of a root and its entries, which are the released single symbols."""
    none, total = np.zeros(1, np.int32), np.maximum(level.counts, 0).sum(axis=1).astype(np.float64)
    return Tree(
        counts=level.counts,
        chances=_consistent(level.counts, total, none, np.zeros(level.counts.shape)),
        child=np.full(level.counts.shape, -1, np.int32),
        parents=np.array([-1], np.int64),
        depths=none,
        scales=level.scales,
        neighbour=none,
        totals=total,
    )


def grow_tree(tree: Tree, level: Level) -> tuple[Tree, Int32s]:
    """Return the tree with one more level, which is made consistent, and the node of each row.

    A row without counts above 0 becomes a leaf without a node (-1).
    """
    # Without a count above 0, a node's probabilities would be undefined.
    kept = (level.counts > 0).any(axis=1)
    # New nodes are numbered after the old ones, in the order of rows.
    node = np.where(kept, tree.nodes - 1 + np.cumsum(kept), -1).astype(np.int32)
    parents, counts = level.parents[kept], level.counts[kept]
    neighbours, above = tree.neighbours_of(parents), parents // tree.width
    # c(gy) = c(g) P_g(y) is the count that is consistent with the parent, and not the noisy count.
    totals = tree.entry_totals().ravel()[parents]
    child = np.concatenate([tree.child, np.full(counts.shape, -1, np.int32)])
    child.ravel()[parents] = node[kept]
    grown = Tree(
        counts=np.concatenate([tree.counts, counts]),
        chances=np.concatenate([tree.chances, _consistent(counts, totals, neighbours, tree.chances)]),
        child=child,
        parents=np.concatenate([tree.parents, parents]),
        depths=np.concatenate([tree.depths, tree.depths[above] + np.int32(1)]),
        scales=np.concatenate([tree.scales, level.scales[kept]]),
        neighbour=np.concatenate([tree.neighbour, neighbours]),
        totals=np.concatenate([tree.totals, totals]),
    )
    return grown, node


def _consistent(counts: Int64s, totals: Floats, neighbours: Int32s, shorter: Floats) -> Floats:
    """Return probabilities that are consistent with the parents, as published (CAC12, 4.3.4).

    Let S be the sum of the noisy counts A of the released children V+, and P the neighbour's probabilities. If the
    neighbour is not the root, each symbol x without a count receives A(x) = S P(x) / P(V+). After division by the sum
    over all symbols, S / P(V+), symbol x has probability P(x), and released children have A / S times P(V+). If the
    neighbour is the root, the node's total minus S is divided evenly among the symbols without a count.

    Args:
        counts: int64 (new nodes, width), the noisy counts, or -1 for children that are not released.
        totals: float64 by new node, the consistent count of its gram.
        neighbours: int32 by new node, its Markov neighbour.
        shorter: float64 (nodes, width), the probabilities at the nodes of shorter grams.
    """
    released, near = counts >= 0, shorter[neighbours]
    noisy, missing = np.maximum(counts, 0), (~released).sum(axis=1)
    sums, shown = noisy.sum(axis=1), (near * released).sum(axis=1)
    falls = (missing > 0) & (neighbours > 0) & (shown > 0.0)
    # A total is a product of doubles, so a difference within the rounding error must not become a probability.
    evenly = (missing > 0) & (neighbours == 0) & (sums < totals * (1 - 1e-12))
    # The mass is P(V+), the probability of all released children together.
    mass = np.where(falls, np.minimum(shown, 1.0), np.where(evenly, sums / np.maximum(totals, 1e-300), 1.0))
    rest = np.where(evenly, (1.0 - mass) / np.maximum(missing, 1), 0.0)
    others = np.where(falls[:, None], near, rest[:, None])
    return np.where(released, noisy * (mass / np.maximum(sums, 1))[:, None], others)


def gram_symbols(tree: Tree) -> tuple[Int32s, Int64s]:
    """Return the concatenated symbols of all released grams without end marks, and the length of each gram."""
    prefix, lengths, last = _by_entry(tree)
    columns = _spelled(tree.entries, prefix, lengths, last)
    columns[columns == tree.width - 1] = -1
    kept = columns >= 0
    return columns[kept], kept.sum(axis=1)


def synthetic_sequences(tree: Tree, max_length: int) -> tuple[Int32s, Int64s]:
    """Return distinct sequences, one per row, longest first and padded with -1, and the count of each sequence."""
    prefix, suffix, counts, lengths, last = _whole_grams(tree)
    length = int(lengths.max(initial=0))
    # Two or more grams of one length can overlap and form a longer gram.
    while length < max_length and int((lengths == length).sum()) >= 2 and counts.size < MOST_GRAMS:
        first = int(np.searchsorted(lengths, length))
        # Shape (grams + 1,). The longest grams are sorted by prefix, so grams that extend the same prefix are adjacent.
        begins = np.searchsorted(prefix[first:], np.arange(counts.size + 1)) + first
        grams = first + np.flatnonzero((suffix[first:] >= 0) & (counts[suffix[first:]] > 0))
        middle = suffix[grams]
        fans = begins[middle + 1] - begins[middle]
        # Find every pair xm and my of the longest grams that overlap in all but one symbol.
        one, middle = np.repeat(grams, fans), np.repeat(middle, fans)
        other = np.arange(one.size) + np.repeat(begins[suffix[grams]] - (np.cumsum(fans) - fans), fans)
        # c(xmy) = c(xm) c(my) / c(m) is the Markov estimate, rounded down (CAC12, 4.3.5).
        expected = (counts[one].astype(np.float64) * counts[other] / counts[middle]).astype(np.int64)
        likely = expected >= 1
        prefix = np.concatenate([prefix, one[likely].astype(np.int32)])
        suffix = np.concatenate([suffix, other[likely].astype(np.int32)])
        counts = np.concatenate([counts, expected[likely]])
        length += 1
        lengths = np.concatenate([lengths, np.full(int(likely.sum()), length, np.int32)])
        last = np.concatenate([last, last[other[likely]]])
    left = counts.copy()
    taken = np.flatnonzero(take_sequences(prefix, suffix, left, lengths, last == tree.width - 1))[::-1]
    return _spelled(taken, prefix, lengths, last), left[taken]


def _whole_grams(tree: Tree) -> tuple[Int32s, Int32s, Int64s, Int32s, Int32s]:
    """Return the prefix, suffix, rounded-down count, length and last symbol of the grams that occur at least once."""
    # Sequences need integer counts. The term 1e-9 corrects the rounding error of doubles.
    counts = np.floor(np.where(tree.counts >= 0, tree.entry_totals(), 0.0).ravel() + 1e-9).astype(np.int64)
    kept = np.flatnonzero(counts > 0)
    number = np.full(counts.size + 1, -1, np.int32)  # the last position represents a missing gram
    number[kept] = np.arange(kept.size, dtype=np.int32)
    prefix, lengths, last = _by_entry(tree)
    node, symbol = np.divmod(kept, tree.width)
    # The neighbour is the gram without its first symbol only if it is exactly one symbol shorter.
    exact = (tree.depths[tree.neighbour[node]] == tree.depths[node] - 1) & (node > 0)
    suffix = np.where(exact, tree.neighbour[node].astype(np.int64) * tree.width + symbol, -1)
    return number[prefix[kept]], number[suffix], counts[kept], lengths[kept], last[kept]


def _by_entry(tree: Tree) -> tuple[Int64s, Int32s, Int32s]:
    """Return the prefix of each entry's gram, its length and its last symbol."""
    return (
        np.repeat(tree.parents, tree.width),
        np.repeat(tree.depths + np.int32(1), tree.width),
        np.tile(np.arange(tree.width, dtype=np.int32), tree.nodes),
    )


def _spelled(grams: Int64s, prefix: Int32s | Int64s, lengths: Int32s, last: Int32s) -> Int32s:
    """Return the symbols of each gram, padded with -1."""
    # The loop runs from the last symbol to the first, because the preceding symbol is the last one of the prefix.
    columns = np.full((grams.size, int(lengths[grams].max(initial=0))), -1, np.int32)
    at, place = grams, lengths[grams].astype(np.int64) - 1
    rows = np.arange(grams.size)
    while rows.size:
        columns[rows, place] = last[at]
        more = place > 0
        rows, at, place = rows[more], prefix[at[more]].astype(np.int64), place[more] - 1
    return columns
