"""Whole sequences from the chances behind contexts: draws, probabilities, and what comes next. All post-processing."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from voxpop.arrays import Floats, Int32s, Int64s, Uint64s
from voxpop.kernels.contexts import draw_contexts
from voxpop.sequences.context_tree import ContextTree
from voxpop.sequences.likelihood import likelihood
from voxpop.sequences.schedule import DRAWN_TO_COUNT, UNSURE_OF_CUT, UNSURE_OF_STEPS
from voxpop.sequences.settling import Settled, settle

if TYPE_CHECKING:
    from voxpop.privacy.secret import Source


@dataclass(frozen=True, eq=False)
class ContextSampler:
    """Chances made ready for drawing.

    Attributes:
        tree: public.
        settled: the chances of its nodes.
        sums: float64 (nodes, width), running sums of chances.
        max_length: most symbols of a sequence.
    """

    tree: ContextTree
    settled: Settled
    sums: Floats
    max_length: int

    @staticmethod
    def of(tree: ContextTree, max_length: int, redraw: "Source | None" = None) -> "ContextSampler":
        """Return the sampler of a released tree, or of what its counts may have been."""
        settled = settle(tree, redraw)
        sums = np.cumsum(settled.chances, axis=1)
        # (nodes, width): the last of each node is 1, whatever rounding left.
        sums /= sums[:, -1:]
        return ContextSampler(tree, settled, sums, max_length)

    @cached_property
    def sequences(self) -> float:
        """Estimated number of sequences."""
        _, sizes = self.draw(np.arange(DRAWN_TO_COUNT, dtype=np.uint64))
        # Sequences of max_length symbols have no end that was counted; drawn ones say how many there are.
        cut = float((sizes == self.max_length).mean())
        # A sequence that is not cut has a step more than symbols: its end.
        steps = float(sizes.mean()) + 1.0 - cut
        return number_of_sequences(self.tree, self.settled, cut, steps)

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
            # Behind so many symbols nothing but the end comes.
            return np.bincount([width - 1], minlength=width).astype(np.float64)
        row = np.array([prefix], np.int32).reshape(1, -1)
        node = self.tree.find(row, np.array([len(prefix)]), np.ones(1, np.bool_))[0]
        found: Floats = self.settled.chances[node]
        return found

    def probability(self, sequence: list[int]) -> float:
        """Return how likely a draw is this sequence."""
        return likelihood(sequence, self.max_length, self.chances)


def number_of_sequences(tree: ContextTree, settled: Settled, cut: float, steps: float) -> float:
    """Return how many sequences there are, from counts that leave out the ends of those that are cut.

    Three estimates are averaged by precision: the ends, divided by the share that the model does not cut; all steps,
    divided by those of a drawn sequence, the surest where nearly all are cut; and what follows beginnings,
    where these are counted for themselves.

    Args:
        tree: public.
        settled: what is believed of it.
        cut: the share of drawn sequences that are.
        steps: mean number of a drawn sequence, its end among them.

    Returns:
        The number, at least 1.
    """
    # Divided by below, so kept away from 0.
    kept = max(1.0 - cut, 0.05)
    by_ends = settled.ends / kept
    by_steps = float(settled.totals[0]) / max(steps, 1.0)
    # By node, the variance of the sum of `width` counts with Laplace noise, each of 2 b^2.
    noise = 2.0 * tree.width * tree.scales**2
    leaves = np.setdiff1d(np.arange(tree.nodes), tree.parents)
    estimates = [
        # Variance of ends / kept; and the model's share of cut sequences may be wrong.
        (by_ends, 2.0 * tree.scales.min() ** 2 / kept**2 + (UNSURE_OF_CUT * cut * by_ends / kept) ** 2),
        # All steps are in the root's own counts, and once in the leaves; and the model's steps may be wrong.
        (by_steps, min(noise[0], noise[leaves].sum()) / max(steps, 1.0) ** 2 + (UNSURE_OF_STEPS * by_steps) ** 2),
    ]
    node = int(tree.child[tree.width - 1])
    if node >= 0:
        estimates.append((float(tree.counts[node].sum()), float(noise[node])))
    # The mean weighted by precision: sum of x / v over sum of 1 / v.
    found, doubts = np.array(estimates).T
    return float(max((found / doubts).sum() / (1.0 / doubts).sum(), 1.0))
