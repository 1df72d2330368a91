"""Draws from the published gram model (CAC12), for comparison. They are better than the paper's own synthesis.

The synthesis of 4.3.5 draws too many sequences, and they are too short. Comparisons must not profit from this weakness.
Therefore sequences are drawn here from the consistent counts, with beginnings that are estimated from these counts. All
steps are post-processing.

A gram g occurs either at the beginning of a sequence or after some symbol z, so the number of sequences that begin
with g is s(g) = c(g) - sum over z of c(zg). In consistent counts, with P_g(y) the probability of y after g,

    s(gy) = s(g) P_g(y) - sum over nodes zg of c(zg) (P_zg(y) - P_g(y)).

The sum includes only released children, because all other symbols at zg have the probability P_g of its neighbour. The
deviation from s(g) P_g(y) contains the noise of many counts, so it is reduced by the factor max(0, 1 - (3 standard
deviations / deviation)^2), the nonnegative garrote. With much noise, a beginning is treated like any other place.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxpop.kernels._jit import jit
from voxpop.kernels.arrays import Floats, Int32s, Int64s, Uint64s
from voxpop.kernels.uniform import uniform
from voxpop.papers import gram_tree

SIGNIFICANT = 3.0
"""The number of standard deviations of the noise below which a deviation counts as noise."""


@jit
def entry_of(node: Any, symbol: Any, starts: Int64s, symbols: Int32s) -> Any:
    """Return the index of a symbol among a node's entries, or -1."""
    low, high = starts[node], starts[node + 1]
    while low < high:
        middle = (low + high) // 2
        if symbols[middle] < symbol:
            low = middle + 1
        else:
            high = middle
    return low if low < starts[node + 1] and symbols[low] == symbol else -1


@jit
def step_of(node: Any, symbol: Any, starts: Int64s, symbols: Int32s, child: Int32s, neighbour: Int32s) -> Any:
    """Return the node of the longest suffix of a node's gram and one more symbol."""
    while True:
        entry = entry_of(node, symbol, starts, symbols)
        if entry >= 0 and child[entry] >= 0:
            return child[entry]
        if node == 0:
            return 0
        node = neighbour[node]


@jit
def _pick(node: Any, place: Any, starts: Int64s, sums: Floats) -> Any:
    """Return the first entry of a node with a running sum above `place`, or -1."""
    low, high = starts[node], starts[node + 1]
    if low == high or place >= sums[high - 1]:
        return -1
    while low < high:
        middle = (low + high) // 2
        if sums[middle] > place:
            high = middle
        else:
            low = middle + 1
    return low


@jit
def _draw(
    node: Any,
    width: int,
    starts: Int64s,
    symbols: Int32s,
    sums: Floats,
    neighbour: Int32s,
    rest: Floats,
    state: Uint64s,
) -> Any:
    """Draw a symbol at a node, with its neighbours for symbols without an entry."""
    at = node
    for _ in range(100_000):
        entry = _pick(at, uniform(state), starts, sums)
        if entry < 0 and rest[at] < 0.0:
            at = neighbour[at]
            continue
        if entry >= 0:
            symbol = symbols[entry]
        else:
            # A symbol without an entry is drawn from all symbols, and drawn again if it has an entry.
            symbol = np.int32(uniform(state) * width)
            if rest[at] == 0.0 or entry_of(at, symbol, starts, symbols) >= 0:
                continue
        # Move the draw from `at` to the preceding node if that node has no entry for the symbol. Otherwise, draw again.
        while at != node:
            before = node
            while neighbour[before] != at:
                before = neighbour[before]
            if entry_of(before, symbol, starts, symbols) >= 0:
                break
            at = before
        if at == node:
            return symbol
    return width - 1


@jit
def sample_sequences(
    seeds: Uint64s,
    most: int,
    width: int,
    tree: tuple[Int64s, Int32s, Int32s, Floats, Int32s, Floats],
    first_round: tuple[Int64s, Int32s, Int32s, Floats],
    symbols_out: Int32s,
    sizes: Int64s,
) -> int:
    """Draw whole sequences, without end marks.

    Args:
        seeds: uint64, one per sequence. They are overwritten.
        most: The maximum number of symbols per sequence.
        width: The number of symbols and the end mark.
        tree: The starts, symbols, child, running sums, neighbour, rest.
        first_round: The starts, symbols, child and running sums of the openings, which are the beginnings of sequences.
        symbols_out: int32, written, with space for `most` symbols per seed.
        sizes: int64 by seed, written.

    Returns:
        The number of written symbols.
    """
    starts, symbols, child, sums, neighbour, rest = tree
    first_starts, first_symbols, first_child, first_sums = first_round
    size = 0
    for number in range(seeds.size):
        state = seeds[number : number + 1]
        node = np.int32(0)
        opened = np.int32(0)
        begin = size
        while size - begin < most:
            entry = np.int64(-1)
            if opened >= 0:
                entry = _pick(opened, uniform(state), first_starts, first_sums)
            if entry >= 0:
                symbol = first_symbols[entry]
            else:
                symbol = _draw(node, width, starts, symbols, sums, neighbour, rest, state)
                for _ in range(10_000):
                    if opened < 0 or entry_of(opened, symbol, first_starts, first_symbols) < 0:
                        break
                    symbol = _draw(node, width, starts, symbols, sums, neighbour, rest, state)
            if symbol == width - 1:
                break
            symbols_out[size] = symbol
            size += 1
            opened = first_child[entry] if entry >= 0 else np.int32(-1)
            node = step_of(node, symbol, starts, symbols, child, neighbour)
        sizes[number] = size - begin
    return size


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """The released grams of a tree as a list of entries by node.

    Attributes:
        width: The number of symbols and the end mark, which is symbol `width - 1`.
        starts: int64 (nodes + 1), where each node's entries begin.
        symbols: int32 by entry, increasing within a node.
        counts: int64 by entry, the noisy count.
        chances: float64 by entry, the consistent probability.
        child: int32 by entry, the child node, or -1.
        depths: int32 by node, the length of its gram.
        scales: float64 by node, the scale of the noise on its entries.
        neighbour: int32 by node, its Markov neighbour.
        rest: float64 by node, the probability of a symbol without an entry, or -1 for the neighbour's probability.
        totals: float64 by node, the consistent count of its gram.
        every: float64 (nodes, width), the consistent probability of every symbol.
    """

    width: int
    starts: Int64s
    symbols: Int32s
    counts: Int64s
    chances: Floats
    child: Int32s
    depths: Int32s
    scales: Floats
    neighbour: Int32s
    rest: Floats
    totals: Floats
    every: Floats

    @staticmethod
    def of(tree: gram_tree.Tree) -> "Tree":
        """Return the entries of a released tree."""
        released = tree.counts >= 0
        known = (tree.chances[tree.neighbour] * released).sum(axis=1)
        even = np.where(released, 0.0, tree.chances).max(axis=1)
        falls = ~released.all(axis=1) & (tree.neighbour > 0) & (known > 0.0)
        return Tree(
            width=tree.width,
            starts=np.concatenate([[0], np.cumsum(released.sum(axis=1))]),
            symbols=np.nonzero(released)[1].astype(np.int32),
            counts=tree.counts[released],
            chances=tree.chances[released],
            child=tree.child[released],
            depths=tree.depths,
            scales=tree.scales,
            neighbour=tree.neighbour,
            rest=np.where(falls, -1.0, even),
            totals=tree.totals,
            every=tree.chances,
        )

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return int(self.depths.size)

    def node_of(self, entries: Int64s) -> Int64s:
        """Return the node that each entry belongs to."""
        return np.searchsorted(self.starts, entries, side="right") - 1


@dataclass(frozen=True, slots=True, eq=False)
class Openings:
    """Grams that begin sequences, in order of length. Opening 0 is the empty gram.

    Attributes:
        starts: int64 (openings + 1), where each opening's entries begin.
        symbols: int32 by entry, increasing within an opening.
        chances: float64 by entry, the probability that the symbol follows the opening.
        child: int32 by entry, the opening that is one symbol longer, or -1.
        factors: float64 by opening, the factor on the node's probabilities for symbols without an entry.
        sequences: The estimated number of sequences.
    """

    starts: Int64s
    symbols: Int32s
    chances: Floats
    child: Int32s
    factors: Floats
    sequences: float


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """Openings of one length, with their nodes, the number of sequences that begin with each, and their entries."""

    nodes: Int32s
    sizes: Floats
    rows: Int64s
    symbols: Int32s
    chances: Floats
    factors: Floats


def find_openings(tree: Tree) -> Openings:
    """Return the beginnings of the sequences of a tree.

    Args:
        tree: A released tree, which is public.

    Returns:
        The openings, up to the length at which the counts of the tree still distinguish them from other places.
    """
    first, sequences = _first_symbols(tree)
    levels = [first]
    parents: list[Int64s] = []
    while True:
        entries, nodes, sizes = _leading_on(tree, levels[-1])
        if not entries.size:
            break
        levels.append(_what_follows(tree, nodes, sizes))
        parents.append(entries)
    return _joined(levels, parents, sequences)


def _first_symbols(tree: Tree) -> tuple[_Level, float]:
    """Return the empty opening, and the number of sequences, which is the number of ends."""
    end = tree.width - 1
    root = slice(0, int(tree.starts[1]))
    singles = np.flatnonzero(tree.depths == 1)
    entries = np.arange(tree.starts[singles[0]], tree.starts[singles[-1] + 1]) if singles.size else np.empty(0, int)
    nodes = tree.node_of(entries)
    # P(y), float64 (width), the root's probability of each symbol y.
    unigrams = np.full(end + 1, tree.rest[0])
    unigrams[tree.symbols[root]] = tree.chances[root]
    falls = tree.rest[nodes] < 0.0
    # By entry zy below a symbol z, the probability of y there if z has no entry for it, P(y) or rest(z).
    base = np.where(falls, unigrams[tree.symbols[entries]], tree.rest[nodes])
    # The number of times y follows any symbol is the sum over z of c(z) P_z(y). Add first the entries, as differences
    # from the base, and then the base for all y at once.
    behind = _sums(tree.symbols[entries], tree.totals[nodes] * (tree.chances[entries] - base), end + 1)
    falls = tree.rest[singles] < 0.0
    behind += (tree.totals[singles] * np.where(falls, 0.0, tree.rest[singles])).sum()
    behind += tree.totals[singles][falls].sum() * unigrams
    closed = tree.child[root] < 0  # symbols without a node, after which the root's probabilities apply
    behind[tree.symbols[root]] += tree.counts[root][closed].sum() * tree.chances[root]
    # s(y) = c(y) - sum over z of c(zy), because an occurrence of y that follows no symbol begins a sequence.
    sizes = np.maximum(tree.counts[root] - behind[tree.symbols[root]], 0.0)
    if sizes.sum() <= 0.0:
        sizes = tree.counts[root].astype(np.float64)
    total = max(float(sizes.sum()), 1e-300)
    level = _Level(
        np.zeros(1, np.int32),
        np.array([total]),
        np.zeros(sizes.size, np.int64),
        tree.symbols[root],
        sizes / total,
        np.zeros(1),
    )
    # Each sequence ends once, so the number of sequences is the number of end marks after any symbol.
    return level, max(float(behind[end]), 0.0)


def _leading_on(tree: Tree, level: _Level) -> tuple[Int64s, Int32s, Floats]:
    """Return the entries of longer openings, their nodes, and the number of sequences that begin with each opening."""
    at = level.nodes[level.rows]
    place = _entries(tree, at, level.symbols)
    nodes = np.where(place >= 0, tree.child[place], -1)
    # s(gy) = s(g) times the probability of y after the beginning g.
    sizes = level.sizes[level.rows] * level.chances
    # Nodes with a gram that is another node's gram without its first symbol. Only their counts distinguish beginnings.
    used = np.zeros(tree.nodes, np.bool_)
    used[tree.neighbour[tree.depths[tree.neighbour] == tree.depths - 1]] = True
    used[0] = False
    wanted = np.flatnonzero((nodes >= 0) & used[nodes] & (sizes > 0.0))
    return wanted, nodes[wanted].astype(np.int32), sizes[wanted]


def chances_of(tree: Tree, nodes: Int32s, symbols: Int32s) -> Floats:
    """Return the probability of each symbol at each node."""
    return tree.every[nodes, symbols]


def _what_follows(tree: Tree, nodes: Int32s, sizes: Floats) -> _Level:
    """Return the symbols that follow each opening, from the deviations of all longer nodes that end in it."""
    # Each row is an opening g. `longer` contains the nodes zg with the neighbour g, and `entries` contains all zgy
    # below.
    row_of = np.full(tree.nodes, -1, np.int64)
    row_of[nodes] = np.arange(nodes.size)
    longer = np.flatnonzero((row_of[tree.neighbour] >= 0) & (tree.depths[tree.neighbour] == tree.depths - 1))
    spans = np.diff(tree.starts)[longer]
    entries = np.concatenate([np.empty(0, np.int64), *(np.arange(tree.starts[u], tree.starts[u + 1]) for u in longer)])
    shorter = tree.neighbour[np.repeat(longer, spans)]
    # If zg has no entry for y, its probability is P_g(y), or 0 if zg excludes all symbols without an entry.
    factor = np.where(tree.rest[longer] < 0.0, 1.0, 0.0)
    fallen = np.repeat(factor, spans) * chances_of(tree, shorter, tree.symbols[entries])
    # The term of an entry is -c(zg) (P_zg(y) - factor P_g(y)). The difference from -c(zg) (P_zg(y) - P_g(y)), the
    # equation above, is c(zg) (1 - factor) P_g(y), both for entries and for all other symbols. `everywhere` contains
    # its sum over z, by row.
    deviation = -np.repeat(tree.totals[longer], spans) * (tree.chances[entries] - fallen)
    everywhere = _sums(row_of[tree.neighbour[longer]], tree.totals[longer] * (1.0 - factor), nodes.size)
    # Include the entries of g, so that every symbol with an entry at g gets a row even without a deviation.
    own = np.concatenate([np.empty(0, np.int64), *(np.arange(tree.starts[g], tree.starts[g + 1]) for g in nodes)])
    keys = np.concatenate(
        [
            row_of[shorter] * tree.width + tree.symbols[entries],
            row_of[tree.node_of(own)] * tree.width + tree.symbols[own],
        ]
    )
    distinct, inverse = np.unique(keys, return_inverse=True)
    rows, symbols = np.divmod(distinct, tree.width)
    # By pair (g, y), P_g(y), and the whole deviation of s(gy) from s(g) P_g(y).
    plain = chances_of(tree, nodes[rows], symbols.astype(np.int32))
    raw = _sums(inverse, np.concatenate([deviation, np.zeros(own.size)]), distinct.size) + everywhere[rows] * plain
    # The variance of the deviation. Laplace noise of scale b has variance 2 b^2. There is one term for each zgy, and
    # one
    # for gy, because its count enters through P_g(y) with weight sum over z of c(zg) / c(g).
    noise = _sums(inverse, np.concatenate([2.0 * np.repeat(tree.scales[longer] ** 2, spans), 0.0 * own]), distinct.size)
    covered = _sums(row_of[tree.neighbour[longer]], tree.totals[longer], nodes.size) / np.maximum(tree.totals[nodes], 1)
    noise += (2.0 * covered**2 * tree.scales[nodes] ** 2)[rows]
    # Nonnegative garrote (Breiman, 1995): 1 - 9 variance / deviation^2, at least 0.
    trust = np.maximum(0.0, 1.0 - SIGNIFICANT**2 * noise / np.maximum(raw**2, 1e-9))
    weights = np.maximum(sizes[rows] * plain + trust * raw, 0.0)
    # Symbols without an entry keep s(g) P_g(y), which sums to s(g) times the rest of P_g.
    others = sizes
    outside = np.maximum(1.0 - _sums(rows, plain, nodes.size), 0.0)
    sums = _sums(rows, weights, nodes.size) + others * outside
    good = sums > 0.0
    sums = np.where(good, sums, 1.0)
    return _Level(nodes, sizes, rows, symbols.astype(np.int32), weights / sums[rows], others / sums)


def _joined(levels: list[_Level], parents: list[Int64s], sequences: float) -> Openings:
    sizes = [np.bincount(level.rows, minlength=level.nodes.size) for level in levels]
    child = [np.full(level.symbols.size, -1, np.int32) for level in levels]
    first = 1
    for number, entries in enumerate(parents):
        child[number][entries] = np.arange(first, first + entries.size, dtype=np.int32)
        first += entries.size
    return Openings(
        starts=np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64),
        symbols=np.concatenate([level.symbols for level in levels]),
        chances=np.concatenate([level.chances for level in levels]),
        child=np.concatenate(child),
        factors=np.concatenate([level.factors for level in levels]),
        sequences=sequences,
    )


def _sums(groups: NDArray[Any], values: Floats, size: int) -> Floats:
    """Return the sum of the values of each group."""
    return np.bincount(groups, weights=values, minlength=size).astype(np.float64, copy=False)


def _entries(tree: Tree, nodes: Int32s, symbols: Int32s) -> Int64s:
    """Return the index of the entry of each symbol at each node, or -1."""
    keys = np.repeat(np.arange(tree.nodes), np.diff(tree.starts)) * tree.width + tree.symbols
    if not keys.size:
        return np.full(symbols.size, -1, np.int64)
    wanted = nodes.astype(np.int64) * tree.width + symbols
    at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    return np.where(keys[at] == wanted, at, -1)


@dataclass(frozen=True, slots=True, eq=False)
class Sampler:
    """A tree prepared for drawing.

    Attributes:
        tree: The tree with a probability of the end at the root, for places without other information.
        openings: The beginnings of sequences.
        sums: float64 by entry of the tree, running sums of probabilities within each node.
        opening_sums: float64 by entry of the openings, running sums in the same way.
        max_length: The maximum number of symbols per sequence.
    """

    tree: Tree
    openings: Openings
    sums: Floats
    opening_sums: Floats
    max_length: int

    @property
    def sequences(self) -> float:
        """The estimated number of sequences."""
        return self.openings.sequences

    @staticmethod
    def of(released: gram_tree.Tree, max_length: int) -> "Sampler":
        """Return the sampler of a released tree."""
        tree = Tree.of(released)
        openings = find_openings(tree)
        ending = _with_end_at_root(tree, openings.sequences)
        sums = _running_sums(ending.chances, ending.starts)
        return Sampler(ending, openings, sums, _running_sums(openings.chances, openings.starts), max_length)

    def draw(self, seeds: Uint64s) -> tuple[Int32s, Int64s]:
        """Return the symbols of one sequence per seed, concatenated, and the size of each sequence."""
        tree, openings = self.tree, self.openings
        symbols = np.empty(seeds.size * self.max_length, np.int32)
        sizes = np.empty(seeds.size, np.int64)
        arrays = (tree.starts, tree.symbols, tree.child, self.sums, tree.neighbour, tree.rest)
        first_round = (openings.starts, openings.symbols, openings.child, self.opening_sums)
        size = sample_sequences(seeds.copy(), self.max_length, tree.width, arrays, first_round, symbols, sizes)
        return symbols[:size].copy(), sizes


def _with_end_at_root(tree: Tree, sequences: float) -> Tree:
    """Add an entry for the end to the root, with the mean probability of an end after a symbol that has a node."""
    followed = tree.totals[tree.depths == 1].sum()
    # The number of sequences divided by that of symbols, which is the probability that a symbol is the last one.
    ending = min(1.0, sequences / followed) if followed > 0.0 else 0.0
    place = int(tree.starts[1])
    chances = tree.chances.copy()
    known = 1.0 - tree.rest[0]
    # The root's probability of symbols without an entry has the same factor, so that all probabilities sum to 1.
    chances[:place] *= (1.0 - ending) / known
    rest = tree.rest.copy()
    rest[0] *= (1.0 - ending) / known
    starts = tree.starts.copy()
    starts[1:] += 1
    return replace(
        tree,
        starts=starts,
        symbols=np.insert(tree.symbols, place, tree.width - 1).astype(np.int32),
        counts=np.insert(tree.counts, place, round(sequences)),
        chances=np.insert(chances, place, ending),
        child=np.insert(tree.child, place, -1).astype(np.int32),
        rest=rest,
    )


def _running_sums(chances: Floats, starts: Int64s) -> Floats:
    """Return the sum of probabilities up to and including each entry, within its node."""
    total = np.cumsum(chances)
    before = np.concatenate([[0.0], total])[starts[:-1]]
    # For each entry, subtract the running sum before the first entry of its node.
    sums: Floats = total - np.repeat(before, np.diff(starts))
    return sums
