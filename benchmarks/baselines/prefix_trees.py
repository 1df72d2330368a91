"""A noisy prefix tree, for comparison, reconstructed from memory after Chen, Fung, Desai and Sossou (KDD 2012).

Each level of the tree counts the users by the prefix of their sequence. One user changes a level by 1, and each level
gets epsilon / height. Prefixes with a noisy count above two standard deviations of the noise are extended. From the
root down, children that add up to more than their parent are lowered evenly. The count of a parent minus the counts of
its children is the number of sequences that end there. The paper's isotonic smoothing along paths is omitted, so this
estimate is simpler than the published one. The release is (epsilon, 0)-private for one user added or removed.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import final

import numpy as np

from voxpop.kernels.arrays import Floats, Int32s, Int64s, Uint64s
from voxpop.kernels.sequences import count_children, enter_children
from voxpop.privacy.sampling import laplace_noise
from voxpop.privacy.secret import Secret


@final
@dataclass(frozen=True, slots=True, eq=False)
class PrefixTree:
    """A released prefix tree, as the sequences that it describes.

    Attributes:
        columns: int32 (distinct sequences, height), symbols padded with -1.
        counts: int64, the number of times that each sequence occurs.
    """

    columns: Int32s
    counts: Int64s

    @property
    def sequences(self) -> float:
        """The number of sequences."""
        return float(self.counts.sum())

    def draw(self, seeds: Uint64s) -> tuple[Int32s, Int64s]:
        """Return the symbols of one sequence per seed, concatenated, and the size of each sequence."""
        places = (seeds >> np.uint64(11)).astype(np.float64) * 2.0**-53 * self.counts.sum()
        chosen = np.minimum(np.searchsorted(np.cumsum(self.counts), places, side="right"), self.counts.size - 1)
        columns = self.columns[chosen]
        held = columns >= 0
        return columns[held], held.sum(axis=1)


def release_prefix_tree(sequences: Int32s, alphabet: int, height: int, epsilon: Fraction, secret: Secret) -> PrefixTree:
    """Release the prefixes of sequences with noise.

    Args:
        sequences: The private sequences, from `one_sequence_each`.
        alphabet: The number of symbols.
        height: The length of the longest prefix.
        epsilon: The budget.
        secret: The source of the noise.

    Returns:
        The tree, which is public.
    """
    rate = epsilon / height
    threshold = 2 * sqrt(2) * float(1 / rate)
    places = np.full(sequences.size, -1, np.int32)
    places[np.concatenate([[0], np.flatnonzero(sequences == alphabet)[:-1] + 1])[: sequences.size]] = 0
    prefixes = np.empty((1, 0), np.int32)
    totals = np.array([np.inf])
    columns, counts = [np.empty((0, height), np.int32)], [np.empty(0, np.int64)]
    first = 0
    for depth in range(height):
        keys, held = count_children(sequences, places, depth, alphabet + 1)
        noisy = _noisy_children(keys, held, prefixes.shape[0], alphabet, rate, secret, first)
        first += prefixes.shape[0]
        shown = noisy > threshold
        estimate = _lowered(np.where(shown, noisy, 0).astype(np.float64), totals)
        if depth:
            ending = np.floor(totals - estimate.sum(axis=1) + 0.5).astype(np.int64)
            columns.append(_padded(prefixes, height))
            counts.append(np.maximum(ending, 0))
        row, symbol = np.nonzero(estimate >= 1.0)
        wanted = row * (alphabet + 1) + symbol
        prefixes = np.column_stack([prefixes[row], symbol]).astype(np.int32)
        totals = estimate[row, symbol]
        if not wanted.size:
            break
        at = np.minimum(np.searchsorted(wanted, keys), wanted.size - 1)
        enter_children(places, np.where(wanted[at] == keys, at, -1).astype(np.int32))
    columns.append(_padded(prefixes, height))
    counts.append(np.floor(totals + 0.5).astype(np.int64))
    return PrefixTree(np.concatenate(columns), np.concatenate(counts))


def _noisy_children(
    keys: Int64s, held: Int64s, rows: int, alphabet: int, rate: Fraction, secret: Secret, first: int
) -> Int64s:
    """Return the noisy count of every child except the end mark, which follows from the counts of prefixes."""
    counts = np.zeros((rows, alphabet + 1), np.int64)
    counts.ravel()[keys] = held
    counts = counts[:, :alphabet]
    names, symbols = np.repeat(np.arange(first, first + rows), alphabet), np.tile(np.arange(alphabet), rows)
    noise: Int64s = laplace_noise(rate, secret, "prefix tree", names, symbols).reshape(counts.shape)
    return counts + noise


def _lowered(estimate: Floats, totals: Floats) -> Floats:
    """Lower the children above the threshold evenly if they exceed their parent."""
    shown = estimate > 0.0
    excess = np.maximum(estimate.sum(axis=1) - totals, 0.0)
    share = np.where(np.isfinite(excess), excess, 0.0) / np.maximum(shown.sum(axis=1), 1)
    lowered: Floats = np.where(shown, np.maximum(estimate - share[:, None], 0.0), 0.0)
    return lowered


def _padded(prefixes: Int32s, height: int) -> Int32s:
    padded = np.full((prefixes.shape[0], height), -1, np.int32)
    padded[:, : prefixes.shape[1]] = prefixes
    return padded
