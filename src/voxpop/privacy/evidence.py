"""Items that one user alone holds, when rounds add up what they saw: how likely one of them is ever released.

In round r an item of weight w shows z_r = mu_r w + N(0, 1). Its evidence is S_r = c_1 z_1 + ... + c_r z_r. It is
released as soon as S_r reaches a threshold, and dropped where S_r stays below a floor. What a user no longer needs for
dropped items goes to the others, so the weight of a novel item grows as others are dropped, and it is the lucky ones
that remain. The bound below accounts for that; docs/privacy/adaptive.md has the proof.

Let t novel items be in the user's pool, which is drawn once. Give every item its own noise, whatever becomes of it.
The others that are still there in round r include those whose noise alone stays above all floors: M_r - 1 of them,
independent of this item's noise. In each round the user draws at most `limit` of the undecided items of its pool;
where j of them are novel, this one is among them with chance at most j / M_r, and they weigh the same, at most
j^(-1/2). How many j are may follow from everything but this item's noise, so take the worst. With G(w) the expectation
of what follows from weight w,

    V_r(S, M) = max over 1 <= j <= min(limit, M) of  (j / M) G(j^(-1/2)) + (1 - j / M) G(0)
    P(some novel item is released) <= max over t <= pool of  t V_1(0, t).

Who draws everything that is left has j = M. M_(r+1) - 1 is binomial, of M_r - 1 trials. V rises with S, falls with M.

V is computed backwards at the points of a grid, M rounded down. Between points it is below the straight line through
its values, but for h^2 / (8 c^2) of the value at the upper end, h the step: for G(S) = E f(S + c N) with f >= 0 has
G'' = E f(S + c N) (N^2 - 1) / c^2 >= -G / c^2. Lines are integrated exactly, and no two terms have different signs.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, pi, sqrt

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import bdtr, ndtr

from voxpop.arrays import Floats, Int64s
from voxpop.privacy.survival import passing

FINENESS = 1 / 40
"""Step of the grid of evidence, in standard deviations of the round that adds most noise; any step gives a bound."""
SINGLE, FEW = 128, 8  # up to here each number of novel items, and of drawn ones, has a place of its own
RATIO = 1.05  # beyond, places are that far apart
ROUNDING = 1 + 1e-9


@dataclass(frozen=True, slots=True)
class EvidenceRounds:
    """The public numbers of rounds that add up evidence.

    Args:
        mus: By round, how far a weight of 1 moves what the round shows, in standard deviations of its noise.
        parts: By round, its factor c_r, more than 0.
        thresholds: By round, the evidence at which an item is released, in standard deviations of the sum.
        floors: By round but the last, the evidence below which an item is dropped.
        margin: How far the evidence that is really compared may lie from the exact one, in standard deviations.
    """

    mus: tuple[float, ...]
    parts: tuple[float, ...]
    thresholds: tuple[float, ...]
    floors: tuple[float, ...]
    margin: float = 0.0

    @property
    def spreads(self) -> Floats:
        """Standard deviation of the sum c_1 N + ... + c_r N after each round."""
        return np.asarray(np.sqrt(np.cumsum(np.square(self.parts))), np.float64)


@lru_cache(maxsize=64)
def novel_release(rounds: EvidenceRounds, limit: int, pool: int | None = None, fineness: float = FINENESS) -> float:
    """Bound the probability that any item of one user alone is released.

    Args:
        rounds: The public numbers.
        limit: The most items of one user in a round.
        pool: The most items of one user in all rounds; None where it is the limit.
        fineness: Step of the grid, in standard deviations of the round that adds most noise.

    Returns:
        The bound, over every number of novel items up to the pool, and over how many of them are drawn in each round.

    Example:
        >>> one = EvidenceRounds(mus=(0.5,), parts=(1.0,), thresholds=(5.0,), floors=())
        >>> exact = max(t * float(ndtr(0.5 / t**0.5 - 5)) for t in range(1, 101))
        >>> bool(1 <= novel_release(one, 100) / exact < 1.01)
        True
    """
    pool = max(limit, pool or limit)
    places = _places(pool)
    grid, drawing = _Grid(rounds, fineness), _Drawing(places, limit, pool)
    chances = _passing(rounds.parts, rounds.floors, rounds.margin)
    # V_(r+1) by number of items M and evidence S: float64 (places, points). Nothing follows the last round.
    later = np.zeros((len(places), len(grid.points)))
    for number in reversed(range(len(rounds.mus))):
        if number < len(rounds.floors):
            # Expectation over who survives the floors: M_(r+1) - 1 ~ Bin(M_r - 1, P(survival)).
            later = _survivors(pool, chances[number]) @ later
        later = drawing.worst(grid.shown(number, later), *grid.moves(number, drawing.drawn))
    # t V_1(0, t), where a place stands for all t up to the next: the largest t with the smallest V's M.
    most = np.append(places[1:] - 1, pool)
    return min(1.0, float(np.max(most * later[:, grid.origin])) * ROUNDING)


def any_release(rounds: EvidenceRounds, pool: int) -> float:
    """Bound the same without regard to floors and draws: each item of the pool, with a weight of 1, in every round.

    It is far above the other bound, but enough where thresholds are high for other reasons, and takes no time.

    Args:
        rounds: The public numbers.
        pool: The most items of one user in all rounds.

    Returns:
        The bound.

    Example:
        >>> one = EvidenceRounds(mus=(0.5,), parts=(1.0,), thresholds=(12.0,), floors=())
        >>> novel_release(one, 100) < any_release(one, 100) < 1e-27
        True
    """
    weights = np.cumsum(np.multiply(rounds.parts, rounds.mus)) / rounds.spreads * ROUNDING
    chances = ndtr(weights + rounds.margin - np.array(rounds.thresholds))
    return min(1.0, pool * float(np.sum(chances)) * ROUNDING)


@lru_cache(maxsize=16)
def _passing(parts: tuple[float, ...], floors: tuple[float, ...], margin: float) -> tuple[float, ...]:
    return passing(parts, floors, margin)


class _Grid:
    """Evidence at even distances, 0 among them, from the lowest floor to above every threshold."""

    def __init__(self, rounds: EvidenceRounds, fineness: float) -> None:
        self._rounds = rounds
        self._step = fineness * max(rounds.parts)
        spreads = rounds.spreads
        lowest = float(np.min(spreads[: len(rounds.floors)] * (np.array(rounds.floors) - rounds.margin), initial=0.0))
        levels = np.append(
            spreads * np.array(rounds.thresholds), spreads[: len(rounds.floors)] * np.array(rounds.floors)
        )
        highest = float(np.max(levels, initial=0.0))
        self.origin = ceil(-lowest / self._step) + 1
        self.points = self._step * np.arange(-self.origin, ceil(highest / self._step) + 3)
        # One room for the largest array of every round: what is given back to the system must be got from it again,
        # page by page.
        self._room = np.empty((len(self.points), len(self.points)))

    def moves(self, number: int, drawn: Int64s) -> tuple[Int64s, Floats, float]:
        """Return by how many points the weight of one of `drawn` items moves evidence in a round, rounded down.

        And what part of a point more, and what lies at most above the line between two points.
        """
        part = self._rounds.parts[number]
        # c_r mu_r j^(-1/2), in steps of the grid: what the weight of one of j items adds to evidence.
        shifts = part * self._rounds.mus[number] / np.sqrt(drawn) / self._step * ROUNDING
        points = np.floor(shifts)
        return points.astype(np.int64), shifts - points, self._bulge(number)

    def shown(self, number: int, later: Floats) -> Floats:
        """Return, by evidence before the noise of a round, the expectation of what follows: G at each point.

        Args:
            number: of the round.
            later: by number of items and evidence after the round, the expectation of what follows if undecided.
        """
        rounds, spread = self._rounds, self._rounds.spreads[number]
        threshold = spread * (rounds.thresholds[number] - rounds.margin)
        released = self._reaches(number, threshold)
        floor = spread * (rounds.floors[number] - rounds.margin) if number < len(rounds.floors) else threshold
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
        """Return h^2 / (8 c^2): how far V may lie above a line between points, relative to its upper end."""
        return self._step**2 / (8 * self._rounds.parts[number] ** 2)

    def _reaches(self, number: int, level: float) -> Floats:
        """Return, by point, P(evidence + noise of a round >= level)."""
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
    """How many novel items are drawn, whatever number of them is worst."""

    def __init__(self, places: Int64s, limit: int, pool: int) -> None:
        self._places = places
        self._all = pool <= limit
        self.drawn = places if self._all else _places(limit, FEW)
        self._most = np.append(self.drawn[1:] - 1, limit)

    def worst(self, shown: Floats, points: Int64s, parts: Floats, bulge: float) -> Floats:
        """Return V at every point, by number of items: evidence moved by an even share of those drawn."""
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
    """Return how likely each number of items leads to which number of survivors, this item always among them."""
    places = _places(pool)
    # M_(r+1) - 1 ~ Bin(M_r - 1, survival), rounded down to a place: differences of the distribution at the places.
    others = (places - 1)[:, None]
    fewer = np.append(places[1:] - 2, places[-1])[None, :]
    below = np.where(fewer >= others, 1.0, bdtr(np.minimum(fewer, others).astype(np.float64), others, survival))
    return np.asarray(np.diff(below, axis=1, prepend=0.0))
