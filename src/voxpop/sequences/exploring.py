"""The double line: the only place where sequences turn private counts into a public tree (CAC12, Algorithm 1)."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from voxpop.kernels.sequences import count_children, enter_children, open_root
from voxpop.sequences.children import Candidates, released_children
from voxpop.sequences.ledger import Ledger
from voxpop.sequences.tree import Rows, Tree, grow, plant

if TYPE_CHECKING:
    from voxpop.privacy.secret import Secret

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
ReleaseRule = Callable[["Limits", Ledger, Candidates, Int64s, Int64s, "Secret"], Rows]


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds an exploration, all public.

    Attributes:
        epsilon: the budget, exact.
        alphabet: number of symbols.
        max_length: most symbols of one sequence.
        max_gram: length of the longest gram.
        balanced: whether counts are made consistent our way, or as published.
        keep_all: whether all children are kept at the root and where no deeper level follows, as CAC12 does; otherwise
            only those above the threshold.
    """

    epsilon: Fraction
    alphabet: int
    max_length: int
    max_gram: int
    keep_all: bool
    balanced: bool = False


def explore(limits: Limits, sequences: Int32s, secret: "Secret", release: ReleaseRule = released_children) -> Tree:
    """Count, add noise, release and go one symbol deeper, level by level.

    Args:
        limits: public numbers.
        sequences: from `one_sequence_each`: private.
        secret: source of the noise.
        release: what turns counts into released children; only `voxpop.testing` gives another.

    Returns:
        The tree: public, (epsilon, 0)-differentially private.
    """
    width = limits.alphabet + 1
    ledger = Ledger(limits.epsilon, limits.max_length, limits.alphabet)
    root = ledger.open_root(limits.max_gram)
    candidates = Candidates(np.array([-1]), np.array([root]), np.array([limits.max_gram]), first=0)
    places = np.empty(sequences.size, np.int32)
    open_root(sequences, limits.alphabet, places)
    tree: Tree | None = None
    for depth in range(limits.max_gram):
        keys, counts = count_children(sequences, places, depth, width)
        level = release(limits, ledger, candidates, keys, counts, secret)
        if tree is None:
            tree, nodes = plant(width, level, limits.balanced), np.zeros(1, np.int32)
        else:
            tree, nodes = grow(tree, level)
        opened = _open_next(limits, ledger, tree, candidates, nodes, depth)
        if not opened.parents.size:
            break
        _enter(places, keys, opened, tree, nodes, width)
        candidates = opened
    assert tree is not None
    return tree


def _open_next(
    limits: Limits, ledger: Ledger, tree: Tree, candidates: Candidates, nodes: Int32s, depth: int
) -> Candidates:
    """Return the children whose own children are counted next, with what they may spend: from public numbers alone."""
    row_of = np.full(tree.nodes, -1, np.int64)
    row_of[nodes[nodes >= 0]] = np.flatnonzero(nodes >= 0)
    entries = np.arange(tree.starts[np.searchsorted(tree.depths, depth)], tree.symbols.size)
    rows = row_of[tree.node_of(entries)]
    shares = candidates.shares[rows]
    numbers, inverse = np.unique(shares, return_inverse=True)
    thresholds = np.array([ledger.threshold(number) for number in numbers], np.float64)[inverse]
    grows = (candidates.heights[rows] > 1) & (tree.counts[entries] > thresholds)
    grows &= tree.symbols[entries] < limits.alphabet
    entries, shares, thresholds = entries[grows], shares[grows], thresholds[grows]
    largest = tree.largest_chances(tree.neighbours_of(entries))
    heights = predicted_heights(thresholds, tree.counts[entries], largest, limits.max_gram - depth - 1)
    pairs = zip(shares.tolist(), heights.tolist(), strict=True)
    opened = np.array([ledger.open(share, height) for share, height in pairs], np.int64)
    return Candidates(entries, opened, heights, first=candidates.first + candidates.parents.size)


def predicted_heights(
    thresholds: NDArray[np.float64], counts: Int64s, largest: NDArray[np.float64], most: int
) -> Int64s:
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
    steps = np.log(thresholds / counts) / np.log(np.where(sure, 0.5, largest))
    return np.where(sure, most, np.clip(np.ceil(steps), 1, most)).astype(np.int64)


def _enter(places: Int32s, keys: Int64s, opened: Candidates, tree: Tree, nodes: Int32s, width: int) -> None:
    """Put each position under the candidate whose gram starts there."""
    row_of = np.full(tree.nodes, -1, np.int64)
    row_of[nodes[nodes >= 0]] = np.flatnonzero(nodes >= 0)
    wanted = row_of[tree.node_of(opened.parents)] * width + tree.symbols[opened.parents]  # rising, as entries are
    at = np.minimum(np.searchsorted(wanted, keys), wanted.size - 1)
    child = np.where(wanted[at] == keys, at, -1).astype(np.int32)
    enter_children(places, child)
