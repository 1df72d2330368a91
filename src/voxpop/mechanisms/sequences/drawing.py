"""Sequences that are drawn together, so that their statistics are close to the expected values. All arrays are public.

Each sequence has the distribution of the model, but the sequences are not independent. At each step, all sequences are
sorted by their histories, with the latest symbol first. The uniform numbers that choose ends and symbols are spread
evenly over this order. These numbers are multiples of the golden ratio modulo 1, shifted by a random number. Therefore
the number of times that each symbol follows each context, or each longer history, is close to its expected value
(L'Ecuyer, Lécot and Tuffin, "A randomized quasi-Monte Carlo simulation method for Markov chains", 2008).
"""

from dataclasses import dataclass

import numpy as np

from voxpop.kernels.arrays import Floats, Int32s, Int64s, Uint64s
from voxpop.kernels.uniform import GOLDEN_STEP, uniform
from voxpop.mechanisms.sequences.context_tree import ContextTree
from voxpop.mechanisms.sequences.profile import Fitted
from voxpop.reading.users import spread

GOLDEN = 0.6180339887498949
_MOST_TOGETHER = 1 << 23
"""The maximum number of steps of sequences that are drawn together. Each step needs 8 bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class Sessions:
    """Drawn sessions, as concatenated int32 symbols and int64 starts (sessions + 1)."""

    symbols: Int32s
    starts: Int64s

    @property
    def size(self) -> int:
        """The number of sessions."""
        return int(self.starts.size - 1)

    @property
    def sizes(self) -> Int64s:
        """The number of symbols of each session."""
        return np.diff(self.starts)


def draw_sessions(tree: ContextTree, sums: Floats, fit: Fitted, seeds: Uint64s) -> Sessions:
    """Draw one sequence per seed.

    Args:
        tree: The public tree.
        sums: float64 (nodes, width), the cumulative probabilities at each node. The last sum of each node is 1.
        fit: The numbers that make drawn sequences agree with the profile.
        seeds: uint64, one seed per sequence.

    Returns:
        The sequences, in the order of the seeds. A sequence depends not only on its own seed.
    """
    step = max(1, _MOST_TOGETHER // tree.max_length)
    pieces = [_draw_together(tree, sums, fit, seeds[start : start + step]) for start in range(0, seeds.size, step)]
    symbols = [np.empty(0, np.int32), *(each for each, _ in pieces)]
    sizes = [np.zeros(1, np.int64), *(each for _, each in pieces)]
    return Sessions(np.concatenate(symbols), np.cumsum(np.concatenate(sizes)))


def _draw_together(tree: ContextTree, sums: Floats, fit: Fitted, seeds: Uint64s) -> tuple[Int32s, Int64s]:
    """Return the concatenated symbols of one sequence per seed, and the number of symbols in each sequence."""
    most, deepest, stays = tree.max_length, int(tree.depths.max(initial=0)), sums[:, -2]
    # Shape (steps, sequences), one row per step, so the memory of steps that no sequence reaches is never touched.
    symbols, nodes = np.empty((most, seeds.size), np.int32), np.empty((most, seeds.size), np.int32)
    sizes, state = np.zeros(seeds.size, np.int64), ~seeds[:1]
    # `going` contains the sequences that have not ended, in the order of their histories.
    going = np.arange(seeds.size)
    for length in range(most):
        first = max(length - deepest, 0)
        recent = np.ascontiguousarray(symbols[first:length, going].T)
        found = tree.find(recent, np.full(going.size, length - first), np.full(going.size, first == 0))
        stay = stays[found]
        on = _spread(going.size, state) * (stay + (1.0 - stay) * fit.ends[length]) < stay
        going, found, stay = going[on], found[on], stay[on]
        nodes[length, going] = found
        # The latest symbol is copied with probability `repeats`. Otherwise each earlier position is drawn with
        # probability 1 / (novelty + positions), and its symbol is copied if its context is the same. After the empty
        # context (node 0), the earlier positions do not include the latest position.
        share = (_uniforms(seeds[going], length) - fit.repeats) / (1.0 - fit.repeats)
        places = length - (found == 0)
        place = (share * (fit.novelty + places)).astype(np.int64)
        place[place >= places] = length
        place[share < 0.0] = max(length - 1, 0)
        new = (place == length) | (nodes[place, going] != found)
        latest = symbols[place, going]
        latest[new] = _chosen_nodes(sums, found[new], _spread(int(new.sum()), state) * stay[new])
        symbols[length, going] = latest
        sizes[going] += 1
        # A stable sort keeps the order by earlier symbols. With keys of 16 bits, the sort takes linear time.
        keys = latest.astype(np.uint16) if tree.width <= 1 << 16 else latest
        going = going[np.argsort(keys, kind="stable")]
    longest = int(sizes.max(initial=0))
    return symbols[:longest].T[np.arange(longest) < sizes[:, None]], sizes


def _spread(size: int, state: Uint64s) -> Floats:
    """Return numbers that are each uniform in [0, 1). Every run of consecutive numbers is spread evenly."""
    found: Floats = (np.arange(size) * GOLDEN + uniform(state)) % 1.0
    return found


def _uniforms(seeds: Uint64s, number: int) -> Floats:
    """For each seed, return the uniform number with this index, counted from 0, as in `kernels.uniform`."""
    mixed = spread(seeds + np.uint64((number + 1) * int(GOLDEN_STEP) % 2**64))
    found: Floats = (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return found


def _chosen_nodes(sums: Floats, nodes: Int32s, wanted: Floats) -> Int64s:
    """For each node, return the first symbol with a cumulative probability above a given number, by bisection."""
    flat, rows = sums.ravel(), nodes.astype(np.int64) * sums.shape[1]
    low, high = np.zeros(nodes.size, np.int64), np.full(nodes.size, sums.shape[1] - 2)
    for _ in range(int(sums.shape[1] - 2).bit_length()):
        middle = (low + high) >> 1
        above = flat[rows + middle] > wanted
        high = np.where(above, middle, high)
        low = np.where(above, low, np.minimum(middle + 1, high))
    return low
