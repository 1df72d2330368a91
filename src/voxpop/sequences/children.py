"""The noisy children of one level's nodes: all of a small alphabet, of a large one those that show.

Both ways have the same distribution of what is released. Children with no support have count 0, so of those only the
ones whose noise passes the threshold matter, and `exceeding_zeros` draws these alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from voxpop.arrays import Int64s
from voxpop.privacy.discrete_laplace import exceeding_zeros, laplace_noise
from voxpop.sequences.path_budget import PathBudget
from voxpop.sequences.tree import Rows

if TYPE_CHECKING:
    from voxpop.privacy.secret import Source
    from voxpop.sequences.limits import Limits

Found = tuple[Int64s, Int64s, Int64s]

DENSE = 1024
"""Up to this many symbols every child is drawn."""
AT_ONCE = 1 << 21
NOISE_PURPOSES = tuple(
    f"{purpose}{more}"
    for purpose in ("sequences/noise", "sequences/zeros/gap", "sequences/zeros/height")
    for more in ("", "/more 1", "/more 2")
)
"""What noise is drawn for; a third round of further bits is needed with a chance of 2^-256."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The nodes of one level whose children are counted.

    Attributes:
        parents: int64, the entry of the tree that each continues, rising; -1 for the root.
        shares: int64, the number of each one's share among those of paths.
        heights: int64, how many levels each may still have; 1 spends what is left.
        first: the number of candidates of all levels above, from which each has a number of its own.
    """

    parents: Int64s
    shares: Int64s
    heights: Int64s
    first: int


def released_children(
    limits: "Limits", paths: PathBudget, candidates: Candidates, keys: Int64s, counts: Int64s, secret: "Source"
) -> Rows:
    """Add noise to the children's counts and keep what may be said.

    Args:
        limits: public numbers.
        paths: what each candidate may spend.
        candidates: the nodes.
        keys: candidate * width + symbol of the children that occur, distinct: private.
        counts: how often each occurs: private.
        secret: source of the noise.

    Returns:
        The released children in canonical order: public.
    """
    width = limits.alphabet + 1
    dense = width <= DENSE or limits.keep_all or limits.contexts
    # By node, then by symbol: int64 (children that occur).
    order = np.argsort(keys)
    rows, symbols = np.divmod(keys[order], width)
    found: list[Found] = [(np.empty(0, np.int64),) * 3]
    # Nodes of one share have the same noise, so they are drawn together.
    for share in np.unique(candidates.shares).tolist():
        for mine in _runs(np.flatnonzero(candidates.shares == share), width if dense else DENSE):
            first, stop = np.searchsorted(rows, mine[0]), np.searchsorted(rows, mine[-1], side="right")
            own = first + np.flatnonzero(candidates.shares[rows[first:stop]] == share)
            held = (rows[own], symbols[own], counts[order[own]])
            draw = _every_child if dense else _children_that_show
            found.append(draw(limits, paths, candidates, mine, held, secret))
    row, symbol, count = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.lexsort((symbol, row))
    scales = np.array([paths.scale(share) for share in candidates.shares.tolist()])
    return Rows(candidates.parents, scales, row[order], symbol[order].astype(np.int32), count[order])


def _runs(rows: Int64s, width: int) -> Iterator[Int64s]:
    """Yield rows, few enough at a time that `width` numbers for each fit in memory."""
    step = max(1, AT_ONCE // width)
    for start in range(0, rows.size, step):
        yield rows[start : start + step]


def _every_child(
    limits: "Limits", paths: PathBudget, candidates: Candidates, mine: Int64s, held: Found, secret: "Source"
) -> Found:
    """Draw the noise of each possible child."""
    share = int(candidates.shares[mine[0]])
    bins = _bins(limits, candidates, mine)
    # int64 (nodes, symbols): true counts first, 0 where nobody has the child.
    noisy = np.zeros((mine.size, bins), np.int64)
    noisy[np.searchsorted(mine, held[0]), held[1]] = held[2]
    names = np.repeat(candidates.first + mine, bins)
    symbols = np.tile(np.arange(bins), mine.size)
    # P(noise = k) is proportional to exp(-|k| rate); a bin is named by node and symbol, so each draw is its own.
    noise = laplace_noise(paths.rate(share), secret, "sequences/noise", names, symbols)
    noisy += noise.reshape(noisy.shape)
    # Below contexts everything is said, also what came out negative: `settling` knows the noise.
    if limits.contexts:
        return np.repeat(mine, bins), symbols, noisy.ravel()
    released = noisy >= paths.least(share)
    if limits.keep_all:
        released |= ((candidates.heights[mine] <= 1) | (candidates.parents[mine] < 0))[:, None]
    row, symbol = np.nonzero(released)
    return mine[row], symbol, np.maximum(noisy[row, symbol], 0)


def _children_that_show(
    limits: "Limits", paths: PathBudget, candidates: Candidates, mine: Int64s, held: Found, secret: "Source"
) -> Found:
    """Draw the noise of the children that occur, and of the others only where it passes the threshold."""
    share = int(candidates.shares[mine[0]])
    rate, least = paths.rate(share), paths.least(share)
    rows, symbols, counts = held
    # int64 (children that occur). Those below draw for "sequences/zeros", so no bit serves twice.
    noisy = counts + laplace_noise(rate, secret, "sequences/noise", candidates.first + rows, symbols)
    shown = noisy >= least
    # int64 by node: children that occur, and how many others there are, all of count 0.
    supported = np.searchsorted(rows, mine, side="right") - np.searchsorted(rows, mine)
    zeros = _bins(limits, candidates, mine) - supported
    at, rank, value = exceeding_zeros(rate, least, zeros, secret, "sequences/zeros", candidates.first + mine)
    starts = np.concatenate([[0], np.cumsum(supported)])
    # Of a row's symbols s_0 < s_1 < ..., s_i has s_i - i symbols without support before it.
    before = symbols - (np.arange(symbols.size) - np.repeat(starts[:-1], supported))
    stride = limits.alphabet + 2
    # The zero of rank r stands behind all symbols with support that have at most r without before them.
    # One search serves all rows: keys are row * stride + number, and no number reaches the stride.
    place = np.searchsorted(np.repeat(np.arange(mine.size), supported) * stride + before, at * stride + rank, "right")
    # Rank plus the symbols with support before it is the symbol itself.
    unsupported = rank + place - starts[at]
    return (
        np.concatenate([rows[shown], mine[at]]),
        np.concatenate([symbols[shown], unsupported]),
        np.concatenate([noisy[shown], value]),
    )


def _bins(limits: "Limits", candidates: Candidates, mine: Int64s) -> int:
    """Return how many children a node has: all symbols, and the end mark except at the root of a tree of grams.

    Counting the end mark there would let one user change max_length + 1 counts. Below contexts it is counted, for a
    sequence has no more than max_length steps: `open_steps` leaves out the end mark behind max_length symbols.
    """
    if limits.contexts:
        return limits.alphabet + 1
    at_root = candidates.parents[mine[0]] < 0
    return limits.alphabet + (0 if at_root else 1)
