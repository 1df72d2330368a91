"""Whole sequences from the chances behind contexts: draws, probabilities, and what comes next. All post-processing."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from voxpop.arrays import Floats, Int32s, Int64s, Uint64s
from voxpop.kernels.contexts import draw_contexts
from voxpop.sequences.context_tree import ContextTree
from voxpop.sequences.likelihood import likelihood
from voxpop.sequences.schedule import DRAWN_TO_COUNT, UNSURE_OF_CUT
from voxpop.sequences.settling import Settled, settle

if TYPE_CHECKING:
    from voxpop.privacy.secret import Source


@dataclass(frozen=True, slots=True, eq=False)
class ContextSampler:
    """Chances made ready for drawing.

    Attributes:
        tree: public.
        settled: the chances of its nodes.
        sums: float64 (nodes, width), running sums of chances.
        max_length: most symbols of a sequence.
        sequences: estimated number of sequences.
    """

    tree: ContextTree
    settled: Settled
    sums: Floats
    max_length: int
    sequences: float

    @staticmethod
    def of(tree: ContextTree, max_length: int, redraw: "Source | None" = None) -> "ContextSampler":
        """Return the sampler of a released tree, or of what its counts may have been."""
        settled = settle(tree, redraw)
        sums = np.cumsum(settled.chances, axis=1)
        # (nodes, width): the last of each node is 1, whatever rounding left.
        sums /= sums[:, -1:]
        sampler = ContextSampler(tree, settled, sums, max_length, 0.0)
        _, sizes = sampler.draw(np.arange(DRAWN_TO_COUNT, dtype=np.uint64))
        # Sequences of max_length symbols have no end that was counted; drawn ones say how many there are.
        found = number_of_sequences(tree, settled.ends, float((sizes == max_length).mean()))
        return ContextSampler(tree, settled, sums, max_length, found)

    def draw(self, seeds: Uint64s) -> tuple[Int32s, Int64s]:
        """Return the symbols of one sequence per seed, one after the other, and how many each has."""
        symbols = np.empty(seeds.size * self.max_length, np.int32)
        sizes = np.empty(seeds.size, np.int64)
        links = (self.tree.child, self.tree.others)
        size = draw_contexts(seeds.copy(), self.max_length, self.tree.width, self.sums.ravel(), links, symbols, sizes)
        return symbols[:size].copy(), sizes

    def chances(self, prefix: list[int]) -> Floats:
        """Return the chance of each symbol, and of the end, to follow a prefix of a sequence."""
        width = self.tree.width
        if len(prefix) >= self.max_length:
            return np.bincount([width - 1], minlength=width).astype(np.float64)
        row = np.array([prefix], np.int32).reshape(1, -1)
        node = self.tree.find(row, np.array([len(prefix)]), np.ones(1, np.bool_))[0]
        found: Floats = self.settled.chances[node]
        return found

    def probability(self, sequence: list[int]) -> float:
        """Return how likely a draw is this sequence."""
        return likelihood(sequence, self.max_length, self.chances)


def number_of_sequences(tree: ContextTree, ends: float, cut: float) -> float:
    """Return how many sequences there are, from counts that leave out the ends of those that are cut.

    The ends, divided by the share that the model does not cut, and all that follows beginnings, where these are counted
    for themselves, are averaged by how sure they are.

    Args:
        tree: public.
        ends: how many sequences end before they are cut.
        cut: the share of drawn sequences that are.

    Returns:
        The number, at least 1.
    """
    # Divided by below, so kept away from 0.
    kept = max(1.0 - cut, 0.05)
    by_ends = ends / kept
    # Variance of ends / kept: Laplace noise has 2 b^2, and the model's share of cut sequences may be wrong.
    doubt = 2.0 * tree.scales.min() ** 2 / kept**2 + (UNSURE_OF_CUT * cut * by_ends / kept) ** 2
    node = int(tree.child[tree.width - 1])
    if node < 0:
        return max(by_ends, 1.0)
    # Of a sum of `width` counts with noise of one scale.
    noise = 2.0 * tree.width * float(tree.scales[node]) ** 2
    # Two estimates averaged by precision: each weighted with the variance of the other.
    weight = noise / (noise + doubt)
    by_starts = float(tree.counts[node].sum())
    return float(max(weight * by_ends + (1.0 - weight) * by_starts, 1.0))
