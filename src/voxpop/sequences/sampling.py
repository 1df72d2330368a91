"""Whole sequences from the tree of grams: draws, probabilities, and what comes next. All post-processing."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from voxpop.arrays import Floats, Int32s, Int64s, Uint64s
from voxpop.arrow import array_of, int64_array, string_array
from voxpop.errors import InputError
from voxpop.kernels.backoff import follow, sample_sequences
from voxpop.privacy.secret import Secret
from voxpop.sequences.likelihood import likelihood
from voxpop.sequences.openings import Openings, find_openings
from voxpop.sequences.tree import Tree

if TYPE_CHECKING:
    import polars as pl

    from voxpop.sequences.context_sampling import ContextSampler
    from voxpop.sequences.context_tree import ContextTree

AT_ONCE = 1 << 18
MOST = 10**9


@dataclass(frozen=True, slots=True, eq=False)
class Sampler:
    """A tree made ready for drawing.

    Attributes:
        tree: with a chance of the end at the root, for places of which nothing else is known.
        openings: how sequences begin.
        sums: float64 by entry of the tree, running sums of chances within each node.
        opening_sums: the same for openings.
        max_length: most symbols of a sequence.
    """

    tree: Tree
    openings: Openings
    sums: Floats
    opening_sums: Floats
    max_length: int

    @property
    def sequences(self) -> float:
        """Estimated number of sequences."""
        return self.openings.sequences

    @staticmethod
    def of(tree: Tree, max_length: int) -> "Sampler":
        """Return the sampler of a released tree."""
        openings = find_openings(tree)
        ending = _with_end_at_root(tree, openings.sequences)
        sums = _running_sums(ending.chances, ending.starts)
        return Sampler(ending, openings, sums, _running_sums(openings.chances, openings.starts), max_length)

    def draw(self, seeds: Uint64s) -> tuple[Int32s, Int64s]:
        """Return the symbols of one sequence per seed, one after the other, and how many each has."""
        tree, openings = self.tree, self.openings
        symbols = np.empty(seeds.size * self.max_length, np.int32)
        sizes = np.empty(seeds.size, np.int64)
        arrays = (tree.starts, tree.symbols, tree.child, self.sums, tree.neighbour, tree.rest)
        opening = (openings.starts, openings.symbols, openings.child, self.opening_sums)
        size = sample_sequences(seeds.copy(), self.max_length, tree.width, arrays, opening, symbols, sizes)
        return symbols[:size].copy(), sizes

    def chances(self, prefix: list[int]) -> Floats:
        """Return the chance of each symbol, and of the end, to follow a prefix of a sequence."""
        tree, openings = self.tree, self.openings
        width = tree.width
        if len(prefix) >= self.max_length:
            # Behind so many symbols nothing but the end comes.
            return np.bincount([width - 1], minlength=width).astype(np.float64)
        opened, node = 0, np.zeros(1, np.int32)
        for symbol in prefix:
            entry = self._opening_entry(opened, symbol)
            opened = -1 if entry is None else int(openings.child[entry])
            by = np.array([symbol], np.int32)
            node = follow(node, by, tree.starts, tree.symbols, tree.child, tree.neighbour)
        every = np.arange(width, dtype=np.int32)
        chances = tree.chances_of(np.full(width, node[0]), every)
        if opened >= 0:
            own = slice(int(openings.starts[opened]), int(openings.starts[opened + 1]))
            # Of an opening: chances of its own for its entries, for other symbols those of its node times a factor.
            chances = chances * openings.factors[opened]
            chances[openings.symbols[own]] = openings.chances[own]
        total = chances.sum()
        return chances / total if total > 0.0 else chances

    def probability(self, sequence: list[int]) -> float:
        """Return how likely a draw is this sequence."""
        return likelihood(sequence, self.max_length, self.chances)

    def _opening_entry(self, opened: int, symbol: int) -> int | None:
        if opened < 0:
            return None
        first, stop = self.openings.starts[opened : opened + 2]
        entry = int(first + np.searchsorted(self.openings.symbols[first:stop], symbol))
        return entry if entry < stop and self.openings.symbols[entry] == symbol else None


def sample_frame(
    alphabet: tuple[str, ...], tree: "Tree | ContextTree", sampler: "Sampler | ContextSampler", n: int, seed: int | None
) -> "pl.DataFrame":
    """Draw sequences as a table; see `SequenceModel.sample`."""
    import polars as pl

    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= MOST:
        raise InputError(f"`n` must be a whole number from 1 to {MOST:,}, got {n!r}. It is how many sequences to draw.")
    _check_released(tree)
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


def next_frame(
    alphabet: tuple[str, ...], tree: "Tree | ContextTree", sampler: "Sampler | ContextSampler", prefix: list[int]
) -> "pl.DataFrame":
    """Return what comes next as a table; see `SequenceModel.next`."""
    import polars as pl

    _check_released(tree)
    frame = pl.DataFrame({"symbol": [*alphabet, None], "probability": sampler.chances(prefix)})
    return frame.sort("probability", descending=True, maintain_order=True)


def _check_released(tree: "Tree | ContextTree") -> None:
    if not (tree.counts > 0).any():
        raise InputError(
            "the model holds no counts above 0, so there is nothing to draw from. "
            "A larger epsilon, a smaller alphabet or a smaller max_length leave less noise."
        )


def _with_end_at_root(tree: Tree, sequences: float) -> Tree:
    """Give the root an entry for the end, as likely as it is behind a symbol of which more is known."""
    followed = tree.totals[tree.depths == 1].sum()
    # Sequences over symbols: how often a symbol is the last one.
    ending = min(1.0, sequences / followed) if followed > 0.0 else 0.0
    place = int(tree.starts[1])
    chances = tree.chances.copy()
    known = 1.0 - tree.rest[0]
    # What the root keeps for symbols without an entry is scaled alike, so all sums to 1.
    chances[:place] *= (1.0 - ending) / known
    rest = tree.rest.copy()
    rest[0] *= (1.0 - ending) / known
    starts = tree.starts.copy()
    starts[1:] += 1
    parents = tree.parents + (tree.parents >= place)
    return Tree(
        width=tree.width,
        starts=starts,
        symbols=np.insert(tree.symbols, place, tree.width - 1).astype(np.int32),
        counts=np.insert(tree.counts, place, round(sequences)),
        chances=np.insert(chances, place, ending),
        child=np.insert(tree.child, place, -1).astype(np.int32),
        parents=parents,
        depths=tree.depths,
        scales=tree.scales,
        neighbour=tree.neighbour,
        rest=rest,
        factor=tree.factor,
        totals=tree.totals,
        balanced=tree.balanced,
    )


def _running_sums(chances: Floats, starts: Int64s) -> Floats:
    """Return the sum of chances up to and including each entry, within its node."""
    total = np.cumsum(chances)
    before = np.concatenate([[0.0], total])[starts[:-1]]
    # By entry: the running sum less what it was where the entry's node begins.
    sums: Floats = total - np.repeat(before, np.diff(starts))
    return sums
