"""The double line for contexts: the only place where private counts of what follows them become a public tree.

Level by level, what follows each context gets noise. A context that is likely to be split keeps most of its epsilon
for the longer ones; one that is not spends all it has left. Both, and which longer contexts are counted for themselves
and which together, is decided from what was released before.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from voxpop.arrays import Bools, Floats, Int32s, Int64s
from voxpop.sequences.children import Candidates, released_children
from voxpop.sequences.context_tree import OTHERS, ROOT, ContextTree
from voxpop.sequences.exploring import ChildNoise, ReleaseRule, last_of
from voxpop.sequences.limits import Limits
from voxpop.sequences.path_budget import PathBudget
from voxpop.sequences.schedule import GROWTH, PARTS
from voxpop.sequences.settling import Settled, gram_totals, settle

if TYPE_CHECKING:
    from voxpop.corpus.engine import TreeWalk
    from voxpop.privacy.secret import Source


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """Contexts of one length, to be counted.

    Attributes:
        parents: int32, nodes of the tree.
        before: int32, the symbol before, or what else the node is.
        shares: int64, numbers of shares of paths.
        splits: whether longer contexts are likely to be counted.
    """

    parents: Int32s
    before: Int32s
    shares: Int64s
    splits: Bools


def split_contexts(
    limits: Limits, counting: "TreeWalk", secret: "Source", release: ReleaseRule = released_children
) -> ContextTree:
    """Count what follows contexts, add noise, release, and look one symbol further back, level by level.

    Args:
        limits: public numbers.
        counting: the private sequences.
        secret: source of the noise.
        release: what turns counts into released ones; only `voxpop.testing` gives another.

    Returns:
        The tree: public, (epsilon, 0)-differentially private.
    """
    return last_of(_growing(limits, counting, secret, release))


def _growing(limits: Limits, counting: "TreeWalk", secret: "Source", release: ReleaseRule) -> Iterator[ContextTree]:
    """Yield the tree as far as it is, level by level."""
    width = limits.alphabet + 1
    paths = PathBudget(limits.epsilon, limits.max_length, limits.alphabet)
    deeper = limits.max_gram > 1
    root = paths.open_first(PARTS[0] if deeper else Fraction(1))
    level = _Level(np.array([-1], np.int32), np.array([ROOT], np.int32), np.array([root]), np.array([deeper]))
    none = np.empty(0, np.int32)
    tree = ContextTree(width, limits.max_length, none, none, np.empty(0), np.empty((0, width), np.int64))
    numbers = np.empty(0, np.int64)
    counting.open_steps(limits.max_length)
    for depth in range(limits.max_gram):
        first = tree.nodes
        parents = level.parents.astype(np.int64)
        candidates = Candidates(parents, level.shares, np.ones(parents.size, np.int64), first)
        # The double line: counts of (node, symbol) go in, noisy counts of all bins come out.
        rows = counting.released_following(ChildNoise(limits, paths, candidates, secret, release))
        # (contexts, width): every bin is released, held by somebody or not.
        counts = np.zeros((parents.size, width), np.int64)
        counts[rows.rows, rows.symbols] = rows.counts
        tree = tree.with_level(level.parents, level.before, rows.scales, counts)
        # By node, the number of its share.
        numbers = np.concatenate([numbers, level.shares])
        opened = _open_longer(limits, paths, tree, numbers, first + np.flatnonzero(level.splits), depth)
        yield tree
        if not opened.parents.size:
            return
        counting.lengthen(depth, *_moves(opened, first, tree.nodes - first, width))
        level = opened


def _open_longer(
    limits: Limits, paths: PathBudget, tree: ContextTree, numbers: Int64s, split: Int64s, depth: int
) -> _Level:
    """Return the longer contexts to be counted, from public numbers alone."""
    # From noisy counts alone: what is split is public.
    settled = settle(tree)
    totals = _longer_totals(tree, settled, tree.contexts[split], tree.begun[split])
    # float64 (contexts): the part of epsilon that each path has left, which sets the noise one symbol longer.
    left = np.array([float(paths.left(number)) for number in numbers[split].tolist()])
    least = _least(limits, left, depth)
    # By longer context: the row of the context that it lengthens, and the symbol before it.
    row, symbol = np.nonzero(totals > least[:, None])
    parents = split[row]
    after = np.array([paths.left(number) for number in numbers[parents].tolist()], object)
    part = PARTS[min(depth + 1, len(PARTS) - 1)]
    splits = np.zeros(row.size, np.bool_)
    if depth + 2 < limits.max_gram and row.size:
        begun = symbol == tree.width - 1
        longer = np.column_stack([symbol, tree.contexts[parents]]).astype(np.int32)
        further = _longer_totals(tree, settled, longer, begun)
        rest = np.array([float(each * (1 - part)) for each in after.tolist()])
        # It keeps epsilon for longer ones only if at least one of them is expected to be counted for itself.
        splits = ~begun & (further > _least(limits, rest, depth + 1)[:, None]).any(axis=1)
    pairs = zip(numbers[parents].tolist(), splits.tolist(), strict=True)
    shares = [paths.spend(above, part if more else Fraction(1)) for above, more in pairs]
    # What is counted for no symbol of its own is counted together, so that every step keeps a node.
    # Where each symbol before has a node of its own nothing is left for "others".
    whole = np.bincount(row, minlength=split.size) == tree.width
    rest = split[~whole]
    shares += [paths.spend(above, Fraction(1)) for above in numbers[rest].tolist()]
    return _Level(
        np.concatenate([parents, rest]).astype(np.int32),
        np.concatenate([symbol, np.full(rest.size, OTHERS)]).astype(np.int32),
        np.array(shares, np.int64),
        np.concatenate([splits, np.zeros(rest.size, np.bool_)]),
    )


def _least(limits: Limits, left: Floats, depth: int) -> Floats:
    """Return how often contexts one longer than `depth` must occur to be counted for themselves."""
    width = limits.alphabet + 1
    # GROWTH^(length - 1) times `width` counts times the scale max_length / (epsilon left) of their noise.
    return GROWTH**depth * width * limits.max_length / (float(limits.epsilon) * left)


def _longer_totals(tree: ContextTree, settled: Settled, contexts: Int32s, begun: Bools) -> Floats:
    """Return how often each context occurs behind each symbol and (last) at the beginning: (contexts, width)."""
    width = tree.width
    sizes = (contexts >= 0).sum(axis=1)
    rows = np.repeat(contexts, width, axis=0)
    symbols = np.tile(np.arange(width, dtype=np.int32), contexts.shape[0])
    # The last "symbol" asks for the context at the beginning of a sequence, with nothing before it.
    starts = symbols == width - 1
    behind = np.column_stack([symbols, rows])
    plain = np.column_stack([rows, np.full(rows.shape[0], -1, np.int32)])
    longer = np.where(starts[:, None], plain, behind).astype(np.int32)
    lengths = np.repeat(sizes, width) + ~starts
    totals = gram_totals(tree, settled, longer, lengths, starts).reshape(-1, width)
    # Nothing stands before a beginning.
    totals[begun] = 0.0
    return totals


def _moves(opened: _Level, first: int, size: int, width: int) -> tuple[Int64s, Int32s, Int32s]:
    """Return where steps go, by nodes numbered from 0 within a level: keys, what they lead to, and others."""
    places = np.arange(opened.parents.size, dtype=np.int32)
    above = opened.parents.astype(np.int64) - first
    named = opened.before >= 0
    others = np.full(size, -1, np.int32)
    others[above[~named]] = places[~named]
    return above[named] * width + opened.before[named], places[named], others
