"""Released statistics of whole sequences, and drawn sequences that agree with them. All public.

Two statistics of users are released before the tree: the number of sequences in classes of length, and the numbers of
distinct and of repeated symbols, added up. A symbol is repeated if the symbol before it is the same. A chain of
contexts draws neither right: users with long sequences end less often than contexts imply, and use fewer symbols. So
drawn sequences end with odds that depend on their length too, and a symbol may be a copy of one that followed the same
context earlier in the sequence (a Pólya urn), which does not change the expected shares after a context. If only single
symbols are counted, no context tells how often a symbol is repeated; then it may be a copy of the latest symbol too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import exp, inf, log
from typing import Any

import numpy as np

from voxpop.kernels.arrays import Floats, Int32s, Int64s, Uint64s
from voxpop.kernels.sequences import count_variety, draw_contexts, fit_ends
from voxpop.mechanisms.sequences.constants import (
    BISECTIONS,
    CLASS_GROWTH,
    FIRST_SYMBOLS,
    FITTED,
    LEAST_NOVELTY,
    MOST_REPEATS,
    MOST_STEPS,
    NEVER,
    ROUNDS_OF_COPIES,
    UNSURE_OF_REPEATED,
    UNSURE_OF_STEPS,
    USUAL_DISTINCT,
)
from voxpop.mechanisms.sequences.context_tree import EDGES, LEAST, ContextTree, Smoothed, estimated, laplace, uniforms
from voxpop.privacy.secret import Secret, Source


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """The released statistics of users.

    Attributes:
        lengths: int64 by class of `length_classes`, the noisy number of sequences.
        variety: int64 (2), the noisy numbers of distinct and of repeated symbols of all sequences.
        scales: of the noise on each length, and on each of these numbers.
    """

    lengths: Int64s
    variety: Int64s
    scales: tuple[float, float]

    def steps(self, max_length: int) -> float:
        """Return the number of steps that the lengths imply, at least 1."""
        first = length_classes(max_length)
        # A sequence that is not cut has its end as a further step.
        means = np.append((first[:-1] + first[1:] + 1) / 2, max_length)
        return max(float(self.lengths @ means), 1.0)


def profile_record(profile: Profile) -> dict[str, Any]:
    """Return a profile for JSON."""
    return {"lengths": profile.lengths.tolist(), "variety": profile.variety.tolist(), "scales": list(profile.scales)}


def profile_of(record: dict[str, Any], max_length: int) -> Profile:
    """Return the profile of a record.

    Raises:
        ValueError: where numbers are missing or no noise has their scale.
    """
    lengths, variety = (np.array([int(each) for each in record[name]], np.int64) for name in ("lengths", "variety"))
    first, second = map(float, record["scales"])
    sizes = length_classes(max_length).size, 2
    if (lengths.size, variety.size) != sizes or not (0 < first < inf and 0 < second < inf):
        raise ValueError("not the profile of users")
    return Profile(lengths, variety, (first, second))


def length_classes(max_length: int) -> Int64s:
    """Return the shortest length of each class; sequences of `max_length` are the last class."""
    first = [1]
    while first[-1] < max_length:
        first.append(min(max(first[-1] + 1, int(first[-1] * CLASS_GROWTH)), max_length))
    return np.array(first)


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """Numbers that make drawn sequences agree with a profile.

    Attributes:
        ends: float64 by length below the maximum, the factor of the odds of an end.
        novelty: weight of the chances of a context against one earlier symbol of the sequence.
        repeats: probability of a copy of the latest symbol.
        sequences: estimated number of sequences.
    """

    ends: Floats
    novelty: float
    repeats: float
    sequences: float


def fitted(tree: ContextTree, profile: Profile, smoothed: Smoothed, sums: Floats, bootstrap: Source | None) -> Fitted:
    """Fit ends and novelty by simulation.

    Args:
        tree: public.
        profile: public.
        smoothed: the chances of the tree.
        sums: float64 (nodes, width), their running sums.
        bootstrap: as in `smooth`.

    Returns:
        The numbers that draws use.
    """
    most, width = tree.max_length, tree.width
    size = max(min(FITTED if bootstrap is None else FITTED // 8, MOST_STEPS // most), 100)
    numbers = np.arange(size, dtype=np.uint64)
    seeds = Secret.from_seed(0).draws("sequences/fitting", numbers, 0)[:, 0]
    given = width, sums.ravel(), (tree.child, tree.others)
    ends = np.append(0.0, np.ones(most - 1))
    # (most + 1): the shares of lengths that the contexts imply, and by class.
    shares = fit_ends(seeds.copy(), *given, (NEVER, 0.0), np.full(most, -1.0), ends)
    first = length_classes(most)
    model = np.maximum(np.add.reduceat(shares, first), LEAST)
    drawn = None if bootstrap is None else uniforms(bootstrap, "settling/lengths", first.size)
    scales = np.full(first.size, profile.scales[0])
    number = max(float(profile.lengths.sum()), 1.0)
    for _ in range(2):
        found = estimated(profile.lengths.astype(np.float64), number * model / model.sum(), scales, drawn, EDGES, 1)
        goal = np.append(0.0, shares[1:] * np.repeat(found / model, np.diff(np.append(first, most + 1))))
        goal /= goal.sum()
        number = _number_of_sequences(tree, profile, smoothed, float(goal @ np.append(np.arange(most) + 1, most)))
    # By length: the share that ends of those who get there.
    wanted = goal[:-1] / np.maximum(np.cumsum(goal[::-1])[:0:-1], LEAST)
    wanted[0] = -1.0
    fit_ends(seeds.copy(), *given, (NEVER, 0.0), wanted, ends)
    variety = partial(_mean_variety, seeds, given, ends)
    moved = np.zeros(2) if bootstrap is None else profile.scales[1] * laplace(bootstrap, "settling/variety", 2)
    steps = float(goal @ np.minimum(np.arange(most + 1), FIRST_SYMBOLS)) - 1.0
    aims = _aims((profile.variety + moved) / number, profile.scales[1] / number, variety(NEVER, 0.0), steps)
    novelty, repeats, alone = NEVER, 0.0, tree.nodes == 1
    # In turn, as each depends on the other. Longer contexts determine how often a symbol is repeated.
    for _ in range(ROUNDS_OF_COPIES if alone else 1):
        if alone:
            repeats = _crossing(partial(_repeated, variety, novelty), float(aims[1]), (0.0, MOST_REPEATS))
        between = log(LEAST_NOVELTY), log(NEVER)
        novelty = exp(_crossing(partial(_distinct, variety, repeats), float(aims[0]), between))
    fit_ends(seeds.copy(), *given, (novelty, repeats), wanted, ends)
    return Fitted(ends, novelty, repeats, number)


def _aims(released: Floats, scale: float, plain: Floats, steps: float) -> Floats:
    """Return the numbers that drawn sequences shall have: the released and the usual ones, weighted by precision.

    Args:
        released: float64 (2), distinct and repeated symbols of a sequence.
        scale: of the noise on each.
        plain: those of a chain of contexts.
        steps: symbols after the first that are counted.
    """
    share, spread = USUAL_DISTINCT
    usual, doubt = plain * [share, 1.0], np.array([spread * plain[0], UNSURE_OF_REPEATED * steps])
    noise = 2.0 * scale**2
    found: Floats = (released * doubt**2 + usual * noise) / (doubt**2 + noise)
    return found


def _crossing(mean: Callable[[float], float], aim: float, between: tuple[float, float]) -> float:
    """Return where a rising mean reaches the aim, by bisection; the low or the high end if it does not."""
    low, high = between
    if mean(low) >= aim:
        return low
    if mean(high) <= aim:
        return high
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if mean(middle) < aim else (low, middle)
    return (low + high) / 2


def _repeated(variety: Callable[[float, float], Floats], novelty: float, repeats: float) -> float:
    return float(variety(novelty, repeats)[1])


def _distinct(variety: Callable[[float, float], Floats], repeats: float, logarithm: float) -> float:
    """Return the mean number of distinct symbols at the novelty of a natural logarithm."""
    return float(variety(exp(logarithm), repeats)[0])


def _mean_variety(
    seeds: Uint64s, given: tuple[int, Floats, tuple[Int32s, Int32s]], ends: Floats, novelty: float, repeats: float
) -> Floats:
    """Return the mean numbers of distinct and of repeated symbols of drawn sequences."""
    symbols, sizes = np.empty(seeds.size * ends.size, np.int32), np.empty(seeds.size, np.int64)
    size = draw_contexts(seeds.copy(), *given, (novelty, repeats), ends, symbols, sizes)
    stops = np.cumsum(sizes)
    found: Floats = count_variety(symbols[:size], stops - sizes, stops, given[0], FIRST_SYMBOLS) / seeds.size
    return found


def _number_of_sequences(tree: ContextTree, profile: Profile, smoothed: Smoothed, steps: float) -> float:
    """Return the number of sequences: three estimates, averaged by precision.

    They are the lengths, added up; all steps, divided by those of a sequence; and the symbols after beginnings, if
    these have a node.
    """
    by_steps = float(smoothed.totals[0]) / steps
    # By node, the variance of the sum of `width` counts with Laplace noise, each of 2 b^2.
    noise = 2.0 * tree.width * tree.scales**2
    leaves = np.setdiff1d(np.arange(tree.nodes), tree.parents)
    estimates = [
        (float(profile.lengths.sum()), 2.0 * profile.lengths.size * profile.scales[0] ** 2),
        # All steps are in the root's counts, and once in the leaves; and the steps of a sequence have an error.
        (by_steps, min(noise[0], noise[leaves].sum()) / steps**2 + (UNSURE_OF_STEPS * by_steps) ** 2),
    ]
    node = int(tree.child[tree.width - 1])
    if node >= 0:
        estimates.append((float(tree.counts[node].sum()), float(noise[node])))
    # The mean weighted by precision: sum of x / v over sum of 1 / v.
    found, doubts = np.array(estimates).T
    return float(max((found / doubts).sum() / (1.0 / doubts).sum(), 1.0))
