"""The double line: the only place where sequences turn private counts into a public tree (CAC12, Algorithm 1)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from voxpop.arrays import Floats, Int32s, Int64s
from voxpop.corpus.engine import TreeWalk
from voxpop.corpus.tree_walk import MemoryTreeWalk
from voxpop.errors import InternalError
from voxpop.progress import track
from voxpop.sequences.children import NOISE_PURPOSES, Candidates, released_children
from voxpop.sequences.limits import Limits
from voxpop.sequences.path_budget import PathBudget
from voxpop.sequences.tree import Rows, Tree, grow, plant

if TYPE_CHECKING:
    from voxpop.privacy.secret import Source

Growing = TypeVar("Growing")
ReleaseRule = Callable[[Limits, PathBudget, Candidates, Int64s, Int64s, "Source"], Rows]


@dataclass(frozen=True, slots=True)
class ChildNoise:
    """What turns the counts below some nodes into released children, ready to be sent to where the counts are.

    Attributes:
        limits: public numbers.
        paths: what each node may spend.
        candidates: the nodes.
        secret: source of the noise.
        release: the rule.
    """

    limits: Limits
    paths: PathBudget
    candidates: Candidates
    secret: "Source"
    release: ReleaseRule

    def __call__(self, keys: Int64s, counts: Int64s) -> Rows:
        """Return the released children; noise depends on node and symbol alone, not on what else is asked."""
        return self.release(self.limits, self.paths, self.candidates, keys, counts, self.secret)

    def nodes(self) -> dict[str, Int64s]:
        """Return the public numbers of the nodes."""
        mine = self.candidates
        return {"parents": mine.parents, "shares": mine.shares, "heights": mine.heights}

    def of_nodes(self, first: int, parents: Int64s, shares: Int64s, heights: Int64s) -> "ChildNoise":
        """Return the noise of some of the nodes, from number `first` on, which are numbered from 0 then."""
        return replace(self, candidates=Candidates(parents, shares, heights, self.candidates.first + first))

    def restricted(self) -> "ChildNoise":
        """Return noise that can be sent away: it knows no other purpose, and its nodes follow by `of_nodes`."""
        none = np.empty(0, np.int64)
        bare = Candidates(none, none, none, self.candidates.first)
        return replace(self, secret=self.secret.restrict(*NOISE_PURPOSES), candidates=bare)

    def joined(self, rows: Int64s, symbols: Int32s, counts: Int64s) -> Rows:
        """Return released children of all nodes that come in any order."""
        # By row and then by symbol, whatever machine counted them.
        order = np.lexsort((symbols, rows))
        scales = np.array([self.paths.scale(share) for share in self.candidates.shares.tolist()])
        return Rows(self.candidates.parents, scales, rows[order], symbols[order].astype(np.int32), counts[order])


def explore(limits: Limits, sequences: Int32s, secret: "Source", release: ReleaseRule = released_children) -> Tree:
    """Count, add noise, release and go one symbol deeper, level by level.

    Args:
        limits: public numbers.
        sequences: from `one_sequence_each`: private.
        secret: source of the noise.
        release: what turns counts into released children; only `voxpop.testing` gives another.

    Returns:
        The tree: public, (epsilon, 0)-differentially private.
    """
    return explore_counts(limits, MemoryTreeWalk(sequences, limits.alphabet), secret, release)


def explore_counts(
    limits: Limits, counting: TreeWalk, secret: "Source", release: ReleaseRule = released_children
) -> Tree:
    """Explore sequences wherever they are; see `explore`."""
    return last_of(_growing(limits, counting, secret, release))


def last_of(levels: Iterator[Growing]) -> Growing:
    """Return what is there after the last level, and show the operator how many lengths are done."""
    grown = None
    for each in track(levels, "releasing", lambda _: 1, None, "lengths"):
        grown = each
    if grown is None:
        raise InternalError("no depth of a tree was explored.")
    return grown


def _growing(limits: Limits, counting: TreeWalk, secret: "Source", release: ReleaseRule) -> Iterator[Tree]:
    """Yield the tree as far as it is, level by level."""
    # Symbols and the end mark.
    width = limits.alphabet + 1
    paths = PathBudget(limits.epsilon, limits.max_length, limits.alphabet)
    # 1 / max_gram of epsilon: one of as many levels.
    root = paths.open_root(limits.max_gram)
    candidates = Candidates(np.array([-1]), np.array([root]), np.array([limits.max_gram]), first=0)
    tree: Tree | None = None
    for depth in range(limits.max_gram):
        # The double line: counts go in, released children come out.
        level = counting.released(depth, ChildNoise(limits, paths, candidates, secret, release))
        if tree is None:
            tree, nodes = plant(width, level, limits.balanced), np.zeros(1, np.int32)
        else:
            tree, nodes = grow(tree, level)
        yield tree
        # A function of released counts alone, so the whole is an adaptive composition.
        opened = _open_next(limits, paths, tree, candidates, nodes, depth)
        if not opened.parents.size:
            return
        # The private side learns which nodes there are; the other way nothing flows.
        counting.enter(depth, _keys_of(opened, tree, nodes, width))
        candidates = opened


def _open_next(
    limits: Limits, paths: PathBudget, tree: Tree, candidates: Candidates, nodes: Int32s, depth: int
) -> Candidates:
    """Return the children whose own children are counted next, with what they may spend: from public numbers alone."""
    # int64 by node: the row of the last level that became it, -1 for other nodes.
    row_of = np.full(tree.nodes, -1, np.int64)
    row_of[nodes[nodes >= 0]] = np.flatnonzero(nodes >= 0)
    entries = np.arange(tree.starts[np.searchsorted(tree.depths, depth)], tree.symbols.size)
    rows = row_of[tree.node_of(entries)]
    shares = candidates.shares[rows]
    numbers, inverse = np.unique(shares, return_inverse=True)
    thresholds = np.array([paths.threshold(number) for number in numbers], np.float64)[inverse]
    # Where levels are left on the path, and the count stands out of its noise.
    grows = (candidates.heights[rows] > 1) & (tree.counts[entries] > thresholds)
    # Nothing follows the end.
    grows &= tree.symbols[entries] < limits.alphabet
    entries, shares, thresholds = entries[grows], shares[grows], thresholds[grows]
    largest = tree.largest_chances(tree.neighbours_of(entries))
    heights = predicted_heights(thresholds, tree.counts[entries], largest, limits.max_gram - depth - 1)
    pairs = zip(shares.tolist(), heights.tolist(), strict=True)
    opened = np.array([paths.open(share, height) for share, height in pairs], np.int64)
    return Candidates(entries, opened, heights, first=candidates.first + candidates.parents.size)


def predicted_heights(thresholds: Floats, counts: Int64s, largest: Floats, most: int) -> Int64s:
    """Return how many levels below each gram are expected to pass the threshold (CAC12, 4.3.2): at least 1.

    Args:
        thresholds: of the histogram that the gram passed.
        counts: noisy, above their thresholds.
        largest: the largest chance of any symbol at the gram's Markov neighbour.
        most: levels that are left.

    Returns:
        The smallest whole number of steps, each by the factor `largest`, after which a count is down at the threshold.
    """
    sure = (largest <= 0.0) | (largest >= 1.0)
    # The least h with count * largest^h <= threshold (CAC12, 4.3.2).
    steps = np.log(thresholds / counts) / np.log(np.where(sure, 0.5, largest))
    return np.where(sure, most, np.clip(np.ceil(steps), 1, most)).astype(np.int64)


def _keys_of(opened: Candidates, tree: Tree, nodes: Int32s, width: int) -> Int64s:
    """Return the keys under which the candidates were counted, rising, as entries are."""
    row_of = np.full(tree.nodes, -1, np.int64)
    row_of[nodes[nodes >= 0]] = np.flatnonzero(nodes >= 0)
    # node * width + symbol, as they were counted.
    keys: Int64s = row_of[tree.node_of(opened.parents)] * width + tree.symbols[opened.parents]
    return keys
