"""Adaptive rounds over a public list of candidates: nothing is novel, so thresholds are lower.

Every candidate gets noise in every round until it is released or dropped for good, in some pool or in none
(docs/privacy/profile.md, "Joint values").
"""

from dataclasses import dataclass, replace
from math import hypot, inf, log, nextafter, sqrt
from typing import final

from voxpop.mechanisms.rounds.adaptive import TOLERANCE, AdaptiveRound, planned_round, stated_rounds
from voxpop.mechanisms.rounds.plan import ALPHA, pool_for, schedule_for
from voxpop.privacy.cumulative import Caps, CumulativeScore, novel_release, whole_caps
from voxpop.privacy.numerics import falling_to
from voxpop.privacy.passes import Rounds
from voxpop.privacy.weightings.builtin import PolicyGaussian
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting

CLOSEST = 1.0
"""Least distance of a drop threshold below the threshold of its round, in standard deviations."""


@final
@dataclass(frozen=True, slots=True)
class KnownRounds:
    """The numbers of rounds over known candidates.

    Attributes:
        limit: most candidates of one user in a round.
        pool: most candidates of one user in all rounds.
        rounds: the rounds.
        score: how they are added up, and when candidates are released or dropped.
    """

    limit: int
    pool: int
    rounds: tuple[AdaptiveRound, ...]
    score: CumulativeScore

    def stated(self) -> Rounds:
        """Return the numbers for the gate."""
        stated = stated_rounds(self.pool, None, self.rounds, self.score)
        # Rounded up: at least sensitivity over sigma, exactly.
        return replace(stated, later=tuple(replace(each, mu=nextafter(each.mu, inf)) for each in stated.later))

    @property
    def spurious(self) -> float:
        """The probability that noise without weight releases a candidate, rounded up."""
        return novel_release(self.score, Caps((1,), ((0,) * len(self.rounds),), (1.0,)))


def plan_known(square: float, limit: int, candidates: int, expected: float) -> KnownRounds:
    """Compute the rounds for a number of candidates, which is public.

    Args:
        square: mu^2 of all rounds together.
        limit: most candidates of one user in a round.
        candidates: their number.
        expected: the expected number of released candidates without users, at most.

    """
    schedule, rule, pool = schedule_for(limit, sqrt(square)), PolicyGaussian(), pool_for(limit)
    unit = hypot(*schedule.shares) / sqrt(square) * (1 + 2.0**-40)
    sigmas = [unit / share for share in schedule.shares]
    # A generous cutoff serves all rounds: sensitivities depend a little on it.
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
