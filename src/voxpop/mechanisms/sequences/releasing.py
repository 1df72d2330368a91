"""The release of a public tree from noisy counts of contexts.

Level by level, the gate returns noisy counts of the symbols after each context. A context that is likely to be split
keeps most of its epsilon for longer contexts. Every other context spends the remaining budget of its path. The sets of
split contexts and of longer contexts with nodes are computed from counts that were released earlier.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from voxpop.errors import InternalError
from voxpop.kernels.arrays import Bools, Floats, Int32s, Int64s
from voxpop.mechanisms.sequences import constants as tuned
from voxpop.mechanisms.sequences.context_tree import OTHERS, ROOT, ContextTree, Smoothed, gram_totals, smooth
from voxpop.mechanisms.sequences.profile import StepProfile, length_classes, steps_of, symbols_counted
from voxpop.privacy.path_budget import Limits, PathBudget
from voxpop.privacy.planned import GateCall, run_passes

if TYPE_CHECKING:
    from voxpop.privacy.gate.trees import PathsGate


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """The contexts of one length that will be counted.

    Attributes:
        parents: int32, the parents in the tree.
        before: int32, the symbol before the context of the parent, or `OTHERS`.
        parts: The part of the remaining epsilon on its path that each context spends.
        splits: bool by context, whether longer contexts are likely to be counted.
    """

    parents: Int32s
    before: Int32s
    parts: tuple[Fraction, ...]
    splits: Bools


@dataclass(frozen=True, slots=True, eq=False)
class _Grown:
    """The public state after the release of the statistics of users.

    Attributes:
        profile: The noisy statistics of users.
        ease: The factor that `_ease` returns.
        tree: The counted contexts.
        level: The contexts to count next.
        depth: The number of counted levels.
    """

    profile: StepProfile
    ease: float
    tree: ContextTree
    level: _Level
    depth: int = 0


def split_contexts(gate: "PathsGate") -> tuple[ContextTree, StepProfile]:
    """Count the symbols after contexts, and continue with longer contexts, level by level.

    Args:
        gate: The opened gate of the release.

    Returns:
        The tree and the profile of users. Both are public, and together they are (epsilon, 0)-differentially private.
    """
    done = run_passes(None, partial(_next_level, gate), gate, "lengths")
    if done is None:
        raise InternalError("the passes ended before the tree")
    return done.tree, done.profile


def _next_level(gate: "PathsGate", state: _Grown | None) -> "GateCall[PathsGate, _Grown | None] | None":
    """Return the next pass, which releases the statistics of users or the counts of the next level of contexts."""
    if state is None:
        return GateCall(_statistics, lambda released: released, counted=False)
    level, tree = state.level, state.tree
    if state.depth == gate.paths.limits.max_gram or not level.parents.size:
        return None

    def after(released: tuple[Int64s, Floats]) -> _Grown:
        grown = tree.with_level(level.parents, level.before, released[1], released[0])
        split = tree.nodes + np.flatnonzero(level.splits)
        longer = _open_longer(gate.paths, grown, gate.numbers, split, state.depth, state.ease)
        return replace(state, tree=grown, level=longer, depth=state.depth + 1)

    return GateCall(lambda gate: gate.level(level.parents, level.before, level.parts), after)


def _statistics(gate: "PathsGate") -> _Grown:
    """Return the noisy statistics of users, and a tree without contexts, with the root as the next level."""
    limits = gate.paths.limits
    lengths, scale = gate.lengths(length_classes(limits.max_length), part_of_lengths(limits.epsilon))
    # After the release of the lengths, the gate counts fewer steps if sequences are short.
    counting, steps, users = gate.paths.limits, steps_of(lengths, gate.longest, gate.steps), int(lengths.sum())
    part = _part_of_root(counting, steps)
    bins = 2 if part == 1 else 1
    counted = symbols_counted(gate.longest, bins)
    variety, its = gate.variety(counted, bins, part_of_variety(limits.epsilon, users))
    profile = StepProfile(lengths, variety, (float(scale[0]), float(its[0])))
    root = _Level(np.array([-1], np.int32), np.array([ROOT], np.int32), (part,), np.array([part < 1]))
    none, width = np.empty(0, np.int32), limits.alphabet + 1
    # Depending on the released lengths, the gate counts only the first steps of longer sequences.
    first = gate.steps if gate.steps < gate.longest else None
    counts = np.empty((0, width), np.int64)
    tree = ContextTree(width, gate.longest, none, none, np.empty(0), counts, first, users)
    return _Grown(profile, _ease(counting, steps), tree, root)


def part_of_lengths(epsilon: Fraction) -> Fraction:
    """Return the part of epsilon that the lengths of sequences spend, from public numbers."""
    return min(tuned.MOST_FOR_LENGTHS, Fraction(ceil(1000 * tuned.FOR_LENGTHS / sqrt(epsilon)), 1000))


def part_of_variety(epsilon: Fraction, sequences: int) -> Fraction:
    """Return the part of the remaining epsilon that the numbers of symbols spend, from a noisy number of sequences."""
    return Fraction(min(max(ceil(tuned.FOR_VARIETY / (epsilon * max(sequences, 1))), 1), 6), 40)


def part_after_statistics(epsilon: Fraction, sequences: int) -> Fraction:
    """Return the part of epsilon that remains after the statistics of users, from a noisy number of sequences."""
    return (1 - part_of_lengths(epsilon)) * (1 - part_of_variety(epsilon, sequences))


def _part_of_root(limits: Limits, steps: float) -> Fraction:
    """Return the part of the remaining epsilon that the root spends. The part is 1 if the root is not split."""
    if _noise_of_pairs(limits, steps) > tuned.TOO_NOISY or limits.max_gram == 1:
        return Fraction(1)
    noise = _noise(limits, steps)
    return max(
        tuned.EPSILON_PARTS[0], min(Fraction(round(1000 * tuned.ROOT_PER_NOISE * noise), 1000), tuned.MOST_FOR_ROOT)
    )


def _noise(limits: Limits, steps: float) -> float:
    """Return the noise scale that spends all of epsilon, as a fraction of the mean count of a symbol."""
    return limits.max_length / float(limits.epsilon) * (limits.alphabet + 1) / steps


def _noise_of_pairs(limits: Limits, steps: float) -> float:
    """Return the noise scale that spends all of epsilon, as a fraction of the mean count of a pair of symbols."""
    return _noise(limits, steps) * min(limits.alphabet + 1, tuned.MOST_SYMBOLS)


def _ease(limits: Limits, steps: float) -> float:
    """Return a factor for the number of occurrences that a context needs for a node.

    The factor is below 1 if the noise is large.
    """
    return min(1.0, max(tuned.LEAST_EASE, tuned.EASY / _noise_of_pairs(limits, steps)))


def _open_longer(
    paths: PathBudget, tree: ContextTree, numbers: Int64s, split: Int64s, depth: int, ease: float
) -> _Level:
    """Return the longer contexts to be counted, computed only from released counts."""
    limits = paths.limits
    smoothed = smooth(tree)
    totals = _longer_totals(tree, smoothed, tree.contexts[split], tree.begun[split])
    # float64 (contexts), the remaining part of epsilon of each path, which determines the noise of longer contexts.
    left = np.array([float(paths.left(number)) for number in numbers[split].tolist()])
    least = ease * least_total(limits, left, depth)
    # Compute the row of the context that each longer context extends, and the symbol before this context.
    row, symbol = np.nonzero(totals > least[:, None])
    parents = split[row]
    after = np.array([paths.left(number) for number in numbers[parents].tolist()], object)
    part = tuned.EPSILON_PARTS[min(depth + 1, len(tuned.EPSILON_PARTS) - 1)]
    splits = np.zeros(row.size, np.bool_)
    if depth + 2 < limits.max_gram and row.size:
        begun = symbol == tree.width - 1
        longer = np.column_stack([symbol, tree.contexts[parents]]).astype(np.int32)
        further = _longer_totals(tree, smoothed, longer, begun)
        rest = np.array([float(each * (1 - part)) for each in after.tolist()])
        # A context keeps epsilon for longer contexts only if at least one longer context is expected to get a node.
        splits = ~begun & (further > ease * least_total(limits, rest, depth + 1)[:, None]).any(axis=1)
    parts = [part if more else Fraction(1) for more in splits.tolist()]
    # All other preceding symbols are counted together, so that every step keeps a node. If each preceding symbol has a
    # node, no steps are left for "others".
    whole = np.bincount(row, minlength=split.size) == tree.width
    rest = split[~whole]
    return _Level(
        np.concatenate([parents, rest]).astype(np.int32),
        np.concatenate([symbol, np.full(rest.size, OTHERS)]).astype(np.int32),
        (*parts, *[Fraction(1)] * rest.size),
        np.concatenate([splits, np.zeros(rest.size, np.bool_)]),
    )


def least_total(limits: Limits, left: Any, depth: int) -> Any:
    """Return the number of occurrences that contexts of length `depth + 1` need for a node.

    Args:
        limits: The public limits.
        left: float64, the remaining part of epsilon of each context's path.
        depth: The length of the shorter contexts.
    """
    width = limits.alphabet + 1
    bins = min(width, sqrt(tuned.LARGE_COUNT * width))
    # The number is GROWTH^(length - 1) times the number of bins times the noise scale, which is max_length / (remaining
    # epsilon).
    return tuned.GROWTH**depth * bins * limits.max_length / (float(limits.epsilon) * left)


def _longer_totals(tree: ContextTree, smoothed: Smoothed, contexts: Int32s, begun: Bools) -> Floats:
    """Return the occurrences of contexts after each symbol and (last) at the beginning: float64 (contexts, width)."""
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
    # No symbol precedes a beginning.
    totals[begun] = 0.0
    return totals
