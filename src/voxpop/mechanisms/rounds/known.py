"""Items of a public list, in rounds over such candidates only or in rounds that also contain unknown items.

The thresholds of listed candidates are lower, because these candidates are never novel.

Every candidate gets noise in every round until it is released or dropped permanently, whether it is in a pool or not
(docs/privacy/profile.md, "Joint values").
"""

from dataclasses import dataclass, replace
from math import hypot, inf, log, nextafter, sqrt
from typing import final

import numpy as np

from voxpop.mechanisms.rounds.adaptive import TOLERANCE, AdaptiveRound, AdaptiveRounds, planned_round, stated_rounds
from voxpop.mechanisms.rounds.capped import spare
from voxpop.mechanisms.rounds.plan import ALPHA, Schedule, pool_for, schedule_for
from voxpop.mechanisms.rounds.users_needed import MinUsersBound, raised
from voxpop.privacy.cumulative import Caps, CumulativeScore, at_level, novel_release, released_by, whole_caps
from voxpop.privacy.numerics import falling_to
from voxpop.privacy.parameters import KnownLevels, KnownList
from voxpop.privacy.passes import Rounds
from voxpop.privacy.weightings.builtin import PolicyGaussian
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting

CLOSEST = 1.0
"""The minimum distance of a drop threshold below the threshold of its round, in standard deviations."""


@final
@dataclass(frozen=True, slots=True)
class KnownRounds:
    """The numbers of rounds over known candidates.

    Attributes:
        limit: The maximum number of candidates per user in a round.
        pool: The maximum number of candidates per user over all rounds.
        rounds: The rounds.
        score: The cumulative score of the rounds, with the thresholds at which candidates are released or dropped.
    """

    limit: int
    pool: int
    rounds: tuple[AdaptiveRound, ...]
    score: CumulativeScore

    def stated(self) -> Rounds:
        """Return the numbers that the gate needs."""
        stated = stated_rounds(self.pool, None, self.rounds, self.score)
        # Round up, so that mu is at least the exact ratio of sensitivity to sigma.
        return replace(stated, later=tuple(replace(each, mu=nextafter(each.mu, inf)) for each in stated.later))

    @property
    def spurious(self) -> float:
        """The probability that noise releases a candidate without weight, rounded up."""
        return novel_release(self.score, Caps((1,), ((0,) * len(self.rounds),), (1.0,)))


def plan_known(square: float, limit: int, candidates: int, expected: float) -> KnownRounds:
    """Compute the rounds for a public number of candidates.

    Args:
        square: The mu^2 of all rounds together.
        limit: The maximum number of candidates per user in a round.
        candidates: The number of candidates.
        expected: The upper bound on the expected number of released candidates without users.

    """
    schedule, rule, pool = schedule_for(limit, sqrt(square)), PolicyGaussian(), pool_for(limit)
    unit = hypot(*schedule.shares) / sqrt(square) * (1 + 2.0**-40)
    sigmas = [unit / share for share in schedule.shares]
    # All rounds use one generous cutoff, because sensitivities depend slightly on the cutoff.
    cutoff = 2 * (12.0 + ALPHA) * max(sigmas) + 5.0
    shares, caps = CalibratedRule(rule, RuleSetting(limit, 2, rule.bits(cutoff))), whole_caps(len(sigmas), pool)
    later = tuple(planned_round(shares, caps, number, sigma, None) for number, sigma in enumerate(sigmas))
    mus = tuple(each.shares.sensitivity / each.sigma for each in later)
    half_cells = hypot(*(each.cell / each.sigma for each in later)) / 2

    def at(last: float) -> KnownRounds:
        thresholds = tuple(last + fall for fall in schedule.falls)
        drops = tuple(
            min(*pair) for pair in zip(schedule.drop_thresholds, (t - CLOSEST for t in thresholds[:-1]), strict=True)
        )
        score = CumulativeScore(mus, schedule.parts, thresholds, drops, half_cells * 1.001 + 1e-9)
        return KnownRounds(limit, pool, later, score)

    def excess(last: float) -> float:
        return log(max(at(last).spurious * candidates, nextafter(0.0, 1.0)) / expected)

    return at(falling_to(excess, start=sqrt(2 * log(candidates / expected + 2)), tolerance=TOLERANCE))


# The functions below are for listed items together with unknown items (docs/privacy/known.md).

AIM = 1e-4
"""The probability of a release by noise that determines the drop thresholds and cutoffs of listed items."""
STEP = 0.05
"""The distance between two levels, in standard deviations."""
MOST_LEVELS = 250


def with_list(
    rounds: AdaptiveRounds,
    schedule: Schedule,
    listed: KnownList,
    promise: MinUsersBound | None,
    share: float,
) -> AdaptiveRounds:
    """Return the rounds with the levels that decide whether items of a public list are released.

    Args:
        rounds: The rounds without the list.
        schedule: The division of the budget among the rounds.
        listed: The list.
        promise: The promise about items with few users, if there is one.
        share: The maximum expected share of listed items without users among the released items.
    """
    score = rounds.score

    def at(last: float) -> CumulativeScore:
        thresholds = tuple(last + fall for fall in schedule.falls)
        pairs = zip(schedule.drop_thresholds, (each - CLOSEST for each in thresholds[:-1]), strict=True)
        plain = replace(score, thresholds=thresholds, drop_thresholds=tuple(min(*pair) for pair in pairs))
        return plain if promise is None else raised(promise, plain)

    def excess(last: float) -> float:
        return log(max(released_by(at(last)), nextafter(0.0, 1.0)) / AIM)

    aim = at(falling_to(excess, start=4.0, tolerance=TOLERANCE))
    enough = [top * spread + spare(score.mus) * part for top, spread, part in _next_rounds(aim)] + [0.0]

    def levels(lowest: tuple[float, ...], tails: tuple[float, ...]) -> KnownLevels:
        return KnownLevels(listed, share, aim.drop_thresholds, lowest, STEP, tails, tuple(enough))

    def tail(last: float) -> float:
        return released_by(at_level(score, levels(at(last).thresholds, (1.0,)), 0))

    # At the lowest level, the probability that noise releases a listed item is `share`. Every admitted level is at or
    # above the lowest level.
    first = 1.0
    if tail(first) > share:  # with `min_users`, the tail can be far below `share`
        first = falling_to(lambda last: log(tail(last) / share), start=2.3, tolerance=TOLERANCE)
    lowest, tails = at(first).thresholds, [tail(first)]
    # An item that reaches the highest level is released at every admitted level, so it needs no more weight.
    while tails[-1] * listed.size > share / 2 and len(tails) < MOST_LEVELS:
        tails.append(released_by(at_level(score, levels(lowest, (1.0,)), len(tails))))
    return replace(rounds, known=levels(lowest, tuple(np.maximum.accumulate(tails[::-1])[::-1].tolist())))


def _next_rounds(score: CumulativeScore) -> list[tuple[float, float, float]]:
    return list(zip(score.thresholds[1:], score.spreads[1:].tolist(), score.parts[1:], strict=True))


def released_alone(rounds: AdaptiveRounds, level: int) -> float:
    """Return an upper bound on the probability that a listed item of one user reaches a level (counted from 0)."""
    if rounds.known is None or level >= len(rounds.known.tails):
        return 0.0
    first = MinUsersBound(2, 1.0).reached(rounds.first_round)
    return first + released_by(at_level(rounds.score, rounds.known, level), 1.0)
