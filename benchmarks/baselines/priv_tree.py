"""PrivTree's sequence model, for comparison, reconstructed from memory after Zhang, Xiao and Xie (SIGMOD 2016).

Contexts are split by thresholds that need no share of the budget per level. A context v of length d has the score
c(v) = |hist(v)| - max hist(v), and is split if max(c(v) - d delta, theta - delta) + Laplace(lambda) > theta, with
lambda = (2 b - 1) / (b - 1) * max_length / (epsilon / 2), delta = lambda ln b, theta = 0 and b children per node. The
leaves get their counts with the other half of epsilon.

**Not verified**: the constants, the halves and theta = 0 are from memory, because neither the paper nor its proof was
available. Therefore we claim no guarantee. Noise is drawn in floating point. The model is only for comparisons.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from voxpop.engine.local.tree_walk import MemoryTreeWalk
from voxpop.kernels.arrays import Bools, Int32s, Int64s, Uint64s
from voxpop.kernels.sequences import draw_contexts
from voxpop.mechanisms.sequences.constants import NEVER
from voxpop.mechanisms.sequences.context_tree import ROOT, ContextTree, laplace
from voxpop.privacy.secret import Secret

DEEPEST = 12


@final
@dataclass(frozen=True, slots=True, eq=False)
class PrivTree:
    """A tree of contexts with noisy counts at its leaves.

    Attributes:
        tree: The tree, in which the counts of inner nodes are the sums over their leaves.
        max_length: The maximum number of symbols per sequence.
    """

    tree: ContextTree
    max_length: int

    @property
    def sequences(self) -> float:
        """The number of sequences, estimated from the noisy counts of ends."""
        return max(float(self.tree.counts[0, -1]), 1.0)

    def draw(self, seeds: Uint64s) -> tuple[Int32s, Int64s]:
        """Return the symbols of one sequence per seed, concatenated, and the size of each sequence."""
        tree = self.tree
        sums = np.cumsum(np.maximum(tree.counts, 0) + 1e-9, axis=1)
        sums /= sums[:, -1:]
        symbols = np.empty(seeds.size * self.max_length, np.int32)
        sizes = np.empty(seeds.size, np.int64)
        links = (tree.child, tree.others)
        given = tree.width, sums.ravel(), links, (NEVER, 0.0), np.ones(self.max_length)
        size = draw_contexts(seeds.copy(), *given, symbols, sizes)
        return symbols[:size].copy(), sizes


def release_priv_tree(sequences: Int32s, alphabet: int, max_length: int, epsilon: Fraction, seed: int) -> PrivTree:
    """Split contexts by noisy scores and count the symbols that follow the leaves.

    Args:
        sequences: The private sequences, from `one_sequence_each`.
        alphabet: The number of symbols.
        max_length: The maximum number of symbols per sequence.
        epsilon: The budget.
        seed: The seed of the noise.

    Returns:
        The tree. No guarantee is claimed for it, as explained above.
    """
    secret = Secret.from_seed(seed)
    width = alphabet + 1
    scale = 2.0 * max_length / float(epsilon)
    spread = (2 * width - 1) / (width - 1) * scale
    step = spread * np.log(width)
    counting = MemoryTreeWalk(sequences, alphabet, max_length)
    parents, before = np.array([-1], np.int32), np.array([ROOT], np.int32)
    tree = ContextTree(width, max_length, *(np.empty(0, np.int32),) * 2, np.empty(0), np.empty((0, width), np.int64))
    leaves = []
    for depth in range(DEEPEST):
        counts = np.zeros((parents.size, width), np.int64)
        keys, held = counting.count_following()
        counts.ravel()[keys] = held
        first = tree.nodes
        tree = tree.with_level(parents, before, np.full(parents.size, scale), counts)
        scores = np.maximum(counts.sum(axis=1) - counts.max(axis=1) - depth * step, -step)
        split = (scores + spread * laplace(secret, f"split/{depth}", parents.size) > 0.0) & (before != width - 1)
        split &= depth < DEEPEST - 1
        leaves.append(~split)
        above = np.flatnonzero(split)
        if not above.size:
            break
        parents = np.repeat(first + above, width).astype(np.int32)
        before = np.tile(np.arange(width, dtype=np.int32), above.size)
        moves = np.arange(parents.size, dtype=np.int32)
        counting.lengthen(
            depth, np.repeat(above, width) * width + before, moves, np.full(counts.shape[0], -1, np.int32)
        )
    return PrivTree(_with_noise(tree, np.concatenate(leaves), scale, secret), max_length)


def _with_noise(tree: ContextTree, leaves: Bools, scale: float, secret: Secret) -> ContextTree:
    """Return the tree with noisy counts at its leaves, and sums of these counts elsewhere."""
    noisy = np.where(
        leaves[:, None],
        np.round(tree.counts + scale * laplace(secret, "leaves", tree.counts.size).reshape(tree.counts.shape)),
        0,
    )
    for node in range(tree.nodes - 1, 0, -1):
        noisy[tree.parents[node]] += noisy[node]
    return ContextTree(tree.width, tree.max_length, tree.parents, tree.before, tree.scales, noisy.astype(np.int64))
