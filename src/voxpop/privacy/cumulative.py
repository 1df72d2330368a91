"""Adaptive rounds: the probability that an item of only one user is ever released, and one round's decisions.

A round adds a noisy weight to the cumulative score of an item. docs/privacy/adaptive.md has the proof.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, pi, sqrt

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import bdtr, ndtr

from voxpop.kernels.arrays import Bools, Floats, Int64s, Uint64s
from voxpop.privacy.sampling import noisy_cells
from voxpop.privacy.secret import Source

# The probability that noise without weight keeps the cumulative score above all drop thresholds so far, bounded from
# both sides.
#
# The law of c_1 N + ... + c_r N, drop thresholds passed, is computed forwards on a fine grid: rounded up for an upper
# bound, down for a lower one. It is convolved by fast Fourier transforms, whose error is far below the allowance for
# it.

LAW_FINENESS = 2000
"""Points of the grid in the largest part; the chance to pass a drop threshold is at most one percent too low."""
REACH = 9.0
"""Standard deviations beyond which a step of noise is left out, and above which the sum is."""
LOST = 1e-12
"""More than one step loses beyond REACH (2.3e-19, and 1.2e-19 of the sum) and by transforms of 2^20 doubles (1e-15)."""


def passing(parts: tuple[float, ...], drop_thresholds: tuple[float, ...], margin: float) -> tuple[float, ...]:
    """Bound from below the probability that only noise passes each drop threshold, given that it passed those before.

    Args:
        parts: By round, its factor c_r, more than 0.
        drop_thresholds: By round but the last, in standard deviations of the sum.
        margin: The most by which the compared score may differ from the exact one, in standard deviations.

    Returns:
        By round but the last.

    Example:
        >>> one, two = passing((1.0, 1.0), (0.0,), 0.0) + passing((2.0, 1.0), (-1.0,), 0.0)
        >>> 0.499 < one <= 0.5, 0.840 < two <= 0.8414
        (True, True)
    """
    most = _above(parts, drop_thresholds, -margin, upper=True)
    least = _above(parts, drop_thresholds, margin, upper=False)
    return tuple(min(1.0, max(0.0, low) / before) for low, before in zip(least, [1.0, *most], strict=False))


def _above(parts: tuple[float, ...], drop_thresholds: tuple[float, ...], shift: float, *, upper: bool) -> list[float]:
    """Bound the probability that only noise passes the drop thresholds up to each, which are moved by `shift`."""
    step = max(parts) / LAW_FINENESS
    # (rounds,), standard deviation of c_1 N + ... + c_r N.
    spreads = np.sqrt(np.cumsum(np.square(parts)))
    law, first, chances = np.ones(1), 0, []
    for number, floor in enumerate(drop_thresholds):
        reach = ceil(REACH * parts[number] / step)
        # Chances of moves between k and k + 1 grid points: Phi((k + 1) h / c) - Phi(k h / c).
        edges = step * np.arange(-reach, reach + 2) / parts[number]
        moves = np.diff(ndtr(edges))
        # Transforms leave errors of either sign near 0; `LOST` pays for them.
        law = np.maximum(_convolved(law, moves), 0.0)
        # A move into (k - 1, k] counts as k above, one into [k, k + 1) as k below.
        first += -reach + (1 if upper else 0)
        # Rounded up in every round, the sum is that many points too high at most.
        law = law[: max(0, ceil(REACH * float(spreads[number]) / step) + number + 2 - first)]
        kept = step * (first + np.arange(law.size)) >= float(spreads[number]) * (floor + shift)
        place = int(np.argmax(kept)) if kept.any() else law.size
        # Given that it passed: the part below the drop threshold is removed, with its mass.
        law, first = law[place:], first + place
        error = LOST * (number + 1)
        chances.append(float(law.sum()) + (error if upper else -error))
        if not law.size:
            law = np.zeros(1)
    return chances


def _convolved(first: Floats, second: Floats) -> Floats:
    """Return the convolution of two laws."""
    size = first.size + second.size - 1
    # Padded to a power of two of at least `size`, so that nothing wraps around.
    length = 1 << (size - 1).bit_length()
    product = np.fft.rfft(first, length) * np.fft.rfft(second, length)
    return np.asarray(np.fft.irfft(product, length)[:size], np.float64)


# The probability that an item of only one user is ever released, when rounds add up their noisy weights.
#
# In round r an item of weight w shows z_r = mu_r w + N(0, 1). Its cumulative score is S_r = c_1 z_1 + ... + c_r z_r. It
# is released as soon as S_r reaches a threshold, and dropped when S_r stays below a drop threshold. A user gives the
# weight of dropped items to the others, so the weight of a novel item grows as others are dropped, and it is the lucky
# ones that remain. The bound below accounts for that; docs/privacy/adaptive.md has the proof.
#
# Let t novel items be in the user's pool, which is drawn once. Give every item separate noise, also after its decision.
# The undecided others in round r include those whose noise without weight stays above all drop thresholds: M_r - 1 of
# them, independent of this item's noise. In each round the user draws at most `limit` of the undecided items of its
# pool; where j of them are novel, this one is among them with chance at most j / M_r, and they weigh the same, at most
# j^(-1/2). The number j may depend on everything except this item's noise, so take the worst. With G(w) the expectation
# of the later value after weight w,
#
#     V_r(S, M) = max over 1 <= j <= min(limit, M) of  (j / M) G(j^(-1/2)) + (1 - j / M) G(0)
#     P(some novel item is released) <= max over t <= pool of  t V_1(0, t).
#
# Who draws everything that is left has j = M. M_(r+1) - 1 is binomial, of M_r - 1 trials. V rises with S, falls with M.
#
# V is computed backwards at the points of a grid, M rounded down. Between points it is below the straight line through
# its values, but for h^2 / (8 c^2) of the value at the upper end, h the step: for G(S) = E f(S + c N) with f >= 0 has
# G'' = E f(S + c N) (N^2 - 1) / c^2 >= -G / c^2. Lines are integrated exactly, and no two terms have different signs.

FINENESS = 1 / 40
"""Step of the grid of scores, in standard deviations of the round that adds most noise; any step gives a bound."""
SINGLE, FEW = 128, 8  # up to here each number of novel items, and of drawn ones, has a separate place
RATIO = 1.05  # beyond, places are that far apart
ROUNDING = 1 + 1e-9


@dataclass(frozen=True, slots=True)
class CumulativeScore:
    """The public numbers of rounds that add up score.

    Args:
        mus: By round, the shift of the noisy weight by a weight of 1, in standard deviations of the round's noise.
        parts: By round, its factor c_r, more than 0.
        thresholds: By round, the score at which an item is released, in standard deviations of the sum.
        drop_thresholds: By round but the last, the drop threshold: an item with a lower cumulative score is dropped.
        margin: The most by which the compared score may differ from the exact one, in standard deviations.
    """

    mus: tuple[float, ...]
    parts: tuple[float, ...]
    thresholds: tuple[float, ...]
    drop_thresholds: tuple[float, ...]
    margin: float = 0.0

    @property
    def spreads(self) -> Floats:
        """Standard deviation of the sum c_1 N + ... + c_r N after each round."""
        return np.asarray(np.sqrt(np.cumsum(np.square(self.parts))), np.float64)


@lru_cache(maxsize=64)
def novel_release(rounds: CumulativeScore, limit: int, pool: int | None = None, fineness: float = FINENESS) -> float:
    """Bound the probability that any item of only one user is released.

    Args:
        rounds: The public numbers.
        limit: The most items of one user in a round.
        pool: The most items of one user in all rounds; None where it is the limit.
        fineness: Step of the grid, in standard deviations of the round that adds most noise.

    Returns:
        The bound, over every number of novel items up to the pool, and over the numbers of them drawn in each round.

    Example:
        >>> one = CumulativeScore(mus=(0.5,), parts=(1.0,), thresholds=(5.0,), drop_thresholds=())
        >>> exact = max(t * float(ndtr(0.5 / t**0.5 - 5)) for t in range(1, 101))
        >>> bool(1 <= novel_release(one, 100) / exact < 1.01)
        True
    """
    pool = max(limit, pool or limit)
    places = _places(pool)
    grid, drawing = _Grid(rounds, fineness), _Drawing(places, limit, pool)
    chances = _passing(rounds.parts, rounds.drop_thresholds, rounds.margin)
    # V_(r+1) by number of items M and score S: float64 (places, points). Nothing follows the last round.
    later = np.zeros((len(places), len(grid.points)))
    for number in reversed(range(len(rounds.mus))):
        if number < len(rounds.drop_thresholds):
            # Expectation over who passes the drop thresholds: M_(r+1) - 1 ~ Bin(M_r - 1, P(survival)).
            later = _survivors(pool, chances[number]) @ later
        later = drawing.worst(grid.shown(number, later), *grid.moves(number, drawing.drawn))
    # t V_1(0, t), where a place stands for all t up to the next: the largest t with the smallest V's M.
    most = np.append(places[1:] - 1, pool)
    return min(1.0, float(np.max(most * later[:, grid.origin])) * ROUNDING)


def any_release(rounds: CumulativeScore, pool: int) -> float:
    """Bound the same without drop thresholds and draws: each item of the pool, with a weight of 1, in every round.

    It is far above the other bound, but enough where thresholds are high for other reasons, and takes no time.

    Args:
        rounds: The public numbers.
        pool: The most items of one user in all rounds.

    Returns:
        The bound.

    Example:
        >>> one = CumulativeScore(mus=(0.5,), parts=(1.0,), thresholds=(12.0,), drop_thresholds=())
        >>> novel_release(one, 100) < any_release(one, 100) < 1e-27
        True
    """
    weights = np.cumsum(np.multiply(rounds.parts, rounds.mus)) / rounds.spreads * ROUNDING
    chances = ndtr(weights + rounds.margin - np.array(rounds.thresholds))
    return min(1.0, pool * float(np.sum(chances)) * ROUNDING)


@lru_cache(maxsize=16)
def _passing(parts: tuple[float, ...], drop_thresholds: tuple[float, ...], margin: float) -> tuple[float, ...]:
    return passing(parts, drop_thresholds, margin)


class _Grid:
    """Scores at even distances, 0 among them, from the lowest floor to above every threshold."""

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
        # One buffer for the largest array of every round: memory returned to the system must be requested again,
        # page by page.
        self._room = np.empty((len(self.points), len(self.points)))

    def moves(self, number: int, drawn: Int64s) -> tuple[Int64s, Floats, float]:
        """Return the shift of the cumulative score by the weight of one of `drawn` items, in points, rounded down.

        The other values are the remaining part of a point, and the largest excess over the line between two points.
        """
        part = self._rounds.parts[number]
        # c_r mu_r j^(-1/2), in steps of the grid: the weight of one of j items adds this to the cumulative score.
        shifts = part * self._rounds.mus[number] / np.sqrt(drawn) / self._step * ROUNDING
        points = np.floor(shifts)
        return points.astype(np.int64), shifts - points, self._bulge(number)

    def shown(self, number: int, later: Floats) -> Floats:
        """Return, by cumulative score before the noise of a round, the expectation of the later value: G at each point.

        Args:
            number: of the round.
            later: by number of items and cumulative score after the round, the expectation if the item is undecided.
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
        # From the floor to the first point, and from the last one to the threshold, values count as their upper ends.
        # E V is the sum over cells of V's rise over the cell times the mean probability to reach its levels.
        rises = np.maximum(np.diff(values[:, first : last + 1], axis=1), 0.0)
        result = rises @ self._risen(number, first, last)
        result += values[:, [first]] * self._reaches(number, floor)
        if last >= first:
            rest = np.maximum(values[:, [last + 1]] - values[:, [last]], 0.0)
            result += rest * self._reaches(number, self.points[last])
        result += (1.0 - values[:, [last + 1]]) * released
        return np.minimum(result * ROUNDING, 1.0)

    def _bulge(self, number: int) -> float:
        """Return h^2 / (8 c^2): the largest excess of V over a line between points, relative to its upper end."""
        return self._step**2 / (8 * self._rounds.parts[number] ** 2)

    def _reaches(self, number: int, level: float) -> Floats:
        """Return, by point, P(score + noise of a round >= level)."""
        return np.asarray(ndtr((self.points - level) / self._rounds.parts[number]))

    def _risen(self, number: int, first: int, last: int) -> Floats:
        """Return, by cell from `first` to `last` and point, the mean over the cell's levels of reaching them."""
        count, part = len(self.points), self._rounds.parts[number]
        over = _hinge(np.asarray(self._step * np.arange(-count, count + 1) / part, np.float64))
        means = np.diff(over) * part / self._step  # of levels from d - 1 to d points below, d = 1 - count, ..., count
        windows = sliding_window_view(means, count)
        # No cell where floor and threshold lie between the same two points: `last` is one less than `first` there.
        room = self._room[: max(0, last - first)]
        return np.take(windows, count - 1 - np.arange(first, last), axis=0, out=room, mode="clip")


class _Drawing:
    """The number of novel items drawn, with the worst case over all numbers."""

    def __init__(self, places: Int64s, limit: int, pool: int) -> None:
        self._places = places
        self._all = pool <= limit
        self.drawn = places if self._all else _places(limit, FEW)
        self._most = np.append(self.drawn[1:] - 1, limit)

    def worst(self, shown: Floats, points: Int64s, parts: Floats, bulge: float) -> Floats:
        """Return V at every point, by number of items: score moved by an even share of those drawn."""
        padded = np.pad(shown, ((0, 0), (0, int(points.max()) + 2)), constant_values=1.0)

        def moved(rows: slice, by: int, part: float) -> Floats:
            near = padded[rows, by : by + shown.shape[1]]
            far = padded[rows, by + 1 : by + 1 + shown.shape[1]]
            return np.asarray(near * (1 - part) + far * (part + bulge))

        if self._all:
            each = enumerate(zip(points, parts, strict=True))
            shares = [moved(slice(row, row + 1), int(by), float(more)) for row, (by, more) in each]
            return np.minimum(np.concatenate(shares) * ROUNDING, 1.0)
        worst = shown.copy()
        for fewest, many, by, more in zip(self.drawn, self._most, points, parts, strict=True):
            rows = slice(int(np.searchsorted(self._places, fewest)), None)
            chance = np.minimum(many / self._places[rows], 1.0)[:, None]
            # (j / M) G(j^(-1/2)) + (1 - j / M) G(0).
            mixed = shown[rows] * (1 - chance) + moved(rows, int(by), float(more)) * chance
            np.maximum(worst[rows], mixed, out=worst[rows])
        return np.minimum(worst * ROUNDING, 1.0)


def _hinge(values: Floats) -> Floats:
    """Return E max(0, v + N(0, 1))."""
    return np.asarray(values * ndtr(values) + np.exp(-np.square(values) / 2) / sqrt(2 * pi))


def _places(limit: int, single: int = SINGLE) -> Int64s:
    """Return numbers of novel items from 1 to `limit`; those in between count as the next lower one."""
    steps = max(0, ceil(np.log(limit / single) / np.log(RATIO)))
    beyond = (single * RATIO ** np.arange(1, steps + 1)).astype(np.int64)
    return np.unique(np.concatenate([np.arange(1, min(limit, single) + 1), beyond[beyond <= limit]]))


@lru_cache(maxsize=64)
def _survivors(pool: int, survival: float) -> Floats:
    """Return the probability of each number of survivors by number of items, this item always among them."""
    places = _places(pool)
    # M_(r+1) - 1 ~ Bin(M_r - 1, survival), rounded down to a place: differences of the distribution at the places.
    others = (places - 1)[:, None]
    fewer = np.append(places[1:] - 2, places[-1])[None, :]
    below = np.where(fewer >= others, 1.0, bdtr(np.minimum(fewer, others).astype(np.float64), others, survival))
    return np.asarray(np.diff(below, axis=1, prepend=0.0))


Outcome = tuple[Floats, Bools, Bools]


@dataclass(frozen=True, slots=True)
class ScoreStep:
    """One round's noise, and the levels at which score decides.

    Attributes:
        sigma: standard deviation of the noise, in weight.
        unit: units of the grid in a weight of 1.
        cell: units in a cell; noisy weights are whole cells.
        part: factor of the noisy weight, in standard deviations of its noise, in the score.
        threshold: score at which an item is released.
        floor: score below which an item is dropped; minus infinity in the last round.
        secret: source of the bits.
        purpose: of the draws.
    """

    sigma: float
    unit: int
    cell: int
    part: float
    threshold: float
    floor: float
    secret: Source
    purpose: str

    def __call__(self, weights: Int64s, names: Uint64s, score: Floats) -> Outcome:
        """Return the new score, which items are released, and which are dropped.

        Args:
            weights: int64 (items), in units; 0 for undecided items that no user drew this time.
            names: uint64 (items, 2), by which draws name an item, the same on every engine.
            score: float64 (items), before this round.
        """
        draws = self.secret.draws(self.purpose, names[:, 0], names[:, 1])
        # (items,), z_r sigma_r in whole cells: noise on everything undecided, also where the weight is 0
        # (docs/privacy/adaptive.md, "Shared items").
        cells = noisy_cells(weights, self.sigma, self.unit, self.cell, draws)
        # S_r = S_(r-1) + c_r z_r, with z_r in units of sigma_r.
        score = score + self.part * (cells * (self.cell / (self.unit * self.sigma)))
        return score, score >= self.threshold, score < self.floor

    def restricted(self) -> "ScoreStep":
        """Return a step that can be sent to workers and is restricted to this purpose."""
        return replace(self, secret=self.secret.restrict(self.purpose))
