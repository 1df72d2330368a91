"""Adaptive rounds over a public list of candidates: nothing is novel, so thresholds are lower.

Every candidate gets noise in every round until it is released or dropped for good, in some pool or in none. A candidate
in a pool has at least the score of its noise, so the released candidates are those that the engine releases and those
that noise without weight releases (docs/privacy/profile.md, "Joint values").
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import fsum, hypot, log, nextafter, sqrt
from typing import final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.engine.contract import WORDS, Engine
from voxpop.errors import InternalError
from voxpop.kernels.arrays import DROPPED, RELEASED, Bools
from voxpop.kernels.threads import in_order
from voxpop.mechanisms.rounds.adaptive import TOLERANCE, AdaptiveRound, planned_round, score_step
from voxpop.mechanisms.rounds.plan import ALPHA, pool_for, schedule_for
from voxpop.privacy.cumulative import Caps, CumulativeScore, novel_release, whole
from voxpop.privacy.numerics import falling_to
from voxpop.privacy.secret import Secret
from voxpop.privacy.weightings.builtin import PolicyGaussian
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting
from voxpop.reading.arrow import array_of, text_buffers

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

    Raises:
        InternalError: if the rounds would spend more.
    """
    schedule, rule, pool = schedule_for(limit, sqrt(square)), PolicyGaussian(), pool_for(limit)
    unit = hypot(*schedule.shares) / sqrt(square) * (1 + 2.0**-40)
    sigmas = [unit / share for share in schedule.shares]
    # A generous cutoff serves all rounds: sensitivities depend a little on it.
    cutoff = 2 * (12.0 + ALPHA) * max(sigmas) + 5.0
    shares, caps = CalibratedRule(rule, RuleSetting(limit, 2, rule.bits(cutoff))), whole(len(sigmas), pool)
    later = tuple(planned_round(shares, caps, number, sigma, None) for number, sigma in enumerate(sigmas))
    mus = tuple(each.shares.sensitivity / each.sigma for each in later)
    if fsum(mu * mu for mu in mus) > square:
        raise InternalError("rounds over candidates would run with less noise than was charged for")
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


def released_candidates(
    rounds: KnownRounds, corpus: Engine, candidates: Iterator[pa.LargeStringArray], secret: Secret
) -> pa.LargeStringArray:
    """Return the released candidates, distinct, in no order.

    Args:
        rounds: their numbers.
        corpus: the private side, which holds candidates only.
        candidates: all of them, in parts.
        secret: of all draws and noise.
    """
    pools = corpus.pools(secret)
    pools.draw(rounds.pool, "pool/candidates")
    for number, each in enumerate(rounds.rounds):
        pass_name = _pass_name(number)
        pools.advance(each.shares, score_step(rounds.rounds, rounds.score, number, secret, pass_name), pass_name)

    def by_noise(part: pa.LargeStringArray) -> pa.LargeStringArray:
        return part.filter(array_of(_released_by_noise(rounds, part, secret).view(np.uint8)).cast(pa.bool_()))

    return pc.unique(pa.concat_arrays([pools.released(), *in_order(by_noise, candidates)]))


def _pass_name(number: int) -> str:
    return f"round {number + 1}/candidates"


def _released_by_noise(rounds: KnownRounds, candidates: pa.LargeStringArray, secret: Secret) -> Bools:
    """Return the candidates that noise without weight releases: the same noise that the engine adds."""
    names = secret.text_draws(WORDS, *text_buffers(candidates))
    score, left = np.zeros(len(candidates)), np.arange(len(candidates))
    found = np.zeros(len(candidates), np.bool_)
    for number in range(len(rounds.rounds)):
        step = score_step(rounds.rounds, rounds.score, number, secret, _pass_name(number))
        score[left], states = step(np.zeros(left.size, np.int64), names[left], score[left])
        found[left[states == RELEASED]] = True
        left = left[states > DROPPED]
    return found
