"""The decisions of adaptive rounds, and the probability that they release an item that only one user has.

A round adds a noisy weight to the cumulative score of an item. The proof is in docs/privacy/adaptive.md.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from math import ceil, pi, sqrt
from operator import ge

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import ndtr

from voxpop.errors import InternalError
from voxpop.kernels.arrays import DROPPED, ONE_CAP, RELEASED, UNDECIDED, Bytes, Floats, Int64s, Uint64s
from voxpop.kernels.proved import proved
from voxpop.privacy.opening import Opening
from voxpop.privacy.parameters import KnownLevels
from voxpop.privacy.sampling import noisy_cells
from voxpop.privacy.secret import Source

# The code below bounds the probability of ever releasing an item that only one user has, if rounds add up their noisy
# weights.
#
# In round r, the noisy weight of an item with weight w is z_r = mu_r w + N(0, 1). The cumulative score of the item is
# Z_r = c_1 z_1 + ... + c_r z_r. The item is released as soon as Z_r reaches a threshold, and dropped when Z_r is below
# a drop threshold. Caps bound the weight as a function of the number n of items in the user's pool that are not
# released. As long as none of t novel items is released, n >= t. If a user draws items, each item is drawn with
# probability at most q(n). Let a_r(n) be the cap, and let G(w) be the expectation of V_(r+1) if the item gets weight w
# in round r. Then each of t novel items is released with probability at most V_1(0), where
#
#     V_r(Z) = q(t) G(a_r(t)) + (1 - q(t)) G(0),
#
# so P(some novel item is released) <= max over t <= pool of t V_1(0). The proof is in docs/privacy/adaptive.md.
#
# V is computed from the last round to the first at the points of a grid, for all levels of the caps together. Between
# points, V exceeds the straight line through its values by at most h^2 / (8 c^2) of the value at the upper end, for a
# grid of step h. This follows because G(Z) = E f(Z + c N) with f >= 0 has G'' = E f(Z + c N) (N^2 - 1) / c^2 >= -G /
# c^2. Lines are integrated exactly, and all terms have the same sign, so nothing cancels.

FINENESS = 1 / 40
"""The step of the grid of scores, in standard deviations of the noisiest round. Any step gives a valid bound."""
UNIT_ROUNDING = 1 + 1e-9


@dataclass(frozen=True, slots=True)
class CumulativeScore:
    """The public numbers of rounds that add up a cumulative score.

    Args:
        mus: The amount by which a weight of 1 shifts the noisy weight of each round, in standard deviations of its
            noise.
        parts: The factor c_r of each round, above 0.
        thresholds: The score that is required for a release in each round, in standard deviations of the sum.
        drop_thresholds: The drop threshold of each round except the last. An item with a lower cumulative score is
            dropped.
        margin: The largest difference between the score that is compared and the exact score, in standard deviations.
    """

    mus: tuple[float, ...]
    parts: tuple[float, ...]
    thresholds: tuple[float, ...]
    drop_thresholds: tuple[float, ...]
    margin: float = 0.0

    @property
    @proved("adaptive.md#the-mechanism")
    def spreads(self) -> Floats:
        """The standard deviation of the sum c_1 N + ... + c_r N after each round.

        Proof: "both in standard deviations of the noise in Z_r"
        """
        return np.asarray(np.sqrt(np.cumsum(np.square(self.parts))), np.float64)


@dataclass(frozen=True, slots=True)
class Caps:
    """The largest weights that a user can give one item in a round, by the number of unreleased items in the pool.

    A level applies to users who have more items than the number of the previous level but at most the number of this
    level. No level allows more than the level before it.

    Attributes:
        items: The largest number of items at each level, in increasing order. The last number is the size of the pool.
        weights: The largest weight of an item by level and round, in multiples of 2^-30.
        chances: The largest probability that one item is drawn, by level; 1 if users give weight to all items of their
            pool.
    """

    items: tuple[int, ...]
    weights: tuple[tuple[int, ...], ...]
    chances: tuple[float, ...]

    @proved("adaptive.md#the-mechanism")
    def __post_init__(self) -> None:
        """Reject a level that allows more than the level before it, because the bound would not hold.

        Proof: "The caps a_r(n) <= 1 and q(n) <= 1 do not increase with n."
        """
        levels = list(zip(self.items, self.weights, self.chances, strict=True))
        for (few, large, likely), (many, small, unlikely) in pairwise(levels):
            if not (few < many and likely >= unlikely and all(map(ge, large, small))):
                raise InternalError("caps rise with the number of items")

    @proved("adaptive.md#novel-items")
    def level(self, items: Int64s) -> Int64s:
        """Return the level for each number of items.

        Proof: "All t between two levels have the caps of the upper level and are treated as the t of that level"
        """
        return np.searchsorted(np.array(self.items), items)


def whole_caps(rounds: int, pool: int) -> Caps:
    """Return caps that have no effect."""
    return Caps((pool,), ((ONE_CAP,) * rounds,), (1.0,))


@lru_cache(maxsize=64)
@proved("adaptive.md#novel-items")
def novel_release(rounds: CumulativeScore, caps: Caps, fineness: float = FINENESS) -> float:
    """Bound the probability of releasing any item that only one user has.

    Proof: "Hence d = max over t <= W of t V_1(0)."

    Args:
        rounds: The public numbers of the rounds.
        caps: The caps on the weights of one user.
        fineness: The step of the grid, in standard deviations of the noisiest round.

    Returns:
        The bound, which applies to any number of novel items up to the size of the pool.

    Example:
        >>> one = CumulativeScore(mus=(0.5,), parts=(1.0,), thresholds=(5.0,), drop_thresholds=())
        >>> exact = 100 * float(ndtr(0.5 - 5))
        >>> bool(1 <= novel_release(one, whole_caps(1, 100)) / exact < 1.01)
        True
    """
    # Within a level, t V_1(0) is largest for the largest t.
    each = lone_releases(rounds, np.array(caps.weights) / ONE_CAP, np.array(caps.chances), fineness)
    return min(1.0, float(np.max(np.array(caps.items) * each)) * UNIT_ROUNDING)


@proved("adaptive.md#novel-items")
def lone_releases(rounds: CumulativeScore, weights: Floats, chances: Floats, fineness: float = FINENESS) -> Floats:
    """Bound the probability that one item is ever released, for several distributions of its weight.

    Proof: "the probability that the item is among the first to be released is, by backward induction, at most V_1(0)"

    Args:
        rounds: The public numbers of the rounds.
        weights: The largest weight, by distribution and round.
        chances: For each distribution, the largest probability that the item gets weight in a round, given the past.
        fineness: The step of the grid, in standard deviations of the noisiest round.

    Returns:
        V_1(0) for each distribution.
    """
    grid = _Grid(rounds, fineness)
    # The draws that decide which users take part have 53 bits.
    likely = np.minimum(chances * UNIT_ROUNDING + 2.0**-52, 1.0)[:, None]
    # float64 (distributions, points), V_(r+1) by distribution and score Z. After the last round, V is 0.
    later = np.zeros((len(weights), len(grid.points)))
    for number in reversed(range(len(rounds.mus))):
        without = grid.shown(number, later)
        # This computes q G(a) + (1 - q) G(0).
        mixed = grid.moved(number, without, weights[:, number]) * likely + without * (1.0 - likely)
        later = np.minimum(mixed * UNIT_ROUNDING, 1.0)
    return later[:, grid.origin]


# The level of items on a public list is decided after the last round (docs/privacy/known.md).

LEVEL_FINENESS = 1 / 20
"""The step of the grid for levels. The bound is 5 percent larger than with `FINENESS` and takes a quarter of the time
per level.
"""


@proved("known.md#the-mechanism")
def at_level(rounds: CumulativeScore, known: KnownLevels, level: int) -> CumulativeScore:
    """Return the rounds with the drop thresholds of listed items and the thresholds of a level (counted from 0).

    Proof: "They have m levels l = 0, ..., m - 1, with thresholds t_r + l h in round r."
    """
    thresholds = tuple(lowest + level * known.step for lowest in known.lowest)
    return replace(rounds, thresholds=thresholds, drop_thresholds=known.drops)


@lru_cache(maxsize=1024)
@proved("known.md#spurious-items")
def released_by(rounds: CumulativeScore, weight: float = 0.0) -> float:
    """Bound the probability that a listed item is ever released if it has this weight in every round.

    Proof: "Each level has a tail p, which is at least the probability that noise alone reaches the level."
    """
    whole_rounds = np.full((1, len(rounds.mus)), weight)
    return min(1.0, float(lone_releases(rounds, whole_rounds, np.ones(1), LEVEL_FINENESS)[0]) * UNIT_ROUNDING)


@proved("known.md#spurious-items")
def proved_tails(rounds: CumulativeScore, known: KnownLevels | None) -> bool:
    """Return whether the levels are in order and the given tails are at least the bounds on the exact tails.

    Proof: "Each level has a tail p, which is at least the probability that noise alone reaches the level."
    """
    if known is None:
        return True
    sizes = len(known.lowest) == len(known.enough) == len(rounds.mus) == len(known.drops) + 1
    ordered = known.step > 0.0 and all(map(ge, known.tails, known.tails[1:])) and 1 <= len(known.tails) < UNDECIDED
    ranges = known.listed.size >= 1 and 0.0 < known.share < 1.0
    return (
        sizes
        and ordered
        and ranges
        and all(tail >= released_by(at_level(rounds, known, level)) for level, tail in enumerate(known.tails))
    )


@proved("adaptive.md#novel-items")
def any_release(rounds: CumulativeScore, pool: int) -> float:
    """Bound the probability of `novel_release` without using drop thresholds and caps.

    Proof: "It is W times the sum, over all rounds, of the probability that an item with weight 1 in every round reaches
    the threshold."

    The bound assumes that each item of the pool has a weight of 1 in every round. It is far above the bound of
    `novel_release`, but it takes hardly any time to compute, and it is sufficient if thresholds are high for other
    reasons.

    Args:
        rounds: The public numbers of the rounds.
        pool: The maximum number of items per user in all rounds.

    Returns:
        The bound.

    Example:
        >>> one = CumulativeScore(mus=(0.5,), parts=(1.0,), thresholds=(12.0,), drop_thresholds=())
        >>> bool(novel_release(one, whole_caps(1, 100)) / 1.05 <= any_release(one, 100) < 1e-27)
        True
    """
    weights = np.cumsum(np.multiply(rounds.parts, rounds.mus)) / rounds.spreads * UNIT_ROUNDING
    chances = ndtr(weights + rounds.margin - np.array(rounds.thresholds))
    return min(1.0, pool * float(np.sum(chances)) * UNIT_ROUNDING)


class _Grid:
    """Evenly spaced scores, including 0, that range from the lowest drop threshold to above every threshold."""

    def __init__(self, rounds: CumulativeScore, fineness: float) -> None:
        self._rounds = rounds
        self._step = fineness * max(rounds.parts)
        spreads = rounds.spreads
        lowest = float(
            np.min(
                spreads[: len(rounds.drop_thresholds)] * (np.array(rounds.drop_thresholds) - rounds.margin), initial=0.0
            )
        )
        levels = np.append(
            spreads * np.array(rounds.thresholds),
            spreads[: len(rounds.drop_thresholds)] * np.array(rounds.drop_thresholds),
        )
        highest = float(np.max(levels, initial=0.0))
        self.origin = ceil(-lowest / self._step) + 1
        self.points = self._step * np.arange(-self.origin, ceil(highest / self._step) + 3)
        # All rounds share one buffer for the largest array. Otherwise the memory would be returned to the system after
        # each round and requested again page by page.
        self._room = np.empty((len(self.points), len(self.points)))

    @proved("adaptive.md#novel-items")
    def moved(self, number: int, shown: Floats, weights: Floats) -> Floats:
        """Return, for each distribution, an upper bound on G at every point after the weight of a round is added.

        Proof: "because V and therefore G increase with score and weight"
        """
        # A weight adds c_r mu_r w, in steps of the grid, to the cumulative score.
        shifts = self._rounds.parts[number] * self._rounds.mus[number] * weights / self._step * UNIT_ROUNDING
        points = np.floor(shifts).astype(np.int64)
        padded = np.pad(shown, ((0, 0), (0, int(points.max()) + 2)), constant_values=1.0)
        rows, columns = np.arange(len(weights))[:, None], points[:, None] + np.arange(shown.shape[1])
        parts = (shifts - points)[:, None]
        near, far = padded[rows, columns], padded[rows, columns + 1]
        return np.asarray(near * (1 - parts) + far * (parts + self._bulge(number)))

    @proved("adaptive.md#novel-items")
    def shown(self, number: int, later: Floats) -> Floats:
        """Return G at each point.

        Proof: "Let G_r(w) be the expectation of V_(r+1)(Z + c_r (mu_r w + N)), where N is standard normal, mu_r is at
        least S_r / sigma_r, and V is 1 from the threshold on and 0 below the drop threshold."

        Here, G is a function of the cumulative score before a round's noise is added.

        Args:
            number: The index of the round, starting at 0.
            later: The value V_(r+1) of an undecided item, by distribution and cumulative score after the round.
        """
        rounds, spread = self._rounds, self._rounds.spreads[number]
        threshold = spread * (rounds.thresholds[number] - rounds.margin)
        released = self._reaches(number, threshold)
        floor = (
            spread * (rounds.drop_thresholds[number] - rounds.margin)
            if number < len(rounds.drop_thresholds)
            else threshold
        )
        if floor >= threshold:
            return np.broadcast_to(released, later.shape)
        values = np.minimum(
            later + self._bulge(number + 1) * np.append(later[:, 1:], np.ones((len(later), 1)), axis=1), 1.0
        )
        first = int(np.searchsorted(self.points, floor))
        last = max(first - 1, int(np.searchsorted(self.points, threshold, side="right")) - 1)
        # Between the drop threshold and the first point, and between the last point and the threshold, V is bounded by
        # its value at the upper end. E V is a sum over cells. Each term is the rise of V over the cell times the mean
        # probability of reaching a level of the cell.
        rises = np.maximum(np.diff(values[:, first : last + 1], axis=1), 0.0)
        result = self._mixed(number, first, rises[0]) if len(rises) == 1 else rises @ self._risen(number, first, last)
        result += values[:, [first]] * self._reaches(number, floor)
        if last >= first:
            rest = np.maximum(values[:, [last + 1]] - values[:, [last]], 0.0)
            result += rest * self._reaches(number, self.points[last])
        result += (1.0 - values[:, [last + 1]]) * released
        return np.minimum(result * UNIT_ROUNDING, 1.0)

    @proved("adaptive.md#what-integers-and-doubles-change")
    def _bulge(self, number: int) -> float:
        """Return h^2 / (8 c^2), the largest excess of V over a line between points, relative to V at the upper point.

        Proof: "Between points, G exceeds the straight line by at most h^2 / (8 c^2) of its value at the upper end"
        """
        return self._step**2 / (8 * self._rounds.parts[number] ** 2)

    @proved("adaptive.md#novel-items")
    def _reaches(self, number: int, level: float) -> Floats:
        """Return P(score + noise of a round >= level) at each point.

        Proof: "The noise of the item is normal given the past and the weights of the round."
        """
        return np.asarray(ndtr((self.points - level) / self._rounds.parts[number]))

    @proved("adaptive.md#what-integers-and-doubles-change")
    def _mixed(self, number: int, first: int, rises: Floats) -> Floats:
        """Return the product of one distribution's rises and the matrix of `_risen` without constructing the matrix.

        Proof: "Straight lines are integrated in closed form, and sums have no negative terms."
        """
        count = len(self.points)
        if not rises.size:
            return np.zeros((1, count))
        # Row k of `_risen` begins at count - 1 - (first + k), so the product is a convolution.
        begin = count - first - rises.size
        return np.convolve(self._means(number)[begin : begin + count + rises.size - 1], rises, "valid")[None]

    @proved("adaptive.md#what-integers-and-doubles-change")
    def _risen(self, number: int, first: int, last: int) -> Floats:
        """Return the mean probability of reaching a level of a cell, by cell (from `first` to `last`) and by point.

        Proof: "Straight lines are integrated in closed form, and sums have no negative terms."
        """
        count, means = len(self.points), self._means(number)
        # If the drop threshold and the threshold lie between the same two points, there is no cell, and `last` is one
        # less than `first`.
        room = self._room[: max(0, last - first)]
        # Row k begins at count - 1 - (first + k).
        np.copyto(room, sliding_window_view(means, count)[count - last : count - first][::-1])
        return room

    @proved("adaptive.md#what-integers-and-doubles-change")
    def _means(self, number: int) -> Floats:
        """Return the mean probability of reaching a level d - 1 to d points below, for d from 1 - n to n (n points).

        Proof: "Straight lines are integrated in closed form, and sums have no negative terms."
        """
        count, part = len(self.points), self._rounds.parts[number]
        over = _hinge(np.asarray(self._step * np.arange(-count, count + 1) / part, np.float64))
        return np.asarray(np.diff(over) * part / self._step)


@proved("adaptive.md#what-integers-and-doubles-change")
def _hinge(values: Floats) -> Floats:
    """Return E max(0, v + N(0, 1)).

    Proof: "Straight lines are integrated in closed form, and sums have no negative terms."
    """
    return np.asarray(values * ndtr(values) + np.exp(-np.square(values) / 2) / sqrt(2 * pi))


STEPS = UNDECIDED - DROPPED
"""An undecided item in state s gets weight only up to (s - 1) / 254 of the round's cutoff."""


@dataclass(frozen=True, slots=True)
class ScoreStep(Opening):
    """The noise of one round, and the scores at which items are released or dropped.

    Attributes:
        sigma: The standard deviation of the noise, in units of weight.
        unit: The number of units of the grid in a weight of 1.
        cell: The number of units in a cell. Noisy weights are whole numbers of cells.
        part: The factor by which the noisy weight, in standard deviations of its noise, enters the score.
        threshold: The score at which an item is released.
        floor: The drop threshold; minus infinity in the last round.
        enough: The score above which an item can use no more weight in the next round.
        steps: The number of steps of the next round's cutoff that correspond to a score of 1.
        secret: The source of random bits.
        purpose: The purpose of the draws.
        known: The step for items of a public list, if there is one.
    """

    sigma: float
    unit: int
    cell: int
    part: float
    threshold: float
    floor: float
    enough: float
    steps: float
    secret: Source
    purpose: str
    known: "KnownStep | None" = None

    @proved("adaptive.md#the-mechanism")
    def __call__(self, weights: Int64s, names: Uint64s, score: Floats) -> tuple[Floats, Bytes]:
        """Return the new score and the state of each item.

        Proof: "Noise of standard deviation sigma_r is added to the weight of every undecided item that is in the pool
        of at least one user"

        Args:
            weights: int64 (items), the weights in units of the grid; 0 for undecided items that no user drew in this
                round.
            names: uint64 (items, 2), the numbers that identify the items in draws. They do not depend on the engine.
            score: float64 (items), the score before this round.
        """
        draws = self.secret.draws(self.purpose, names[:, 0], names[:, 1])
        # Shape (items,), z_r sigma_r in whole cells. Every undecided item gets noise, even if its weight is 0
        # (docs/privacy/adaptive.md, "Shared items").
        cells = noisy_cells(weights, self.sigma, self.unit, self.cell, draws)
        # Z_r = Z_(r-1) + c_r z_r, with z_r in units of sigma_r.
        score = score + self.part * (cells * (self.cell / (self.unit * self.sigma)))
        # Use at least one step, so that every cutoff is above 0.
        states = DROPPED + np.clip(np.ceil((self.enough - score) * self.steps), 1, STEPS)
        states[score < self.floor] = DROPPED
        states[score >= self.threshold] = RELEASED
        return score, states.astype(np.uint8)

    def restricted(self) -> "ScoreStep":
        """Return a copy that can be sent to workers and is restricted to its purpose."""
        known = None if self.known is None else self.known.restricted()
        return replace(self, secret=self.secret.restrict(self.purpose), known=known)


@dataclass(frozen=True, slots=True)
class KnownStep(Opening):
    """The noise of one round for the items of a public list, and the levels that the items can reach.

    Attributes:
        step: The noise and the scores of the round. Its threshold is the score of the highest level. Items at that
            level get no more weight.
        levels: float64 (levels), the score of each level, in increasing order.
    """

    step: ScoreStep
    levels: Floats

    @proved("known.md#the-mechanism")
    def __call__(self, weights: Int64s, names: Uint64s, score: Floats) -> tuple[Floats, Bytes, Bytes]:
        """Return the new score, the state and the level of each item; see `ScoreStep`.

        Proof: "The level of an item is the number of levels that its score has reached in any round."

        Dropped items and items at the highest level have the state of released items, so that caps do not count them.
        """
        score, states = self.step(weights, names, score)
        states[states == DROPPED] = RELEASED
        reached: Bytes = np.searchsorted(self.levels, score, side="right").astype(np.uint8)
        return score, states, reached

    def restricted(self) -> "KnownStep":
        """Return a copy that can be sent to workers and is restricted to its purpose."""
        return replace(self, step=self.step.restricted())
