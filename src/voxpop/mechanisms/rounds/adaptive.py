"""Compute the numbers of adaptive rounds from a share of a budget. A gate compares them with the certificate."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, floor, fsum, hypot, log, log2, nextafter, sqrt
from typing import Any, final

import numpy as np

from voxpop.kernels.arrays import ONE_CAP
from voxpop.mechanisms.rounds.capped import levels, spare
from voxpop.mechanisms.rounds.plan import (
    ALPHA,
    FIRST_NOVELTY,
    FIRST_SHARE,
    NOVELTY,
    SHARE_WITHOUT_USERS,
    USUAL_THRESHOLD,
    RoundPlan,
    Schedule,
    with_cutoff,
)
from voxpop.mechanisms.rounds.users_needed import MinUsersBound, raised
from voxpop.privacy.certificate import CAPPED, NEGLIGIBLE
from voxpop.privacy.cumulative import (
    STEPS,
    Caps,
    CumulativeScore,
    any_release,
    at_level,
    lone_releases,
    novel_release,
    whole_caps,
)
from voxpop.privacy.cumulative import UNIT_ROUNDING as BOUND_ROUNDING
from voxpop.privacy.gaussian import lowest_threshold
from voxpop.privacy.gaussian import sigma as gaussian_sigma
from voxpop.privacy.joint import ROUNDING
from voxpop.privacy.numerics import falling_to
from voxpop.privacy.parameters import KnownLevels, KnownList
from voxpop.privacy.passes import Bounding, CapLevels, Round, Rounds, Threshold
from voxpop.privacy.weightings.builtin import PolicyGaussian
from voxpop.privacy.weightings.capped import CappedDescent
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting


@final
@dataclass(frozen=True, slots=True)
class AdaptiveRound:
    """A round that adds to the cumulative score.

    Attributes:
        shares: The weighting, with its limit, grid, cutoff and caps.
        sigma: The standard deviation of the noise on a weight.
        cell: A power of two. Noisy weights are rounded to its integer multiples.
    """

    shares: CappedDescent
    sigma: float
    cell: float

    @property
    def cutoff(self) -> float | None:
        """The weight above which an item receives no more weight, or None without a cutoff."""
        return self.shares.setting.cutoff_weight


@final
@dataclass(frozen=True, slots=True)
class AdaptiveRounds:
    """The numbers of adaptive rounds.

    Attributes:
        limit: The maximum number of items per user in a round.
        pool: The maximum number of items per user in all rounds after the first.
        first_round: The first round, which releases items but does not drop items.
        rounds: The later rounds.
        score: The cumulative score of the later rounds, with the thresholds at which items are released or dropped.
        known: The levels that decide whether items of a public list are released, or None without a list.
        share: The part of the total mu^2 that the rounds spend; see `Terms`.
    """

    limit: int
    pool: int
    first_round: RoundPlan
    rounds: tuple[AdaptiveRound, ...]
    score: CumulativeScore
    known: KnownLevels | None = None
    share: float = 1.0

    @property
    def caps(self) -> Caps:
        """The largest weights that a user can give one item in each later round."""
        return self.rounds[0].shares.caps

    @property
    def scale(self) -> float:
        """The standard deviation of the noise on an item's weight in the last round."""
        return self.rounds[-1].sigma

    @property
    def threshold(self) -> float:
        """The weight in each later round at which an item is released with probability 1/2, if it is not dropped."""
        score = self.score
        # Weight w adds c_r w / sigma_r to the cumulative score in round r.
        per_weight = sum(part / each.sigma for part, each in zip(score.parts, self.rounds, strict=True))
        # At this weight, the mean of the cumulative score equals the last threshold.
        return float(score.thresholds[-1] * score.spreads[-1]) / per_weight

    @property
    def cutoff(self) -> float | None:
        """The cutoff of the last round, in units of weight (None for weightings without a cutoff)."""
        return self.rounds[-1].cutoff

    @property
    def mus(self) -> list[float]:
        """The mu of every round, in order. Each mu is the sensitivity with the final setting, divided by sigma."""
        first = self.first_round.shares.sensitivity / self.first_round.scale
        return [first, *(each.shares.sensitivity / each.sigma for each in self.rounds)]

    @property
    def square(self) -> float:
        """The sum of mu^2 over all rounds, including the first."""
        return fsum(mu * mu for mu in self.mus)

    def stated(self) -> Rounds:
        """Return the numbers that a certificate contains."""
        stated = stated_rounds(self.pool, self.first_round.stated(), self.rounds, self.score)
        return replace(stated, known=self.known)

    @property
    def scores(self) -> list[CumulativeScore]:
        """The scores at which unknown items are released, and the scores of the lowest level for listed items."""
        return [self.score] if self.known is None else [self.score, at_level(self.score, self.known, 0)]

    def rows(self) -> list[dict[str, Any]]:
        """Return the numbers of each round, ready for JSON."""
        score, rows = self.score, self.first_round.rows()
        for number, each in enumerate(self.rounds):
            row = {
                "pass": "round",
                "noise": "gaussian",
                "scale": each.sigma,
                "threshold": None,
                "cutoff": each.cutoff,
                "grid_bits": each.shares.setting.bits,
                "part": score.parts[number],
                "score_threshold": score.thresholds[number],
                "drop_threshold": score.drop_thresholds[number] if number < len(score.drop_thresholds) else None,
            }
            rows.append(row)
        return rows


_ROUND_CELLS_IN_SIGMA = 2**10
TOLERANCE = 0.004
"""The tolerance of the search for thresholds, as a difference of logarithms of the probability that a novel item is
released.
"""


@final
@dataclass(frozen=True, slots=True)
class Terms:
    """The part of a budget that rounds may spend, and the promise that the rounds must satisfy.

    Attributes:
        epsilon: The epsilon of the whole release.
        delta: The delta of novel items and of all Gaussian noise together, without slack.
        share: The part of the total mu^2 that the rounds spend. Later releases spend the rest. With a private choice,
            this is the part for the fewest users.
        novelty: The share of delta for items that only one user has.
        data_sets: The number of data sets that share the budget evenly, each with separate rounds.
        promise: The promise about items with few users, if there is one.
        listed: The public list, if there is one.
        share_without_users: The maximum expected share of listed items without users among the released items.
        falling: Pairs of a number of users and a smaller share that applies from this number on, in increasing order of
            users. Numbers of users are in units of the sigma of one count that spends the whole budget. Only a private
            choice counts users.
    """

    epsilon: float
    delta: float
    share: float = 1.0
    novelty: float = NOVELTY
    data_sets: int = 1
    promise: MinUsersBound | None = None
    listed: KnownList | None = None
    share_without_users: float = SHARE_WITHOUT_USERS
    falling: tuple[tuple[float, float], ...] = ()

    @property
    def target(self) -> float:
        """The delta that a plan may spend, after subtracting the floating-point error."""
        return self.delta * (1 - 1e-6) / ROUNDING

    @property
    def sigma(self) -> float:
        """The sigma of one Gaussian release of sensitivity 1 that spends the whole budget."""
        return gaussian_sigma(self.epsilon, self.target * (1 - self.novelty)) * (1 + 2.0**-40)


def plan_rounds(terms: Terms, limit: int, pool: int, schedule: Schedule) -> AdaptiveRounds:
    """Compute the first round, the later rounds and the cumulative score.

    Args:
        terms: The budget of the rounds.
        limit: The maximum number of items per user in a round.
        pool: The maximum number of items per user in all rounds after the first.
        schedule: The division of the budget among the rounds.
    """
    rule, first_round, others = begun(terms, limit, schedule)
    novel = terms.target / terms.data_sets * terms.novelty
    score, caps = _score(rule, others, schedule, pool, novel * (1 - FIRST_NOVELTY), terms.promise)
    later = tuple(planned_round(rule, caps, number, sigma, terms.promise) for number, sigma in enumerate(others))
    return AdaptiveRounds(limit, pool, first_round, later, score, share=terms.share)


def begun(terms: Terms, limit: int, schedule: Schedule) -> tuple[CalibratedRule, RoundPlan, list[float]]:
    """Return the weighting of all rounds, the first round, and the sigmas of the later rounds for a sensitivity of 1.

    A BudgetError is raised if integer weights cannot represent the first round, which has the most noise.
    """
    target, promise, weighting_rule = terms.target, terms.promise, PolicyGaussian()
    whole = terms.sigma * sqrt(terms.data_sets / terms.share)
    shares = (FIRST_SHARE, *schedule.shares)
    # For a sensitivity of 1, sigma_r = sigma |shares| / share_r, so the sum of 1 / sigma_r^2 is 1 / sigma^2.
    first, *others = (whole * hypot(*shares) / each for each in shares)
    novel = target / terms.data_sets * terms.novelty
    # Sensitivities depend slightly on cutoffs, and cutoffs depend on noise. Therefore all rounds use one generous
    # cutoff.
    cutoff = _rough_cutoff(max(first, *others), target / terms.data_sets, len(others), promise)
    rule = CalibratedRule(weighting_rule, RuleSetting(limit, 2, weighting_rule.bits(cutoff)))
    first_round = _first_round(rule, first * rule.sensitivity, novel * FIRST_NOVELTY, len(others), promise)
    return rule, first_round, others


def stated_rounds(
    pool: int, first: Threshold | None, rounds: Sequence[AdaptiveRound], score: CumulativeScore
) -> Rounds:
    """Return the numbers that a certificate contains about the rounds.

    Args:
        pool: The maximum number of items per user in all rounds after the first.
        first: The first round, if there is one.
        rounds: The later rounds.
        score: The cumulative score of the later rounds.
    """
    caps = rounds[0].shares.caps
    later = []
    for number, each in enumerate(rounds):
        setting, (enough, steps) = each.shares.setting, _usable(rounds, score, number)
        bounding = Bounding(CAPPED, 2, setting.limit, setting.bits, setting.cutoff, setting.bound)
        drop = score.drop_thresholds[number] if number < len(score.drop_thresholds) else None
        levels = score.mus[number], score.parts[number], score.thresholds[number], drop, enough, steps
        later.append(Round(bounding, each.sigma, round(each.cell * setting.unit), *levels))
    return Rounds(pool, first, tuple(later), CapLevels(caps.items, caps.weights, caps.chances), score.margin)


def _usable(rounds: Sequence[AdaptiveRound], score: CumulativeScore, number: int) -> tuple[float, float]:
    """Return the score above which an item needs no more weight in the next round, and the steps per score unit."""
    if number + 1 == len(rounds):
        return 0.0, 0.0
    after, part = rounds[number + 1], score.parts[number + 1]
    enough = score.thresholds[number + 1] * float(score.spreads[number + 1]) + spare(score.mus) * part
    # A weight of sigma increases the score by the part of the round.
    return enough, STEPS * after.sigma * after.shares.setting.unit / (after.shares.setting.cutoff * part)


def _rough_cutoff(widest: float, target: float, rounds: int, promise: MinUsersBound | None) -> float:
    """Return a generous upper bound on the cutoffs of all rounds, if no noise scale exceeds `widest`."""
    wide = 2 * widest
    cutoff = (12.0 + ALPHA) * wide + 1.0 + sqrt(-log(target))
    if promise is None:
        return cutoff
    return cutoff + promise.deviations("gaussian", 1 + rounds) * wide + 1.01 * promise.few


def _first_round(
    shares: CalibratedRule, sigma: float, novel: float, later: int, promise: MinUsersBound | None
) -> RoundPlan:
    """Return the first round, which releases novel items with probability at most `novel`."""
    lowest = lowest_threshold(shares.novelty, "gaussian", sigma, novel, shares.sensitivity)
    if promise is not None:
        lowest = max(lowest, promise.threshold(shares.largest, "gaussian", sigma, 1 + later))
    unit = shares.setting.unit
    threshold = (ceil(lowest * unit) + 1) / unit
    cutoff = threshold + ALPHA * sigma
    return RoundPlan(with_cutoff(shares.weighting_rule, shares.setting, cutoff), "gaussian", sigma, threshold)


def planned_round(
    shares: CalibratedRule, caps: Caps, number: int, sigma: float, promise: MinUsersBound | None
) -> AdaptiveRound:
    """Return a later round, with a cutoff above the usual threshold or above the threshold of a promise.

    Args:
        shares: The weighting on its grid.
        caps: The caps of all rounds.
        number: The index of the round, starting at 0.
        sigma: The standard deviation of the noise for a sensitivity of 1.
        promise: The promise about items with few users, if there is one.
    """
    capped = CappedDescent(shares.setting, caps, number)
    threshold = USUAL_THRESHOLD * sigma
    if promise is not None:
        threshold = max(threshold, promise.threshold(capped.largest, "gaussian", sigma, 1 + len(caps.weights[0])))
    threshold, sigma = threshold * capped.sensitivity, sigma * capped.sensitivity
    bound = with_cutoff(shares.weighting_rule, shares.setting, threshold + ALPHA * sigma)
    # Use the largest power of two up to sigma / 1024, but no finer than the grid of weights.
    cell = 2.0 ** floor(log2(sigma / _ROUND_CELLS_IN_SIGMA))
    return AdaptiveRound(replace(capped, setting=bound.setting), sigma, max(cell, 1.0 / shares.setting.unit))


def _score(
    rule: CalibratedRule,
    sigmas: Sequence[float],
    schedule: Schedule,
    pool: int,
    goal: float,
    promise: MinUsersBound | None,
) -> tuple[CumulativeScore, Caps]:
    """Return the cumulative score with the lowest thresholds that satisfy `goal`, and the caps.

    Args:
        rule: The weighting on its grid.
        sigmas: The sigma of each round for a sensitivity of 1. No round runs with less noise.
        schedule: The division of the budget among the rounds.
        pool: The maximum number of items per user in all rounds.
        goal: The maximum probability that a novel item is released.
        promise: The promise about items with few users, if there is one.
    """
    mus = tuple((1 + 2.0**-50) / sigma for sigma in sigmas)
    # The margin is half a cell per round, plus the rounding error of sums of doubles.
    margin = hypot(*(max(1 / _ROUND_CELLS_IN_SIGMA, mu / rule.setting.unit) for mu in mus)) / 2 + 1e-9

    def at(last: float) -> CumulativeScore:
        thresholds = tuple(last + fall for fall in schedule.falls)
        rounds = CumulativeScore(mus, schedule.parts, thresholds, schedule.drop_thresholds, margin)
        return rounds if promise is None else raised(promise, rounds)

    if promise is not None and any_release(at(0.0), pool) < NEGLIGIBLE * goal:
        return at(0.0), whole_caps(len(mus), pool)
    weights, chances = levels(np.multiply(schedule.parts, mus), hypot(*mus), rule.setting.limit, pool)
    # The first and the last level determine the thresholds, and the thresholds determine the other levels.
    ends = (
        Caps((1, pool), (weights[0], weights[-1]), (chances[0], chances[-1])) if pool > 1 else whole_caps(len(mus), 1)
    )

    def excess(last: float) -> float:
        # For high thresholds, the bound is below the smallest double.
        return log(max(novel_release(at(last), ends), nextafter(0.0, 1.0)) / goal)

    # Start from sqrt(-2 ln d), because the tail of a normal distribution beyond this point is approximately d.
    score = at(falling_to(excess, start=sqrt(-2 * log(goal)), tolerance=TOLERANCE))
    return score, _caps(score, weights, chances, pool, goal)


@lru_cache(maxsize=64)  # cached like `novel_release`, for repeated plans of the same budget
def _caps(
    score: CumulativeScore, weights: tuple[tuple[int, ...], ...], chances: tuple[float, ...], pool: int, goal: float
) -> Caps:
    """For each number of items, return the highest level of caps that satisfies the bound on novel items."""
    each = lone_releases(score, np.array(weights) / ONE_CAP, np.array(chances))
    # t V_1(0) <= goal must be true for every number of items t up to the number of the level. The last level applies to
    # the whole pool.
    most = np.minimum(np.floor(goal / np.maximum(each * BOUND_ROUNDING, nextafter(0.0, 1.0))), pool).astype(np.int64)
    most[-1] = pool
    better = np.flatnonzero(np.diff(most, prepend=0) > 0)
    return Caps(
        tuple(most[better].tolist()),
        tuple(weights[level] for level in better),
        tuple(chances[level] for level in better),
    )
