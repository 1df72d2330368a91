"""Items that one user alone holds, when rounds add up what they saw: how likely one of them is ever released.

In round r an item of weight w shows z_r = mu_r w + N(0, 1). Its evidence is S_r = c_1 z_1 + ... + c_r z_r, in standard
deviations of its noise. It is released as soon as S_r reaches a threshold, and dropped where S_r stays below a floor.
What a user no longer needs for dropped items goes to the others, so the weight of a novel item grows as others are
dropped, and it is the lucky ones that remain. The bound below accounts for that; docs/privacy/focus.md has the proof.

Let the user hold t novel items, all in its bounded set, which never grows. Give every item its own noise, whatever
becomes of it. The others that are still there in round r include those whose noise alone stays above all floors:
M_r - 1 of them, independent of this item's noise. Novel items weigh the same, at most M_r^(-1/2). More weight never
makes a release less likely, so

    P(some novel item is released) <= t E[ P(released | weights M_1^(-1/2), M_2^(-1/2), ...) ]

and (S_r, M_r) is a Markov chain: M_(r+1) - 1 is binomial, of M_r - 1 trials. The expectation is computed backwards on
a grid. It grows with S and falls with M, so rounding S up and M down to the grid bounds it from above.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.special import bdtr, ndtr

Floats = NDArray[np.float64]

FINENESS = 1 / 150
"""Step of the grid of evidence, in standard deviations of the round that adds most noise; any step gives a bound."""
REACH = 5.0
"""Grids begin so many standard deviations below 0."""
SINGLE = 128  # up to here each number of novel items has a place of its own
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


@lru_cache(maxsize=16)
def novel_release(rounds: EvidenceRounds, limit: int, fineness: float = FINENESS) -> float:
    """Bound the probability that any item of one user alone is released.

    Args:
        rounds: The public numbers.
        limit: The most items of one user.
        fineness: Step of the grid, in standard deviations of the round that adds most noise.

    Returns:
        The bound, over every number of novel items up to `limit`.

    Example:
        >>> one = EvidenceRounds(mus=(0.5,), parts=(1.0,), thresholds=(5.0,), floors=())
        >>> exact = max(t * float(ndtr(0.5 / t**0.5 - 5)) for t in range(1, 101))
        >>> bool(1 <= novel_release(one, 100) / exact < 1.1)
        True
    """
    grid = _Grid(rounds, fineness)
    survival = _survival(rounds.parts, rounds.floors, rounds.margin)
    places = _places(limit)
    later = np.zeros((len(places), len(grid.points)))
    for number in reversed(range(len(rounds.mus))):
        if number < len(rounds.floors):
            later = _survivors(places, survival[number]) @ later
        shifts = rounds.parts[number] * rounds.mus[number] / np.sqrt(places)
        later = grid.before(number, later, grid.steps(shifts))
    most = np.append(places[1:] - 1, limit)
    return float(np.max(most * later[:, grid.origin])) * ROUNDING


@lru_cache(maxsize=16)
def _survival(parts: tuple[float, ...], floors: tuple[float, ...], margin: float) -> tuple[float, ...]:
    """Bound from below how likely noise alone passes the floor of each round, given that it passed those before."""
    top = max((0.0, *floors)) + REACH
    grid = _Grid(EvidenceRounds((), parts, (top,) * len(parts), floors, margin), FINENESS)
    counts = range(1, len(floors) + 1)
    before = [1.0 if count == 1 else grid.above_floors(count - 1, upper=True) for count in counts]
    return tuple(
        min(1.0, grid.above_floors(count, upper=False) / least) for count, least in zip(counts, before, strict=True)
    )


class _Grid:
    """Evidence on a grid, always rounded to the side that makes the bound larger."""

    def __init__(self, rounds: EvidenceRounds, fineness: float) -> None:
        self._rounds = rounds
        spreads = rounds.spreads
        self._step = fineness * max(rounds.parts)
        low = -REACH * float(spreads[-1])
        high = float(np.max(spreads * np.array(rounds.thresholds))) + self._step
        self.points = low + self._step * np.arange(ceil((high - low) / self._step) + 1)
        self.origin = ceil(-low / self._step)

    def steps(self, shifts: Floats) -> NDArray[np.int64]:
        """Return how many points weights move evidence, rounded up."""
        return np.asarray(np.ceil(shifts / self._step * ROUNDING), np.int64)

    def before(self, number: int, later: Floats, steps: NDArray[np.int64]) -> Floats:
        """Return, by evidence before a round, the expectation of what follows; 1 where nobody undecided can be.

        Args:
            number: of the round.
            later: by number of items and evidence after the round, the same.
            steps: by number of items, how far the weight of one moves it.
        """
        low, high = self._undecided(number)
        shown = self._shown(number, later, low, min(high + int(steps.max()), len(self.points)))
        moved = np.ones_like(later)
        for row, by in enumerate(steps):
            moved[row, low : high - max(0, high + by - len(self.points))] = shown[row, by : by + high - low]
        return moved

    def above_floors(self, count: int, *, upper: bool) -> float:
        """Bound how likely noise alone stays above the first floors."""
        shift = -self._rounds.margin if upper else self._rounds.margin
        origin = self.origin if upper else self.origin - 1
        values = np.ones(len(self.points))
        for number in reversed(range(count)):
            values = np.where(self.points >= self._floor(number, shift), values, 0.0)
            rises = np.diff(values, append=1.0) if upper else np.diff(values, prepend=0.0)
            low = int(np.searchsorted(self.points, self._floor(number - 1, shift))) if number else origin
            start = slice(low, len(self.points) if number else low + 1)
            never = values[0] if upper else 0.0
            values = np.zeros(len(self.points))
            values[start] = never + self._risen(number, rises, start)
        return float(values[origin])

    def _undecided(self, number: int) -> tuple[int, int]:
        """Return the range of points where an item may be before a round and not yet be decided."""
        if number == 0:
            return self.origin, self.origin + 1
        low = self._floor(number - 1, -self._rounds.margin)
        high = self._rounds.spreads[number - 1] * self._rounds.thresholds[number - 1]
        first, last = np.searchsorted(self.points, [low, max(low, high)])
        return max(0, int(first) - 1), min(int(last) + 1, len(self.points))

    def _shown(self, number: int, later: Floats, low: int, high: int) -> Floats:
        """Return, by evidence before the noise of a round and within a range, the expectation of what follows."""
        rounds, spread = self._rounds, self._rounds.spreads[number]
        kept = self.points >= self._floor(number, -rounds.margin)
        hit = self.points >= spread * (rounds.thresholds[number] - rounds.margin)
        values = np.where(hit, 1.0, np.where(kept, later, 0.0))
        # Evidence between two points counts as the upper one, so the rise to a point happens at the point before.
        rises = np.diff(values, axis=1, append=1.0)
        return np.minimum(values[:, :1] + self._risen(number, rises, slice(low, high)), 1.0)

    def _risen(self, number: int, rises: Floats, start: slice) -> Floats:
        """Return, by evidence before the noise of a round, the expectation of rises at evidence after it."""
        rises = np.maximum(rises, 0.0)
        rising = np.flatnonzero(rises.reshape(-1, len(self.points)).any(axis=0))
        reached = slice(int(rising[0]), int(rising[-1]) + 1)
        return np.asarray(rises[..., reached] @ self._tail(number, reached, start))

    def _floor(self, number: int, shift: float) -> float:
        floors = self._rounds.floors
        return float(self._rounds.spreads[number] * (floors[number] + shift)) if number < len(floors) else -np.inf

    def _tail(self, number: int, reached: slice, start: slice) -> Floats:
        """Return P(evidence of column + noise >= point of row), for ranges of both."""
        count = len(self.points)
        distances = self._step * np.arange(1 - count, count) / self._rounds.parts[number]
        windows = sliding_window_view(ndtr(distances), start.stop - start.start)
        return np.asarray(windows[count - 1 + start.start - np.arange(reached.start, reached.stop)])


def _places(limit: int) -> NDArray[np.int64]:
    """Return numbers of novel items from 1 to `limit`; those in between count as the next lower one."""
    steps = max(0, ceil(np.log(limit / SINGLE) / np.log(RATIO)))
    beyond = (SINGLE * RATIO ** np.arange(1, steps + 1)).astype(np.int64)
    return np.unique(np.concatenate([np.arange(1, min(limit, SINGLE) + 1), beyond[beyond <= limit]]))


def _survivors(places: NDArray[np.int64], survival: float) -> Floats:
    """Return how likely each number of items leads to which number of survivors, this item always among them."""
    others = (places - 1)[:, None]
    fewer = np.append(places[1:] - 2, places[-1])[None, :]
    below = np.where(fewer >= others, 1.0, bdtr(np.minimum(fewer, others).astype(np.float64), others, survival))
    return np.asarray(np.diff(below, axis=1, prepend=0.0))
