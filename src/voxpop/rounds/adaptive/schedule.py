"""How adaptive rounds share a budget: public constants, chosen once, for every corpus, limit and budget."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from voxpop.arrays import Floats


@dataclass(frozen=True, slots=True)
class Schedule:
    """The shape of the rounds, before a budget gives it a size.

    Attributes:
        opening: share of the first round, which only releases, in mu.
        shares: shares of the later rounds, which add up evidence, in mu.
        parts: by later round, its factor in the evidence; only ratios matter.
        falls: by later round, how many standard deviations its threshold lies above the last one.
        floors: evidence below which items are dropped, after each later round but the last.
        alpha: weight stops rising so many standard deviations above the threshold.
        novelty: share of delta for items that one user alone holds.
        opening_novelty: share of that for the first round.
    """

    opening: float
    shares: tuple[float, ...]
    parts: tuple[float, ...]
    falls: tuple[float, ...]
    floors: tuple[float, ...]
    alpha: float
    novelty: float
    opening_novelty: float


@dataclass(frozen=True, slots=True)
class Course:
    """Seven steps of a course that any number of rounds can run: what was tuned.

    Attributes:
        shares: of the steps, in mu.
        power: a round's part in the evidence is its mu, times the share of its step to this power.
        fall: by how much the threshold falls over one step.
        floors: evidence below which items are dropped at the end of each step but the last.
    """

    shares: tuple[float, ...]
    power: float
    fall: float
    floors: tuple[float, ...]

    def schedule(self, rounds: int, opening: float, relief: float = 0.0) -> Schedule:
        """Return the schedule of so many rounds that run the course at even speed.

        Args:
            rounds: how many come after the opening.
            opening: share of the opening, in mu.
            relief: by how much the first floor lies lower; later ones ever less.
        """
        steps = len(self.shares)
        # Where rounds begin and end on the course, in steps.
        ends = np.linspace(0.0, steps, rounds + 1)
        # mu^2 adds up: shares are differences of its running sum, then roots.
        budget = np.interp(ends, np.arange(steps + 1), np.append(0.0, np.cumsum(np.square(self.shares))))
        shares = np.sqrt(np.diff(budget))
        # The course's share at the middle of each round.
        local = np.interp((ends[1:] + ends[:-1]) / 2, np.arange(steps) + 0.5, self.shares)
        floors = np.interp(ends[1:-1], np.arange(steps - 1) + 1.0, self.floors)
        # In full at the first floor, not at all at the last.
        floors -= relief * (1 - np.arange(rounds - 1) / (rounds - 1))
        return Schedule(
            opening=opening,
            shares=_numbers(shares),
            parts=_numbers(shares * local**self.power),
            falls=_numbers(self.fall * (steps - ends[1:])),
            floors=_numbers(floors),
            alpha=ALPHA,
            novelty=NOVELTY,
            opening_novelty=OPENING_NOVELTY,
        )


def _numbers(values: Floats) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


COURSE: Final = Course(
    shares=(1.8, 1.7, 1.8, 2.0, 2.3, 2.7, 3.2), power=0.8, fall=0.18, floors=(-1.7, -0.7, 0.4, 1.4, 2.3, 3.2)
)
"""Shares and floors were found by random search on reddit_posts and ubuntu_irc alike; what is best for one is within
one percent of the best for the other. A further search over nine of the numbers found 0.1 percent, which is noise. Of
19,179 and 1,626 words at (1, 1e-5) and 14 rounds: thresholds that fall by 0.1 a step 19,155 and 1,631, parts by the
share itself instead of its power 0.8 19,179 and 1,629 (docs/design/0010-adaptive.md, as all that follows)."""
ROUNDS: Final = 20
"""14 release half a percent fewer, 28 as many; each costs time. The figures below are of 14."""
OPENING: Final = 0.7
"""Share of the opening in mu, where the steps have 1.7 to 3.2: 0.5 released 19,139 and 1,615 words, 0.7 19,179 and
1,626, and 1.2 half a percent fewer. At 20 rounds 0.9 is half a percent more of the chat and nothing on posts."""
RELIEF: Final = 0.5
"""By how much the first floor lies lower at low limits, in standard deviations: where users draw one or two items a
round, evidence comes slowly. Two were better at two budgets and worse at the third."""
LOW_LIMIT: Final = 2
"""Up to this limit there is relief."""
ALPHA: Final = 4.0
"""How far above the threshold weight rises, in standard deviations of a round: 5 released 19,180 and 1,627 words, 4
19,179 and 1,626."""
NOVELTY: Final = 0.4
"""Share of delta for items that one user alone holds: 0.3 released 19,180 and 1,628 words, 0.4 19,179 and 1,626, 0.5
19,135 and 1,620."""
OPENING_NOVELTY: Final = 0.03
"""Share of that for the first round: 0.1 released 22 words of posts fewer at (1, 1e-5), 45 fewer at (3, e^-10)."""
USUAL_THRESHOLD: Final = 5.5
"""Standard deviations of the evidence at which items come out, about; more or less changes nothing but the release."""
USUAL_LIMIT: Final = 100
"""Items of a user in a round, and in the pool, where the caller names no limit: the best of reddit_posts at three
budgets; on ubuntu_irc 300 releases 2.4 percent more at epsilon 3, 4.7 at 1 and 7.0 at 0.5."""
LEAST_POOL: Final = 60
"""Smaller limits draw from a pool of this size: at limit 1 it released 29,972 words, a pool of 100 29,894, and at limit
10 37,893, 100 37,936."""


def schedule_for(limit: int) -> Schedule:
    """Return the schedule for a limit."""
    return COURSE.schedule(ROUNDS, OPENING, RELIEF if limit <= LOW_LIMIT else 0.0)
