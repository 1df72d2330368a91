"""The number of users that an item needs, and thresholds that items with too few users rarely reach.

The number and the thresholds depend only on the plan.

For any data, `few` users give an item at most `few` times the weight that one user can give one item. Therefore it is
sufficient that this weight, with the noise of all rounds, rarely reaches a threshold (docs/privacy/at-least.md).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
from scipy.special import gammaln, ndtr, xlog1py, xlogy

from voxpop.errors import InternalError
from voxpop.kernels.arrays import ONE_CAP, Floats
from voxpop.kernels.proved import proved
from voxpop.mechanisms.rounds.capped import spare
from voxpop.mechanisms.rounds.plan import USUAL_THRESHOLD, RoundPlan
from voxpop.privacy.budget import Budget
from voxpop.privacy.cumulative import CumulativeScore, at_level
from voxpop.privacy.gaussian import Noise, exceeded_with, log_below
from voxpop.privacy.numerics import least_whole
from voxpop.privacy.planned import ITEMS_EACH

if TYPE_CHECKING:
    from voxpop.mechanisms.rounds.adaptive import AdaptiveRounds
    from voxpop.privacy.decisions import Rule


_MOST_USERS = 10**12
COMMON = 10
"""A common item has this multiple of the number of users at which the probability of release is 1/2."""
_ITEM_PROBABILITIES = (0.5, 0.9, 0.99)
SPREAD_IN_SIGMA = 9.0
"""The number of standard deviations of a binomial beyond which its terms (below 1e-17 of the sum) are omitted."""


def users_needed_rows(needed: Callable[..., int | None]) -> list[dict[str, Any]]:
    """Return the number of users needed for usual numbers of items and usual probabilities, ready for JSON."""
    return [
        {"items": items, "probability": probability, "users": needed(probability, per_user=items)}
        for items in ITEMS_EACH
        for probability in _ITEM_PROBABILITIES
    ]


def users_needed(round_plan: RoundPlan, budget: Budget, probability: float, items: int) -> int | None:
    """Return the smallest sufficient number of users of an item, or None; see `UnionPlan.users_needed`."""
    rule = round_plan.rule(budget)

    def reached(users: int) -> bool:
        return _probabilities(round_plan, rule, users, items)[0] >= probability

    return least_whole(reached, 0, 1, _MOST_USERS)


def miss_probability(round_plan: RoundPlan, budget: Budget, items: int) -> float:
    """Return the probability of missing an item with ten times the users needed; see `UnionPlan.miss_probability`."""
    users = users_needed(round_plan, budget, 0.5, items)
    return 1.0 if users is None else _probabilities(round_plan, round_plan.rule(budget), COMMON * users, items)[1]


def _probabilities(round_plan: RoundPlan, rule: "Rule", users: int, items: int) -> tuple[float, float]:
    """Average the probabilities of release and of no release over the number of users who choose the item."""
    setting = round_plan.shares.setting
    share = round_plan.shares.weighting_rule.share(min(items, setting.limit), setting)
    # A user with more items than the limit draws this item with probability limit / items, independently of other
    # users.
    choosing, chances = _binomial(users, min(1.0, setting.limit / items))
    # Shape (outcomes,), the weight in units of the grid, clipped at the cutoff.
    weights = np.minimum(choosing * share * setting.unit, 2.0**62)
    if setting.cutoff:
        weights = np.minimum(weights, setting.cutoff)
    released, kept_back = rule.probability(np.floor(weights + 0.5).astype(np.int64))
    # Both sums are computed separately, because computing one as 1 minus the other would lose small probabilities.
    return float(released @ chances), float(kept_back @ chances)


def _binomial(trials: int, chance: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the likely outcomes of a binomial and their probabilities."""
    if chance >= 1.0:
        return np.array([float(trials)]), np.ones(1)
    # The range is n p plus or minus 9 sqrt(n p (1 - p)), with 9 added in case the variance is near 0.
    mean, spread = trials * chance, SPREAD_IN_SIGMA * (trials * chance * (1 - chance)) ** 0.5 + SPREAD_IN_SIGMA
    outcomes = np.unique(np.linspace(max(0.0, mean - spread), min(trials, mean + spread), 4001).round())
    # Compute ln(n! / (k! (n - k)!) p^k (1 - p)^(n - k)).
    logs = gammaln(trials + 1.0) - gammaln(outcomes + 1.0) - gammaln(trials - outcomes + 1.0)
    chances = np.exp(logs + xlogy(outcomes, chance) + xlog1py(trials - outcomes, -chance))
    # If there are many outcomes, about 4,000 of them represent all outcomes, so the probabilities are rescaled to sum
    # to 1.
    return outcomes, chances / chances.sum()


RELEASED_SHARE = 0.1
"""The share of a list that plans assume to be released when they compute the users needed for listed items."""
_BISECTIONS = 40
"""The number of grid steps in a standard deviation of all the noise."""
REACH = 8.0


@lru_cache(maxsize=256)  # descriptions, reports and `adaptive_missing` need these numbers again
def adaptive_users_needed(plan: "AdaptiveRounds", probability: float, items: int) -> int | None:
    """Return the smallest number of users with which adaptive rounds release an item with this probability, or None."""
    return least_whole(lambda users: item_probability(plan, users, items) >= probability, 0, 1, _MOST_USERS)


def adaptive_missing(plan: "AdaptiveRounds", items: int) -> float:
    """Return the probability of missing an item with ten times the users needed; see `UnionPlan.miss_probability`."""
    users = adaptive_users_needed(plan, 0.5, items)
    return 1.0 if users is None else _miss_probability(plan, COMMON * users, items)


@lru_cache(maxsize=256)
def listed_users_needed(plan: "AdaptiveRounds", probability: float, items: int) -> int | None:
    """Return the smallest number of users with which a listed item is released with this probability, or None.

    The number assumes that a tenth of the list is released, which determines the level that the rule of the last round
    admits.
    """
    level = usual_level(plan)

    def reached(users: int) -> bool:
        return 1 - _listed_miss(plan, users, items, level) >= probability

    return least_whole(reached, 0, 1, _MOST_USERS)


def usual_level(plan: "AdaptiveRounds") -> int:
    """Return the level, counted from 0, from which listed items are released if a tenth of the list is released."""
    if plan.known is None:
        raise InternalError("rounds without a list have no levels")
    return level_at_a_tenth(plan.known.tails, plan.known.share)


def level_at_a_tenth(tails: Sequence[float], share: float) -> int:
    """Return the level for these tails and this expected share of items without users; see `usual_level`."""
    return next((level for level, tail in enumerate(tails) if tail <= share * RELEASED_SHARE), len(tails) - 1)


def _listed_miss(plan: "AdaptiveRounds", users: int, items: int, level: int) -> float:
    """Return the probability that a listed item with this number of users never reaches a level."""
    if plan.known is None:
        raise InternalError("rounds without a list have no levels")
    # Listed items have no pool and no cap. Each user draws a share of about limit / items of their items.
    drawn = min(items, plan.limit)
    gets = users * (drawn / items) * drawn**-0.5
    means = np.array([min(gets, each.cutoff or gets) / each.sigma for each in plan.rounds])
    return _not_first(plan, users, items) * _never(at_level(plan.score, plan.known, level), means)


def item_probability(plan: "AdaptiveRounds", users: int, items: int) -> float:
    """Return the probability that an item is released in some round if each of its users has `items` such items."""
    return 1 - _miss_probability(plan, users, items)


@lru_cache(maxsize=1024)  # searches for several probabilities reuse many of these numbers
def _miss_probability(plan: "AdaptiveRounds", users: int, items: int) -> float:
    """Return the probability that no round releases an item with this number of users."""
    # In later rounds, the item is in the pools of a share of about pool / items of its users. All items of these users
    # are assumed to be undecided.
    pooled = min(items, plan.pool)
    drawn = min(pooled, plan.limit)
    caps = plan.rounds[0].shares.caps
    level = int(caps.level(np.array([pooled]))[0])
    often = users * (pooled / items) * min(drawn / pooled, caps.chances[level])
    weights = often * np.minimum(np.array(caps.weights[level]) / ONE_CAP, drawn**-0.5)
    means = np.array(
        [min(gets, each.cutoff or gets) / each.sigma for gets, each in zip(weights, plan.rounds, strict=True)]
    )
    return _not_first(plan, users, items) * _never(plan.score, means)


def _not_first(plan: "AdaptiveRounds", users: int, items: int) -> float:
    """Return the probability that the first round does not release an item with this number of users."""
    setting, first_round = plan.first_round.shares.setting, plan.first_round
    share = first_round.shares.weighting_rule.share(min(items, setting.limit), setting)
    # The mean weight is used, because a share of about limit / items of the users chooses the item.
    weight = users * min(1.0, setting.limit / items) * share
    # The result is P(weight + noise < threshold), with the weight clipped at the cutoff.
    return float(ndtr((first_round.threshold - min(weight, first_round.cutoff or weight)) / first_round.scale))


def _never(rules: CumulativeScore, means: Floats) -> float:
    """Return the probability that the cumulative score never reaches its threshold.

    The distribution of the noise in the score is propagated forwards on a grid. Weights shift the levels with which the
    noise is compared.
    """
    step, points, kernels = _grid(rules.parts)
    # Shape (rounds,), the mean of the cumulative score after each round.
    weights = np.cumsum(np.array(rules.parts) * means)
    # `law` is the probability of each grid point for the noise in the cumulative score of undecided items.
    law, missed = np.zeros(points.size), 0.0
    law[points.size // 2] = 1.0
    for number, kernel in enumerate(kernels):
        spread = float(rules.spreads[number])
        threshold = rules.thresholds[number] * spread - weights[number]
        # An item near the threshold gets only the weight that raises it slightly above the threshold.
        enough = int(
            np.clip(np.searchsorted(points, threshold + spare(rules.mus) * rules.parts[number]), 0, points.size - 1)
        )
        law[enough] += law[enough + 1 :].sum()
        law[enough + 1 :] = 0.0
        # The distribution of the sum of all noise so far needs one convolution per round.
        law = np.convolve(law, kernel, "same")
        floor = (
            rules.drop_thresholds[number] * spread - weights[number]
            if number < len(rules.drop_thresholds)
            else threshold
        )
        # For each grid cell, compute the part that is below the drop threshold.
        below = np.clip((min(floor, threshold) - points) / step + 0.5, 0.0, 1.0)
        # Dropped items are never released.
        missed += float(law @ below)
        # Items that reach the threshold are released, so their probability is removed.
        law = law * np.clip((threshold - points) / step + 0.5, 0.0, 1.0) * (1.0 - below)
    return min(1.0, missed)


@lru_cache(maxsize=8)
def _grid(parts: tuple[float, ...]) -> tuple[float, Floats, tuple[Floats, ...]]:
    """Return the step and the points of a grid around 0, and the probability of each move on the grid in each round."""
    spread = float(np.sqrt(np.sum(np.square(parts))))
    step = spread / _BISECTIONS
    # The grid extends to eight standard deviations of all the noise on each side.
    half = round(REACH * _BISECTIONS)
    points = step * np.arange(-half, half + 1)
    reaches = [ceil(REACH * part / step) for part in parts]
    edges = [step * (np.arange(-reach, reach + 2) - 0.5) / part for reach, part in zip(reaches, parts, strict=True)]
    return step, np.asarray(points, np.float64), tuple(np.diff(ndtr(each)) for each in edges)


FAILURE_PROBABILITY: Final = 1e-6
"""The largest probability of releasing an item with too few users."""
_UP: Final = 1 + 1e-9
"""A factor that exceeds the relative error of computing weights and quantiles in doubles."""


@final
@dataclass(frozen=True, slots=True)
class MinUsersBound:
    """A promise that an item with fewer than `users` users is released with probability at most `beta`.

    Attributes:
        users: The minimum number of users that an item should have.
        beta: The largest probability that an item with fewer users is released, in all rounds together.
    """

    users: int
    beta: float

    @property
    def few(self) -> int:
        """The largest number of users that is still too small."""
        return self.users - 1

    @proved("at-least.md#proof")
    def weight(self, largest: float) -> float:
        """Return the largest weight that too few users can give one item in one round, if each gives at most `largest`.

        Proof: "on every path the weight is at most m x"
        """
        # The weight is at most (n - 1) w_max for any data of the other users, because no user gives an item more than
        # w_max (docs/privacy/at-least.md, "Proof").
        return self.few * largest * _UP

    def deviations(self, noise: Noise, rounds: int) -> float:
        """Return the quantile of noise of scale 1 for an equal share of beta, rounded up."""
        # The quantile is t with P(N >= t) = beta / rounds, by a union bound over rounds.
        return float(exceeded_with(noise, np.array([self.beta / rounds]))[0]) * _UP + 1e-9

    def threshold(self, largest: float, noise: Noise, scale: float, rounds: int) -> float:
        """Return a threshold that too few users reach in a round with probability at most beta / rounds.

        Each round has an equal share of beta.
        """
        return self.weight(largest) + scale * self.deviations(noise, rounds)

    def reached(self, only: RoundPlan) -> float:
        """Bound the probability that too few users reach the threshold of a round.

        Raises:
            InternalError: The round has no threshold.
        """
        if only.noise == "optimal":
            raise InternalError("min_users was requested for a round without a threshold")
        # The distance is in noise scales. The result is 1 - P(N < distance), without cancellation in the tail.
        distance = np.array([(only.threshold - self.weight(only.shares.largest)) / only.scale])
        return float(-np.expm1(log_below(only.noise, distance))[0]) * _UP


def promise_of(users: int | None) -> MinUsersBound | None:
    """Return the promise for a minimum number of users, or None if there is no such number."""
    return None if users is None else MinUsersBound(users, FAILURE_PROBABILITY)


def check_promise(users_bound: MinUsersBound, chance: float) -> None:
    """Reject a plan under which too few users reach a threshold more often than promised.

    Args:
        users_bound: The promise about items with few users.
        chance: The probability that too few users reach a threshold, computed from the numbers that will be used.

    Raises:
        InternalError: The probability is above beta.
    """
    if not chance <= users_bound.beta:
        raise InternalError("items with few users would be released more often than min_users allows")


NEAREST: Final = 1.0
"""The smallest distance of a drop threshold below the threshold of its round, in standard deviations."""


def heights(users_bound: MinUsersBound, score: CumulativeScore) -> Floats:
    """Return the largest score that the weight of too few users can add, by round, in standard deviations."""
    # Shape (rounds,), c_r (n - 1) mu_r. This product bounds the mean score of one round, because no user gives an item
    # more than 1 in a later round.
    shown = np.multiply(score.parts, score.mus) * users_bound.few
    return np.asarray(np.cumsum(shown) / score.spreads * _UP)


def raised(users_bound: MinUsersBound, score: CumulativeScore) -> CumulativeScore:
    """Return a score with thresholds that too few users reach with probability at most beta / rounds per round.

    The first round has the same share. Drop thresholds increase with the thresholds, so that an item that needs more
    users is dropped as early as before. If an item at the last threshold has a certain part of its score after a round,
    the drop threshold of this round increases by this part of the increase of the last threshold.
    """
    deviations = users_bound.deviations("gaussian", 1 + len(score.mus)) + score.margin
    # The threshold is the mean plus some standard deviations, as for a single round, but never below the threshold for
    # novel items.
    thresholds = np.maximum(score.thresholds, heights(users_bound, score) + deviations)
    rise = max(0.0, float(thresholds[-1]) - max(USUAL_THRESHOLD, score.thresholds[-1]))
    seen = np.cumsum(np.multiply(score.parts, score.mus)) / score.spreads
    drop_thresholds = np.minimum(score.drop_thresholds + rise * (seen / seen[-1])[:-1], thresholds[:-1] - NEAREST)
    return replace(score, thresholds=tuple(thresholds.tolist()), drop_thresholds=tuple(drop_thresholds.tolist()))


def ever_released_with_few(users_bound: MinUsersBound, first_round: RoundPlan, score: CumulativeScore) -> float:
    """Bound the probability that an item with too few users is released in any round."""
    first = users_bound.reached(first_round)
    # For each threshold, compute its distance above the mean, in standard deviations. The margin covers the
    # floating-point error.
    missing = np.array(score.thresholds) - score.margin - heights(users_bound, score)
    return first + float(np.sum(ndtr(-missing))) * _UP
