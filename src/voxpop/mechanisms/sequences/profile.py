"""Released statistics of whole sequences, and drawn sequences that agree with them. All of them are public.

Two statistics of users are released before the tree: the number of sequences in each length class, and the total number
of distinct symbols over all sequences. A chain of contexts reproduces neither of them, because users with long
sequences end less often, and repeat symbols more often, than contexts imply. Therefore the odds of the end of a drawn
sequence also depend on its length, and a symbol can be a copy of a symbol that followed the same context earlier in the
sequence (a Pólya urn). Copies do not change the expected shares after a context.

If only single symbols are counted, no context determines how often a symbol follows itself. In this case, the number of
such repeated symbols is also released, and a symbol is a copy of the latest symbol with a probability that is fitted to
this number.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any

import numpy as np
from scipy.special import expit, gammaincinv  # importing scipy.stats takes a tenth of the smallest memory limit

from voxpop.kernels.arrays import Floats, Int32s, Int64s, Uint64s
from voxpop.kernels.sequences import count_variety, draw_contexts, fit_ends
from voxpop.mechanisms.sequences import constants as tuned
from voxpop.mechanisms.sequences.context_tree import (
    BIN_EDGES,
    LEAST_MASS,
    ContextTree,
    Smoothed,
    estimated,
    laplace,
    uniforms,
)
from voxpop.privacy.path_budget import doubled_steps
from voxpop.privacy.secret import Secret, Source


@dataclass(frozen=True, slots=True, eq=False)
class StepProfile:
    """The released statistics of users.

    Attributes:
        lengths: int64, the noisy number of sequences in each class of `length_classes`.
        variety: int64, the noisy number of distinct symbols. If only single symbols are counted, it contains the noisy
            numbers of distinct and of repeated symbols among the first `FIRST_SYMBOLS` symbols of each sequence.
        scales: The noise scale of the numbers in `lengths`, and the noise scale of the numbers in `variety`.
    """

    lengths: Int64s
    variety: Int64s
    scales: tuple[float, float]


def symbols_counted(max_length: int, numbers: int) -> int:
    """Return the number of symbols, from the start of each sequence, that the numbers of a profile cover."""
    return max_length if numbers == 1 else min(max_length, tuned.FIRST_SYMBOLS)


def steps_of(lengths: Int64s, max_length: int, steps: int) -> float:
    """Return the total number of counted steps that noisy lengths imply, which is at least 1.

    Args:
        lengths: int64, the noisy number of sequences in each class.
        max_length: The maximum number of symbols of a sequence.
        steps: The maximum number of counted steps per sequence.
    """
    return max(doubled_steps(length_classes(max_length), lengths, max_length, steps) / 2, 1.0)


def profile_record(profile: StepProfile) -> dict[str, Any]:
    """Return a profile as a dictionary, ready for JSON."""
    return {"lengths": profile.lengths.tolist(), "variety": profile.variety.tolist(), "scales": list(profile.scales)}


def step_profile_of(record: dict[str, Any], max_length: int) -> StepProfile:
    """Return the profile from a record.

    Raises:
        ValueError: Numbers are missing, or a noise scale is impossible.
    """
    lengths, variety = (np.array([int(each) for each in record[name]], np.int64) for name in ("lengths", "variety"))
    first, second = map(float, record["scales"])
    whole = lengths.size == length_classes(max_length).size and variety.size in (1, 2)
    if not whole or not (0 < first < inf and 0 < second < inf):
        raise ValueError("not the profile of users")
    return StepProfile(lengths, variety, (first, second))


def length_classes(max_length: int) -> Int64s:
    """Return the shortest length of each class. Sequences of `max_length` symbols form the last class."""
    first = [1]
    while first[-1] < max_length:
        most = max_length if first[-1] >= tuned.USUAL_LENGTH else min(max_length, tuned.USUAL_LENGTH)
        first.append(min(max(first[-1] + 1, int(first[-1] * tuned.CLASS_GROWTH)), most))
    return np.array(first)


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """The numbers that make drawn sequences agree with a profile.

    Attributes:
        ends: float64, the factor that multiplies the odds of an end, for each length below the maximum.
        novelty: The weight of the probabilities of a context, relative to one earlier symbol of the sequence.
        repeats: The probability of a copy of the latest symbol.
        sequences: The estimated number of sequences.
        lengths: float64, the estimated share of sequences by length from 1 on, to which `ends` are fitted.
    """

    ends: Floats
    novelty: float
    repeats: float
    sequences: float
    lengths: Floats


def fitted(
    tree: ContextTree, profile: StepProfile, smoothed: Smoothed, sums: Floats, bootstrap: Source | None
) -> Fitted:
    """Fit the probabilities of ends and copies by simulation.

    Args:
        tree: The public tree.
        profile: The public profile.
        smoothed: The estimated probabilities of the tree.
        sums: float64 (nodes, width), the running sums of the probabilities.
        bootstrap: The source of a bootstrap, as in `smooth`.

    Returns:
        The fitted numbers, which determine how sequences are drawn.
    """
    most, width = tree.max_length, tree.width
    size = max(min(tuned.FITTED if bootstrap is None else tuned.FITTED // 8, tuned.MOST_STEPS // most), 100)
    numbers = np.arange(size, dtype=np.uint64)
    seeds = Secret.from_seed(0).draws("sequences/fitting", numbers, 0)[:, 0]
    given = width, sums.ravel(), (tree.child, tree.others)
    ends = np.append(0.0, np.ones(most - 1))
    # Shape (most + 1,), the shares of lengths that the contexts imply. `model` contains the shares by class.
    shares = fit_ends(seeds.copy(), *given, (tuned.NEVER, 0.0), np.full(most, -1.0), ends)
    first = length_classes(most)
    model = np.maximum(np.add.reduceat(shares, first), LEAST_MASS)
    drawn = None if bootstrap is None else uniforms(bootstrap, "settling/lengths", first.size)
    scales = np.full(first.size, profile.scales[0])
    number = max(float(profile.lengths.sum()), 1.0)
    for _ in range(2):
        found = estimated(
            profile.lengths.astype(np.float64), number * model / model.sum(), scales, drawn, BIN_EDGES, 0.0
        )
        goal = np.append(0.0, shares[1:] * np.repeat(found / model, np.diff(np.append(first, most + 1))))
        goal /= goal.sum()
        counted = np.minimum(np.append(np.arange(most) + 1, most), tree.counted)
        number = _number_of_sequences(tree, profile, smoothed, float(goal @ counted))
    if bootstrap is not None:
        goal = _drawn_within(goal, number, first, bootstrap)
    # For each length, compute the share of the sequences of at least this length that have exactly this length.
    wanted = goal[:-1] / np.maximum(np.cumsum(goal[::-1])[:0:-1], LEAST_MASS)
    wanted[0] = -1.0
    fit_ends(seeds.copy(), *given, (tuned.NEVER, 0.0), wanted, ends)
    size = profile.variety.size
    counted = symbols_counted(most, size)
    variety = partial(_mean_variety, seeds, given, ends, counted)
    moved = np.zeros(size) if bootstrap is None else profile.scales[1] * laplace(bootstrap, "settling/distinct", size)
    steps = float(goal @ np.minimum(np.arange(most + 1), counted)) - 1.0
    aims = _aims((profile.variety + moved) / number, profile.scales[1] / number, variety(tuned.NEVER, 0.0), steps)
    novelty, repeats = tuned.NEVER, 0.0
    # The two numbers are fitted in turn, because each depends on the other. If there are longer contexts, these
    # contexts determine the frequency of repetitions.
    for _ in range(tuned.ROUNDS_OF_COPIES if size == 2 else 1):
        if size == 2:
            repeats = _fitted_repeats(variety, novelty, float(aims[1]))
        novelty = _fitted_novelty(variety, repeats, float(aims[0]), tuned.LEAST_NOVELTY[size - 1])
    if (novelty, repeats) != (tuned.NEVER, 0.0):
        fit_ends(seeds.copy(), *given, (novelty, repeats), wanted, ends)
    return Fitted(ends, novelty, repeats, number, goal[1:])


def plain_lengths(profile: StepProfile, fit: Fitted) -> Floats:
    """Return unadjusted shares of lengths, with sums by class that equal the released sums.

    Within a class that has almost no fitted sequences, the shares are equal.
    """
    starts = length_classes(fit.lengths.size) - 1
    sizes = np.diff(np.append(starts, fit.lengths.size))
    rare = np.add.reduceat(fit.lengths, starts) < LEAST_MASS
    shape = np.where(np.repeat(rare, sizes), 1.0, fit.lengths)
    factor = np.maximum(profile.lengths, 0) / fit.sequences / np.add.reduceat(shape, starts)
    found: Floats = shape * np.repeat(factor, sizes)
    return found


def even_lengths(fit: Fitted) -> Floats:
    """Return the fitted shares of lengths after replacing each share with the mean of its class."""
    starts = length_classes(fit.lengths.size) - 1
    sizes = np.diff(np.append(starts, fit.lengths.size))
    return np.repeat(np.add.reduceat(fit.lengths, starts) / sizes, sizes)


def _drawn_within(goal: Floats, number: float, first: Int64s, bootstrap: Source) -> Floats:
    """Draw shares of lengths within the sums of classes, from a Dirichlet distribution with the expected means.

    Only the total of each class is released, and the true numbers of the lengths are scattered around any smooth curve.

    Args:
        goal: float64 (most + 1), the expected shares of lengths, with 0 for length 0.
        number: The number of sequences.
        first: int64, the shortest length of each class.
        bootstrap: The source of the draws.
    """
    shape, starts = np.maximum(number * goal[1:], LEAST_MASS), first - 1
    drawn = np.maximum(gammaincinv(shape, uniforms(bootstrap, "settling/within", shape.size)[:, 0]), LEAST_MASS)
    factor = np.add.reduceat(goal[1:], starts) / np.add.reduceat(drawn, starts)
    return np.append(0.0, drawn * np.repeat(factor, np.diff(np.append(starts, shape.size))))


def _aims(released: Floats, scale: float, plain: Floats, steps: float) -> Floats:
    """Return the targets for drawn sequences, which are averages of released and usual numbers weighted by precision.

    Args:
        released: float64 (1 or 2), the released numbers of distinct and repeated symbols per sequence.
        scale: The noise scale of each number.
        plain: float64 (2), the same numbers for a chain of contexts.
        steps: The number of counted symbols after the first.
    """
    share, spread = tuned.USUAL_DISTINCT
    usual, doubt = plain * [share, 1.0], np.array([spread * plain[0], tuned.UNSURE_OF_REPEATED * steps])
    noise, spreads = 2.0 * scale**2, doubt[: released.size] ** 2
    found: Floats = (released * spreads + usual[: released.size] * noise) / (spreads + noise)
    if released.size == 2:
        chance = _chance_of_difference(float(released[1] - usual[1]), noise, float(spreads[1]))
        found[1] = usual[1] + chance * (found[1] - usual[1])
    return found


def _chance_of_difference(difference: float, noise: float, spread: float) -> float:
    """Return the posterior probability that two numbers differ, if they are equal in half of the collections.

    Without this weight, noise would add repetitions on average, because more repetitions than usual can be fitted, but
    fewer cannot.

    Args:
        difference: The released number minus the usual number.
        noise: The variance of the noise on the released number.
        spread: The variance of the difference in collections with different numbers.
    """
    both = noise + spread
    # Compute the logarithm of the ratio of the normal densities with the variances `both` and `noise`.
    log_odds = 0.5 * (np.log(noise / both) + difference**2 * (1.0 / noise - 1.0 / both))
    return float(expit(log_odds))


def _fitted_repeats(variety: Callable[[float, float], Floats], novelty: float, aim: float) -> float:
    def repeated(repeats: float) -> float:
        return float(variety(novelty, repeats)[1])

    return 0.0 if repeated(0.0) >= aim else _crossing(repeated, aim, 0.0, tuned.MOST_REPEATS)


def _fitted_novelty(variety: Callable[[float, float], Floats], repeats: float, aim: float, least: float) -> float:
    def distinct(log_novelty: float) -> float:
        return float(variety(float(np.exp(log_novelty)), repeats)[0])

    if variety(tuned.NEVER, repeats)[0] <= aim:
        return tuned.NEVER
    return float(np.exp(_crossing(distinct, aim, float(np.log(least)), float(np.log(tuned.NEVER)))))


def _crossing(mean: Callable[[float], float], aim: float, low: float, high: float) -> float:
    """Return the value at which an increasing mean reaches its target, by bisection."""
    for _ in range(tuned.BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if mean(middle) < aim else (low, middle)
    return (low + high) / 2


def _mean_variety(
    seeds: Uint64s,
    given: tuple[int, Floats, tuple[Int32s, Int32s]],
    ends: Floats,
    counted: int,
    novelty: float,
    repeats: float,
) -> Floats:
    """Return the mean numbers of distinct and of repeated symbols per drawn sequence."""
    symbols, sizes = np.empty(seeds.size * ends.size, np.int32), np.empty(seeds.size, np.int64)
    size = draw_contexts(seeds.copy(), *given, (novelty, repeats), ends, symbols, sizes)
    stops = np.cumsum(sizes)
    found: Floats = count_variety(symbols[:size], stops - sizes, stops, given[0], counted) / seeds.size
    return found


def _number_of_sequences(tree: ContextTree, profile: StepProfile, smoothed: Smoothed, steps: float) -> float:
    """Return the number of sequences, which is an average of three estimates, weighted by precision.

    The estimates are the sum over length classes, the number of all steps divided by the mean number of steps per
    sequence, and the number of symbols after beginnings, if beginnings have a node.
    """
    by_steps = float(smoothed.totals[0]) / steps
    # For each node, compute the variance of the sum of `width` counts, each with Laplace noise of variance 2 b^2.
    noise = 2.0 * tree.width * tree.scales**2
    leaves = np.setdiff1d(np.arange(tree.nodes), tree.parents)
    estimates = [
        (float(profile.lengths.sum()), 2.0 * profile.lengths.size * profile.scales[0] ** 2),
        # All steps are in the counts of the root, and also once in the leaves. The number of steps per sequence also
        # has an error.
        (by_steps, min(noise[0], noise[leaves].sum()) / steps**2 + (tuned.UNSURE_OF_STEPS * by_steps) ** 2),
    ]
    node = int(tree.child[tree.width - 1])
    if node >= 0:
        estimates.append((float(tree.counts[node].sum()), float(noise[node])))
    # The mean weighted by precision is the sum of x / v divided by the sum of 1 / v.
    found, doubts = np.array(estimates).T
    return float(max((found / doubts).sum() / (1.0 / doubts).sum(), 1.0))
