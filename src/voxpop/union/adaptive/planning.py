"""From a budget to the numbers of adaptive rounds."""

from math import ceil, floor, hypot, log, log2, sqrt
from typing import TYPE_CHECKING

from voxpop.errors import BudgetError, InternalError
from voxpop.privacy.budget import Budget, too_large
from voxpop.privacy.evidence import EvidenceRounds, novel_release
from voxpop.privacy.gaussian import delta as gaussian_delta
from voxpop.privacy.gaussian import sigma as gaussian_sigma
from voxpop.privacy.joint import ROUNDING
from voxpop.privacy.search import falling_to
from voxpop.privacy.slack import draw_slack, walk_slack
from voxpop.privacy.threshold import lowest_threshold
from voxpop.rounds.charge import with_cutoff
from voxpop.rounds.plan import RoundPlan
from voxpop.union.adaptive.plan import AdaptivePlan, AdaptiveRound
from voxpop.union.adaptive.schedule import LEAST_POOL, Schedule, schedule_for
from voxpop.weighting.descent import L2Descent
from voxpop.weighting.rule import RuleSetting, WeightingRule

if TYPE_CHECKING:
    from voxpop.union.set_union import SetUnion

CELLS_IN_SIGMA = 2**10
USUAL_THRESHOLD = 5.5
"""Standard deviations of the evidence at which items come out, about; more or less changes nothing but the release."""
TOLERANCE = 0.004
"""How near thresholds come to what novel items may spend, in its logarithm."""


def plan_adaptive(union: "SetUnion", budget: Budget, schedule: Schedule | None = None) -> AdaptivePlan:
    """Fill in adaptive rounds; see `SetUnion.plan`."""
    limit, pool = pool_of(union)
    schedule = schedule or schedule_for(limit)
    slack = _slack(budget.epsilon, len(schedule.shares), limit, pool)
    if budget.delta <= 2 * slack:
        if 2 * slack >= 1.0:
            raise too_large(budget.epsilon)
        raise BudgetError(
            f"adaptive rounds need a delta of at least {2 * slack:.2g} at epsilon {budget.epsilon:g} with a pool of "
            f"{pool:,} items, got {budget.delta:g}. Choose it far below 1 / (number of users you expect), such as 1e-7."
        )
    target = (budget.delta - slack) * (1 - 1e-6) / ROUNDING
    weighting_rule = L2Descent()
    # Sensitivities depend a little on cutoffs, cutoffs on noise: a generous cutoff serves all rounds.
    setting = RuleSetting(limit, 2, weighting_rule.bits(_rough_cutoff(budget, target, schedule)))
    sigmas = _sigmas(budget, target, weighting_rule.sensitivity(setting), schedule)
    opening = _opening(weighting_rule, setting, sigmas[0], schedule, target)
    later = tuple(_round(weighting_rule, setting, sigma, schedule) for sigma in sigmas[1:])
    evidence = _evidence(later, schedule, limit, pool, target)
    spent = total_delta(opening, later, evidence, budget, pool) + slack
    if not spent <= budget.delta:
        raise InternalError("the plan's own numbers exceed the budget; please report the parameters of the call.")
    return AdaptivePlan(union, budget, limit, pool, opening, later, evidence, delta=spent)


def pool_of(union: "SetUnion") -> tuple[int, int]:
    """Return the limit and the pool of a mechanism: what was asked for, else public constants."""
    limit = union.limit_used
    return limit, max(limit, LEAST_POOL if union.pool is None else union.pool)


def total_delta(
    opening: RoundPlan, later: tuple[AdaptiveRound, ...], evidence: EvidenceRounds, budget: Budget, pool: int
) -> float:
    """Return what all rounds spend: the chance that a novel item comes out, and delta of the Gaussian rounds."""
    first, mu = opening.pair()
    mus = [each.shares.sensitivity / each.sigma for each in later]
    if any(charged < runs for charged, runs in zip(evidence.mus, mus, strict=True)):
        raise InternalError("a round would run with less noise than was charged for; please report the call.")
    novel = first + novel_release(evidence, opening.shares.setting.limit, pool)
    return min(1.0, (novel + gaussian_delta(budget.epsilon, hypot(mu, *mus))) * ROUNDING)


def _slack(epsilon: float, rounds: int, limit: int, pool: int) -> float:
    """Return what finite arithmetic costs: of decisions, and of draws from a pool that is larger than the limit."""
    return walk_slack(epsilon, 1 + rounds) + (draw_slack(pool, rounds) if pool > limit else 0.0)


def _sigmas(budget: Budget, target: float, sensitivity: float, schedule: Schedule) -> list[float]:
    """Return the noise of each round: all of them together spend what novelty leaves."""
    whole = gaussian_sigma(budget.epsilon, target * (1 - schedule.novelty), sensitivity) * (1 + 2.0**-40)
    shares = (schedule.opening, *schedule.shares)
    return [whole * hypot(*shares) / share for share in shares]


def _rough_cutoff(budget: Budget, target: float, schedule: Schedule) -> float:
    """Return more than the highest cutoff of any round."""
    return (12.0 + schedule.alpha) * 2 * max(_sigmas(budget, target, 1.0, schedule)) + 1.0 + sqrt(-log(target))


def _opening(
    weighting_rule: WeightingRule, setting: RuleSetting, sigma: float, schedule: Schedule, target: float
) -> RoundPlan:
    """Return the first round, an ordinary one."""
    novel = target * schedule.novelty * schedule.opening_novelty
    sensitivity = weighting_rule.sensitivity(setting)
    lowest = lowest_threshold(weighting_rule.novelty(setting), "gaussian", sigma, novel, sensitivity)
    threshold = (ceil(lowest * setting.unit) + 1) / setting.unit
    return RoundPlan(
        with_cutoff(weighting_rule, setting, threshold + schedule.alpha * sigma), "gaussian", sigma, threshold
    )


def _round(weighting_rule: WeightingRule, setting: RuleSetting, sigma: float, schedule: Schedule) -> AdaptiveRound:
    """Return a later round, its cutoff above what the usual threshold asks for."""
    bound = with_cutoff(weighting_rule, setting, (USUAL_THRESHOLD + schedule.alpha) * sigma)
    cell = 2.0 ** floor(log2(sigma / CELLS_IN_SIGMA))
    return AdaptiveRound(bound, sigma, max(cell, 1.0 / setting.unit))


def _evidence(
    later: tuple[AdaptiveRound, ...], schedule: Schedule, limit: int, pool: int, target: float
) -> EvidenceRounds:
    """Return how evidence is added up, thresholds just high enough for what novelty may spend."""
    goal = target * schedule.novelty * (1 - schedule.opening_novelty)
    mus = tuple(each.shares.sensitivity / each.sigma for each in later)
    parts, falls = schedule.parts, schedule.falls
    half_cells = hypot(*(each.cell / each.sigma for each in later)) / 2

    def at(last: float) -> EvidenceRounds:
        thresholds = tuple(last + fall for fall in falls)
        # Half a cell a round, and whatever adding in doubles may lose.
        return EvidenceRounds(mus, parts, thresholds, schedule.floors, half_cells * 1.001 + 1e-9)

    def excess(last: float) -> float:
        return log(novel_release(at(last), limit, pool) / goal)

    last = falling_to(excess, start=sqrt(-2 * log(goal)), tolerance=TOLERANCE)
    return at(last)
