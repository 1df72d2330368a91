"""The privacy boundary of sequences: the only code that turns private counts of contexts into a public tree.

Level by level, the counts of the symbols after each context get noise. A context that is likely to be split keeps most
of its epsilon for longer contexts; every other context spends the rest of its path's budget. The set of split contexts
and of longer contexts with nodes is computed from counts that were released before.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from voxpop.kernels.arrays import Bools, Floats, Int32s, Int64s
from voxpop.mechanisms.sequences import constants as tuned
from voxpop.mechanisms.sequences.context_tree import OTHERS, ROOT, ContextTree, Smoothed, gram_totals, smooth
from voxpop.mechanisms.sequences.path_budget import Limits, PathBudget
from voxpop.mechanisms.sequences.profile import Profile, length_classes, steps_of, symbols_counted
from voxpop.privacy.sampling import laplace_noise
from voxpop.reading.progress import track

if TYPE_CHECKING:
    from voxpop.engine.contract import TreeWalk
    from voxpop.privacy.secret import Source

PROFILE_NODES = 1 << 31
"""Noise of statistics of users has the names of nodes from here on, which no tree has."""
AT_ONCE = 1 << 21
"""Number of bins whose noise is drawn at once."""
NOISE_PURPOSES = ("sequences/noise", "sequences/noise/more 1", "sequences/noise/more 2")
"""Purposes of the noise; further bits beyond these are needed with a probability of 2^-256."""


@dataclass(frozen=True, slots=True, eq=False)
class ContextNoise:
    """The noise of the contexts of one level, ready to be sent to where the counts are.

    Attributes:
        paths: the shares of all contexts.
        shares: int64 by context, the number of its share among those of paths.
        first: the number of contexts of all levels above. Contexts are numbered across levels.
        secret: source of the noise.
    """

    paths: PathBudget
    shares: Int64s
    first: int
    secret: "Source"

    @property
    def width(self) -> int:
        """The number of counts of a node."""
        return self.paths.limits.alphabet + 1

    def __call__(self, keys: Int64s, counts: Int64s) -> Int64s:
        """Add noise to the counts of all bins.

        Every bin is released, whether any user holds it or not. The end mark has a bin too: a sequence has at most
        `max_length` steps, because the end behind `max_length` symbols is not counted.

        Args:
            keys: context * width + symbol of the bins that occur, distinct: private.
            counts: number of occurrences of each: private.

        Returns:
            int64 (contexts, width), noisy counts, also below 0: public.
        """
        width = self.width
        noisy = np.zeros((self.shares.size, width), np.int64)
        noisy.ravel()[keys] = counts
        # Contexts of one share have the same noise scale, so their noise is drawn together.
        for share in np.unique(self.shares).tolist():
            mine = np.flatnonzero(self.shares == share)
            step = max(1, AT_ONCE // width)
            for some in (mine[start : start + step] for start in range(0, mine.size, step)):
                # P(noise = k) is proportional to exp(-|k| rate). Context and symbol name a draw: no draw serves twice.
                names, symbols = np.repeat(self.first + some, width), np.tile(np.arange(width), some.size)
                noise = laplace_noise(self.paths.rate(share), self.secret, NOISE_PURPOSES[0], names, symbols)
                noisy[some] += noise.reshape(-1, width)
        return noisy

    def of_nodes(self, first: int, shares: Int64s) -> "ContextNoise":
        """Return the noise of some of the contexts, from number `first` on, which are numbered from 0 then."""
        return replace(self, shares=shares, first=self.first + first)

    def restricted(self) -> "ContextNoise":
        """Return the noise without its contexts and with a secret for this purpose only."""
        return replace(self, shares=np.empty(0, np.int64), secret=self.secret.restrict(*NOISE_PURPOSES))


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """Contexts of one length, to be counted.

    Attributes:
        parents: int32, nodes of the tree.
        before: int32, the symbol before, or `OTHERS`.
        shares: int64, numbers of shares of paths.
        splits: whether longer contexts are likely to be counted.
    """

    parents: Int32s
    before: Int32s
    shares: Int64s
    splits: Bools


def split_contexts(limits: Limits, counting: "TreeWalk", secret: "Source") -> tuple[ContextTree, Profile]:
    """Count the symbols after contexts, add noise, release, and continue with longer contexts, level by level.

    Args:
        limits: public numbers.
        counting: the private sequences.
        secret: source of the noise.

    Returns:
        The tree and the profile of users: public, together (epsilon, 0)-differentially private.
    """
    levels = track(_levels(limits, counting, secret), "releasing", lambda _: 1, None, "lengths", exact=True)
    return deque(levels, maxlen=1).pop()


def _levels(limits: Limits, counting: "TreeWalk", secret: "Source") -> Iterator[tuple[ContextTree, Profile]]:
    """Yield the tree after each level, and the profile."""
    width = limits.alphabet + 1
    paths = PathBudget(limits)
    profile, spent, part = _released_profile(paths, counting, secret)
    root = paths.spend(spent, part)
    level = _Level(np.array([-1], np.int32), np.array([ROOT], np.int32), np.array([root]), np.array([part < 1]))
    none = np.empty(0, np.int32)
    tree = ContextTree(width, limits.max_length, none, none, np.empty(0), np.empty((0, width), np.int64))
    # By node, the number of its share.
    numbers = np.empty(0, np.int64)
    for depth in range(limits.max_gram):
        first = tree.nodes
        # The privacy boundary: counts of (context, symbol) go in, noisy counts of all bins are returned.
        counts = counting.released("following", ContextNoise(paths, level.shares, first, secret))
        scales = np.array([paths.scale(share) for share in level.shares.tolist()])
        tree = tree.with_level(level.parents, level.before, scales, counts)
        numbers = np.concatenate([numbers, level.shares])
        opened = _open_longer(paths, tree, numbers, first + np.flatnonzero(level.splits), depth)
        yield tree, profile
        if not opened.parents.size:
            return
        counting.lengthen(depth, *_moves(opened, first, tree.nodes - first, width))
        level = opened


def _released_profile(paths: PathBudget, counting: "TreeWalk", secret: "Source") -> tuple[Profile, int, Fraction]:
    """Return the noisy statistics of users, the number of the share that all paths have spent, and the root's part."""
    limits = paths.limits
    first = length_classes(limits.max_length)
    # A user is in one class of length.
    mine, share = paths.of_users(first.size, 1), paths.spend(0, part_of_lengths(limits.epsilon))
    noise = ContextNoise(mine, np.array([share]), PROFILE_NODES, secret)
    lengths, scale = counting.released("lengths", noise, first)[0], mine.scale(share)
    part = _part_of_root(limits, steps_of(lengths, limits.max_length))
    # With two numbers, each symbol of a user that counts is distinct from all before it, or equals the one before it,
    # or neither. With one, a user has at most as many distinct symbols as there are.
    bins = 2 if part == 1 else 1
    counted = symbols_counted(limits.max_length, bins)
    mine = paths.of_users(bins, counted if bins == 2 else min(limits.alphabet, counted))
    share = paths.spend(share, part_of_variety(limits.epsilon, int(lengths.sum())))
    noise = ContextNoise(mine, np.array([share]), PROFILE_NODES + 1, secret)
    variety = counting.released("variety", noise, np.array([counted, bins]))[0]
    return Profile(lengths, variety, (scale, mine.scale(share))), share, part


def part_of_lengths(epsilon: Fraction) -> Fraction:
    """Return the part of epsilon that the lengths of sequences spend, from public numbers."""
    return min(tuned.MOST_FOR_LENGTHS, Fraction(ceil(1000 * tuned.FOR_LENGTHS / sqrt(epsilon)), 1000))


def part_of_variety(epsilon: Fraction, sequences: int) -> Fraction:
    """Return the part of the rest that distinct and repeated symbols spend, from a noisy number of sequences."""
    return Fraction(min(max(ceil(tuned.FOR_VARIETY / (epsilon * max(sequences, 1))), 1), 6), 40)


def part_after_statistics(epsilon: Fraction, sequences: int) -> Fraction:
    """Return the part of epsilon that the statistics of users leave, from a noisy number of sequences."""
    return (1 - part_of_lengths(epsilon)) * (1 - part_of_variety(epsilon, sequences))


def _part_of_root(limits: Limits, steps: float) -> Fraction:
    """Return the part of the rest of epsilon that the root spends, from a noisy number of steps; 1 if not split."""
    # The noise of all of epsilon as a part of the mean count of a symbol.
    noise = limits.max_length / float(limits.epsilon) * (limits.alphabet + 1) / steps
    if noise > tuned.TOO_NOISY or limits.max_gram == 1:
        return Fraction(1)
    return max(tuned.PARTS[0], min(Fraction(round(1000 * tuned.ROOT_PER_NOISE * noise), 1000), tuned.MOST_FOR_ROOT))


def _open_longer(paths: PathBudget, tree: ContextTree, numbers: Int64s, split: Int64s, depth: int) -> _Level:
    """Return the longer contexts to be counted, computed only from released counts."""
    limits = paths.limits
    smoothed = smooth(tree)
    totals = _longer_totals(tree, smoothed, tree.contexts[split], tree.begun[split])
    # float64 (contexts): the part of epsilon that each path has left, which sets the noise one symbol longer.
    left = np.array([float(paths.left(number)) for number in numbers[split].tolist()])
    least = least_total(limits, left, depth)
    # By longer context: the row of the context that it lengthens, and the symbol before it.
    row, symbol = np.nonzero(totals > least[:, None])
    parents = split[row]
    after = np.array([paths.left(number) for number in numbers[parents].tolist()], object)
    part = tuned.PARTS[min(depth + 1, len(tuned.PARTS) - 1)]
    splits = np.zeros(row.size, np.bool_)
    if depth + 2 < limits.max_gram and row.size:
        begun = symbol == tree.width - 1
        longer = np.column_stack([symbol, tree.contexts[parents]]).astype(np.int32)
        further = _longer_totals(tree, smoothed, longer, begun)
        rest = np.array([float(each * (1 - part)) for each in after.tolist()])
        # A context keeps epsilon for longer ones only if at least one of them is expected to get a node.
        splits = ~begun & (further > least_total(limits, rest, depth + 1)[:, None]).any(axis=1)
    pairs = zip(numbers[parents].tolist(), splits.tolist(), strict=True)
    shares = [paths.spend(above, part if more else Fraction(1)) for above, more in pairs]
    # All other symbols before are counted together, so that every step keeps a node. If each symbol before has a
    # node, nothing is left for "others".
    whole = np.bincount(row, minlength=split.size) == tree.width
    rest = split[~whole]
    shares += [paths.spend(above, Fraction(1)) for above in numbers[rest].tolist()]
    return _Level(
        np.concatenate([parents, rest]).astype(np.int32),
        np.concatenate([symbol, np.full(rest.size, OTHERS)]).astype(np.int32),
        np.array(shares, np.int64),
        np.concatenate([splits, np.zeros(rest.size, np.bool_)]),
    )


def least_total(limits: Limits, left: Any, depth: int) -> Any:
    """Return the number of occurrences from which contexts one longer than `depth` get nodes.

    Args:
        limits: public numbers.
        left: float64 by context, the part of epsilon that its path has left.
        depth: length of the shorter contexts.
    """
    width = limits.alphabet + 1
    bins = min(width, sqrt(tuned.LARGE * width))
    # GROWTH^(length - 1) times the number of bins times the scale max_length / (epsilon left) of their noise.
    return tuned.GROWTH**depth * bins * limits.max_length / (float(limits.epsilon) * left)


def _longer_totals(tree: ContextTree, smoothed: Smoothed, contexts: Int32s, begun: Bools) -> Floats:
    """Return the occurrences of each context after each symbol and (last) at the beginning: (contexts, width)."""
    width = tree.width
    sizes = (contexts >= 0).sum(axis=1)
    rows = np.repeat(contexts, width, axis=0)
    symbols = np.tile(np.arange(width, dtype=np.int32), contexts.shape[0])
    # The last "symbol" is the beginning of a sequence.
    starts = symbols == width - 1
    behind = np.column_stack([symbols, rows])
    plain = np.column_stack([rows, np.full(rows.shape[0], -1, np.int32)])
    longer = np.where(starts[:, None], plain, behind).astype(np.int32)
    lengths = np.repeat(sizes, width) + ~starts
    totals = gram_totals(tree, smoothed, longer, lengths, starts).reshape(-1, width)
    # Nothing precedes a beginning.
    totals[begun] = 0.0
    return totals


def _moves(opened: _Level, first: int, size: int, width: int) -> tuple[Int64s, Int32s, Int32s]:
    """Return the moves of steps, by nodes numbered from 0 within a level: keys, new nodes, and others."""
    places = np.arange(opened.parents.size, dtype=np.int32)
    above = opened.parents.astype(np.int64) - first
    named = opened.before >= 0
    others = np.full(size, -1, np.int32)
    others[above[~named]] = places[~named]
    return above[named] * width + opened.before[named], places[named], others
