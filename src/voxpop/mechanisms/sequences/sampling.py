"""Whole sequences from the probabilities after contexts: draws, probabilities, continuations. Post-processing only."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from voxpop.errors import InputError
from voxpop.kernels.arrays import Floats, Int32s, Int64s, Uint64s
from voxpop.kernels.sequences import draw_contexts
from voxpop.mechanisms.sequences.constants import DRAWN_TO_COUNT, UNSURE_OF_CUT, UNSURE_OF_STEPS
from voxpop.mechanisms.sequences.context_tree import ContextTree
from voxpop.mechanisms.sequences.smoothing import Smoothed, smooth
from voxpop.privacy.secret import Secret
from voxpop.reading.arrow import array_of, int64_array, string_array

if TYPE_CHECKING:
    import polars as pl

    from voxpop.privacy.secret import Source

AT_ONCE = 1 << 18
MOST = 10**9


@dataclass(frozen=True, eq=False)
class ContextSampler:
    """Chances made ready for drawing.

    Attributes:
        tree: public.
        smoothed: the chances of its nodes.
        sums: float64 (nodes, width), running sums of chances.
        max_length: most symbols of a sequence.
    """

    tree: ContextTree
    smoothed: Smoothed
    sums: Floats
    max_length: int

    @staticmethod
    def of(tree: ContextTree, max_length: int, bootstrap: "Source | None" = None) -> "ContextSampler":
        """Return the sampler of a released tree, or of a bootstrap sample of its counts."""
        smoothed = smooth(tree, bootstrap)
        sums = np.cumsum(smoothed.chances, axis=1)
        # (nodes, width): the last of each node is 1, despite rounding.
        sums /= sums[:, -1:]
        return ContextSampler(tree, smoothed, sums, max_length)

    @cached_property
    def sequences(self) -> float:
        """Estimated number of sequences."""
        _, sizes = self.draw(np.arange(DRAWN_TO_COUNT, dtype=np.uint64))
        # The ends of sequences of max_length symbols are not counted; their share is that of the drawn ones.
        cut = float((sizes == self.max_length).mean())
        # A sequence that is not cut has a step more than symbols: its end.
        steps = float(sizes.mean()) + 1.0 - cut
        return number_of_sequences(self.tree, self.smoothed, cut, steps)

    def draw(self, seeds: Uint64s) -> tuple[Int32s, Int64s]:
        """Return the symbols of one sequence per seed, one after the other, and the number of each."""
        symbols = np.empty(seeds.size * self.max_length, np.int32)
        sizes = np.empty(seeds.size, np.int64)
        links = (self.tree.child, self.tree.others)
        size = draw_contexts(seeds.copy(), self.max_length, self.tree.width, self.sums.ravel(), links, symbols, sizes)
        return symbols[:size].copy(), sizes

    def chances(self, prefix: list[int]) -> Floats:
        """Return the chance of each symbol, and of the end, to follow a prefix of a sequence."""
        width = self.tree.width
        if len(prefix) >= self.max_length:
            # After max_length symbols only the end follows.
            return np.bincount([width - 1], minlength=width).astype(np.float64)
        row = np.array([prefix], np.int32).reshape(1, -1)
        node = self.tree.find(row, np.array([len(prefix)]), np.ones(1, np.bool_))[0]
        found: Floats = self.smoothed.chances[node]
        return found

    def probability(self, sequence: list[int]) -> float:
        """Return the probability that a draw is this sequence; -1 is a symbol outside the alphabet."""
        if not sequence or -1 in sequence or len(sequence) > self.max_length:
            return 0.0
        # The probabilities of each symbol after those before it, and of the end (the last column) after all.
        steps = enumerate([*sequence, -1])
        return float(np.prod([self.chances(sequence[:place])[symbol] for place, symbol in steps]))


def number_of_sequences(tree: ContextTree, smoothed: Smoothed, cut: float, steps: float) -> float:
    """Return the number of sequences, from counts without the ends of those that are cut.

    Three estimates are averaged by precision: the ends, divided by the share that the model does not cut; all steps,
    divided by those of a drawn sequence, the surest where nearly all are cut; and the symbols after
    beginnings, if these have a node.

    Args:
        tree: public.
        smoothed: the smoothed counts.
        cut: the share of drawn sequences that are.
        steps: mean number of a drawn sequence, its end among them.

    Returns:
        The number, at least 1.
    """
    # Divided by below, so kept away from 0.
    kept = max(1.0 - cut, 0.05)
    by_ends = smoothed.ends / kept
    by_steps = float(smoothed.totals[0]) / max(steps, 1.0)
    # By node, the variance of the sum of `width` counts with Laplace noise, each of 2 b^2.
    noise = 2.0 * tree.width * tree.scales**2
    leaves = np.setdiff1d(np.arange(tree.nodes), tree.parents)
    estimates = [
        # Variance of ends / kept; and the drawn share of cut sequences has an error.
        (by_ends, 2.0 * tree.scales.min() ** 2 / kept**2 + (UNSURE_OF_CUT * cut * by_ends / kept) ** 2),
        # All steps are in the root's counts, and once in the leaves; and the drawn steps have an error.
        (by_steps, min(noise[0], noise[leaves].sum()) / max(steps, 1.0) ** 2 + (UNSURE_OF_STEPS * by_steps) ** 2),
    ]
    node = int(tree.child[tree.width - 1])
    if node >= 0:
        estimates.append((float(tree.counts[node].sum()), float(noise[node])))
    # The mean weighted by precision: sum of x / v over sum of 1 / v.
    found, doubts = np.array(estimates).T
    return float(max((found / doubts).sum() / (1.0 / doubts).sum(), 1.0))


def sample_frame(alphabet: tuple[str, ...], sampler: ContextSampler, n: int, seed: int | None) -> "pl.DataFrame":
    """Draw sequences as a table; see `SequenceModel.sample`."""
    import polars as pl

    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= MOST:
        raise InputError(f"`n` must be a whole number from 1 to {MOST:,}, got {n!r}. It is how many sequences to draw.")
    check_released(sampler.tree)
    secret = Secret.of(seed)
    words = string_array(alphabet)
    pieces = []
    for start in range(0, n, AT_ONCE):
        numbers = np.arange(start, min(n, start + AT_ONCE), dtype=np.uint64)
        symbols, sizes = sampler.draw(secret.draws("sequences/synthetic", numbers, 0)[:, 0])
        ends = np.concatenate([[0], np.cumsum(sizes)])
        pieces.append(pa.LargeListArray.from_arrays(int64_array(ends), words.take(array_of(symbols))))
    sequence = pl.Series("sequence", values=pa.concat_arrays(pieces), dtype=pl.List(pl.String))
    return pl.DataFrame([pl.Series("user", np.arange(n)), sequence])


def check_released(tree: ContextTree) -> None:
    """Raise an error if the tree has no counts above 0."""
    if not (tree.counts > 0).any():
        raise InputError(
            "the model has no counts above 0, so there is nothing to draw from. "
            "Use a larger epsilon, a smaller alphabet or a smaller max_length for less noise."
        )
