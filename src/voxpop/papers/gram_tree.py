"""The tree of released grams of CAC12: consistent probabilities (4.3.4) and synthetic sequences (4.3.5)."""

from dataclasses import dataclass

import numpy as np

from voxpop.kernels.arrays import Floats, Int32s, Int64s
from voxpop.kernels.grams import follow, join_grams, likeliest, make_consistent, take_sequences

MOST_GRAMS = 1 << 27


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The released children of the nodes of one more level.

    Attributes:
        parents: int64 by row, the entry of the tree whose gram the row continues, rising; -1 for the root.
        scales: float64 by row, the scale of the noise on its counts.
        rows: int64 by released child, its row, rising.
        symbols: int32 by released child, rising within a row; the end mark is the largest symbol.
        counts: int64 by released child, noisy, at least 0.
    """

    parents: Int64s
    scales: Floats
    rows: Int64s
    symbols: Int32s
    counts: Int64s


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Released grams by node, shortest first; see `kernels/grams.py` for the probability of a symbol without an entry.

    Attributes:
        width: number of symbols and the end mark, which is symbol `width - 1`.
        starts: int64 (nodes + 1), where each node's entries begin.
        symbols: int32 by entry, rising within a node.
        counts: int64 by entry, noisy.
        chances: float64 by entry, consistent.
        child: int32 by entry, the node it leads to, or -1.
        parents: int64 by node, the entry that leads to it; -1 for the root.
        depths: int32 by node, the length of its gram.
        scales: float64 by node, the scale of the noise on its entries.
        neighbour: int32 by node, its Markov neighbour: the node of its gram's longest proper suffix that is one.
        rest: float64 by node, the chance of a symbol without an entry; -1 where it is a multiple of the neighbour's.
        factor: float64 by node, that multiple.
        totals: float64 by node, the consistent count of its gram.
    """

    width: int
    starts: Int64s
    symbols: Int32s
    counts: Int64s
    chances: Floats
    child: Int32s
    parents: Int64s
    depths: Int32s
    scales: Floats
    neighbour: Int32s
    rest: Floats
    factor: Floats
    totals: Floats

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return int(self.depths.size)

    @property
    def back(self) -> tuple[Int32s, Floats, Floats]:
        """How chances fall back: neighbour, rest and factor by node."""
        return self.neighbour, self.rest, self.factor

    def node_of(self, entries: Int64s) -> Int64s:
        """Return the node that each entry belongs to."""
        return np.searchsorted(self.starts, entries, side="right") - 1

    def entry_totals(self) -> Floats:
        """Return the consistent count of each entry's gram."""
        return np.repeat(self.totals, np.diff(self.starts)) * self.chances

    def largest_chances(self, nodes: Int32s) -> Floats:
        """Return the largest chance of any symbol at each of the nodes."""
        wanted = np.zeros(self.nodes, np.bool_)
        wanted[nodes] = True
        largest = likeliest(wanted, self.width, self.starts, self.symbols, self.chances, self.back)
        return largest[nodes]

    def neighbours_of(self, entries: Int64s) -> Int32s:
        """Return the Markov neighbour of each entry's gram: drop the oldest symbols until a node is found."""
        above = self.node_of(entries)
        # The longest suffix of gy is a suffix of g, one symbol on.
        beside = self.neighbour[above]
        reached = follow(beside, self.symbols[entries], self.starts, self.symbols, self.child, self.neighbour)
        return np.where(above == 0, 0, reached).astype(np.int32)


def plant(width: int, rows: Rows) -> Tree:
    """Return the tree of a root and its entries: the released single symbols.

    Args:
        width: number of symbols and the end mark.
        rows: one row.

    Returns:
        The tree.
    """
    tree = Tree(
        width=width,
        starts=np.array([0, rows.symbols.size], np.int64),
        symbols=rows.symbols,
        counts=rows.counts,
        chances=np.zeros(rows.symbols.size),
        child=np.full(rows.symbols.size, -1, np.int32),
        parents=np.array([-1], np.int64),
        depths=np.zeros(1, np.int32),
        scales=rows.scales,
        neighbour=np.zeros(1, np.int32),
        rest=np.zeros(1),
        factor=np.zeros(1),
        totals=np.array([float(rows.counts.sum())]),
    )
    return _settled(tree, 0)


def grow(tree: Tree, level: Rows) -> tuple[Tree, Int32s]:
    """Return the tree with one more level, settled, and the node of each row.

    A row whose counts are all 0, or that has none, becomes a leaf: it gets no node (-1).

    Args:
        tree: with all shorter grams.
        level: the rows to add.

    Returns:
        The tree and int32 by row.
    """
    # (rows,), S of each node: the sum of its noisy counts.
    sums = np.bincount(level.rows, weights=level.counts, minlength=level.parents.size)
    # A node without a count above 0 would have no chances to speak of.
    kept = sums > 0
    # New nodes are numbered behind the old ones, in the order of rows.
    node = np.where(kept, tree.nodes - 1 + np.cumsum(kept), -1).astype(np.int32)
    parents, mine = level.parents[kept], kept[level.rows]
    sizes = np.bincount(level.rows[mine], minlength=level.parents.size)[kept]
    neighbours, above = tree.neighbours_of(parents), tree.node_of(parents)
    child = tree.child.copy()
    child[parents] = node[kept]
    fresh = np.zeros(int(mine.sum()))
    grown = Tree(
        width=tree.width,
        starts=np.concatenate([tree.starts, tree.starts[-1] + np.cumsum(sizes)]),
        symbols=np.concatenate([tree.symbols, level.symbols[mine]]),
        counts=np.concatenate([tree.counts, level.counts[mine]]),
        chances=np.concatenate([tree.chances, fresh]),
        child=np.concatenate([child, np.full(fresh.size, -1, np.int32)]),
        parents=np.concatenate([tree.parents, parents]),
        depths=np.concatenate([tree.depths, tree.depths[above] + np.int32(1)]),
        scales=np.concatenate([tree.scales, level.scales[kept]]),
        neighbour=np.concatenate([tree.neighbour, neighbours]),
        rest=np.concatenate([tree.rest, np.zeros(parents.size)]),
        factor=np.concatenate([tree.factor, np.zeros(parents.size)]),
        # c(gy) = c(g) P_g(y): the count that is consistent with the parent, not the noisy one.
        totals=np.concatenate([tree.totals, tree.totals[above] * tree.chances[parents]]),
    )
    return _settled(grown, tree.nodes), node


def _settled(tree: Tree, first: int) -> Tree:
    """Fill in the chances of the nodes from `first` on."""
    arrays = (tree.counts, tree.totals, tree.starts, tree.symbols, tree.chances, tree.back)
    make_consistent(first, tree.width, *arrays)
    return tree


def gram_symbols(tree: Tree) -> tuple[Int32s, Int64s]:
    """Return the symbols of every entry's gram, one after the other and without end marks, and the number of each."""
    entries = np.arange(tree.symbols.size)
    nodes = tree.node_of(entries)
    columns = _spelled(entries, tree.parents[nodes], tree.depths[nodes] + 1, tree.symbols)
    columns[columns == tree.width - 1] = -1
    kept = columns >= 0
    return columns[kept], kept.sum(axis=1)


def synthetic_sequences(tree: Tree, max_length: int) -> tuple[Int32s, Int64s]:
    """Return distinct sequences, one per row, padded with -1 and the longest first, and the count of each."""
    prefix, suffix, counts, lengths, last = _whole_grams(tree)
    length = int(lengths.max(initial=0))
    # Grams of one length overlap into longer ones as long as there are two of them.
    while length < max_length and int((lengths == length).sum()) >= 2 and counts.size < MOST_GRAMS:
        first = int(np.searchsorted(lengths, length))
        # (grams + 1,): the longest grams are sorted by prefix, so those that go on from one lie together.
        begins = np.searchsorted(prefix[first:], np.arange(counts.size + 1)) + first
        longer = join_grams(prefix, suffix, counts, first, begins)
        prefix, suffix = np.concatenate([prefix, longer[0]]), np.concatenate([suffix, longer[1]])
        counts = np.concatenate([counts, longer[2]])
        length += 1
        lengths = np.concatenate([lengths, np.full(longer[0].size, length, np.int32)])
        last = np.concatenate([last, last[longer[1]]])
    left = counts.copy()
    taken = np.flatnonzero(take_sequences(prefix, suffix, left, lengths, last == tree.width - 1))[::-1]
    return _spelled(taken, prefix, lengths, last), left[taken]


def _whole_grams(tree: Tree) -> tuple[Int32s, Int32s, Int64s, Int32s, Int32s]:
    """Return prefix, suffix, count rounded down, length and last symbol of the grams that occur at least once."""
    entries = np.arange(tree.symbols.size)
    nodes = tree.node_of(entries)
    # Whole sequences need whole counts; the rounding error of doubles is corrected.
    counts = np.floor(tree.entry_totals() + 1e-9).astype(np.int64)
    kept = np.flatnonzero(counts > 0)
    number = np.full(entries.size + 1, -1, np.int32)  # the last place stands for none
    number[kept] = np.arange(kept.size, dtype=np.int32)
    return (
        number[tree.parents[nodes]][kept],
        number[_suffix_entries(tree, nodes)][kept],
        counts[kept],
        (tree.depths[nodes] + 1)[kept].astype(np.int32),
        tree.symbols[kept],
    )


def _suffix_entries(tree: Tree, nodes: Int64s) -> Int64s:
    """Return the entry of each entry's gram without its first symbol, -1 where it was not released."""
    neighbours = tree.neighbour[nodes]
    # The neighbour is the gram without its first symbol only where it is just one symbol shorter.
    exact = (tree.depths[neighbours] == tree.depths[nodes] - 1) & (nodes > 0)
    keys = np.repeat(np.arange(tree.nodes), np.diff(tree.starts)) * tree.width + tree.symbols
    wanted = neighbours.astype(np.int64) * tree.width + tree.symbols
    at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    return np.where(exact & (keys[at] == wanted), at, -1)


def _spelled(grams: Int64s, prefix: Int32s | Int64s, lengths: Int32s, last: Int32s) -> Int32s:
    """Return the symbols of each gram, padded with -1."""
    # From the last symbol to the first: each gram's prefix has the symbol before.
    columns = np.full((grams.size, int(lengths[grams].max(initial=0))), -1, np.int32)
    at, place = grams, lengths[grams].astype(np.int64) - 1
    rows = np.arange(grams.size)
    while rows.size:
        columns[rows, place] = last[at]
        more = place > 0
        rows, at, place = rows[more], prefix[at[more]].astype(np.int64), place[more] - 1
    return columns
