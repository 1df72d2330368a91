"""From a budget to the numbers of adaptive rounds."""

from math import ceil, floor, hypot, log, log2, sqrt
from typing import TYPE_CHECKING

from voxpop.errors import BudgetError, InternalError
from voxpop.privacy.budget import Budget, too_large
from voxpop.privacy.evidence import EvidenceRounds, any_release, novel_release
from voxpop.privacy.gaussian import delta as gaussian_delta
from voxpop.privacy.gaussian import sigma as gaussian_sigma
from voxpop.privacy.joint import ROUNDING
from voxpop.privacy.search import falling_to
from voxpop.privacy.slack import draw_slack, walk_slack
from voxpop.privacy.threshold import lowest_threshold
from voxpop.rounds.at_least import AtLeast, check_promise
from voxpop.rounds.charge import with_cutoff
from voxpop.rounds.plan import RoundPlan
from voxpop.union.adaptive.few import ever_released_with_few, raised
from voxpop.union.adaptive.plan import AdaptivePlan, AdaptiveRound
from voxpop.union.adaptive.schedule import LEAST_POOL, USUAL_THRESHOLD, Schedule, schedule_for
from voxpop.weighting.descent import L2Descent
from voxpop.weighting.rule import CalibratedRule, RuleSetting

if TYPE_CHECKING:
    from voxpop.union.set_union import SetUnion

CELLS_IN_SIGMA = 2**10
NEGLIGIBLE = 1e-4
"""Part of what may be spent up to which a crude bound on novel items will do."""
TOLERANCE = 0.004
"""How near thresholds come to what novel items may spend, in its logarithm."""


def plan_adaptive(
    union: "SetUnion", budget: Budget, schedule: Schedule | None = None, data_sets: tuple[str, ...] = ()
) -> AdaptivePlan:
    """Fill in adaptive rounds; see `SetUnion.plan`."""
    many = max(1, len(data_sets))
    limit, pool = pool_of(union)
    schedule = schedule or schedule_for(limit)
    # Data sets are independent, so what arithmetic costs adds up.
    slack = many * _slack(budget.epsilon, len(schedule.shares), limit, pool)
    if budget.delta <= 2 * slack:
        if 2 * slack >= 1.0:
            raise too_large(budget.epsilon)
        raise BudgetError(
            f"adaptive rounds need a delta of at least {2 * slack:.2g} at epsilon {budget.epsilon:g} with a pool of "
            f"{pool:,} items, got {budget.delta:g}. Choose it far below 1 / (number of users you expect), such as 1e-7."
        )
    # delta of novelty and of noise together; what doubles may err by is left out of it.
    target = (budget.delta - slack) * (1 - 1e-6) / ROUNDING
    weighting_rule = L2Descent()
    # Sensitivities depend a little on cutoffs, cutoffs on noise: a generous cutoff serves all rounds.
    setting = RuleSetting(limit, 2, weighting_rule.bits(_rough_cutoff(budget, target, schedule, union.promise, many)))
    sigmas = _sigmas(budget, target, weighting_rule.sensitivity(setting), schedule, many)
    shares = CalibratedRule(weighting_rule, setting)
    opening = _opening(shares, sigmas[0], schedule, target / many, union.promise)
    later = tuple(_round(shares, sigma, schedule, union.promise) for sigma in sigmas[1:])
    evidence = _evidence(later, schedule, pool, target / many, union.promise)
    if union.promise is not None:
        check_promise(union.promise, ever_released_with_few(union.promise, opening, later, evidence))
    spent = total_delta(opening, later, evidence, budget, pool, many) + slack
    if not spent <= budget.delta:
        raise InternalError("the plan's own numbers exceed the budget; please report the parameters of the call.")
    return AdaptivePlan(union, budget, limit, pool, opening, later, evidence, data_sets, delta=spent)


def pool_of(union: "SetUnion") -> tuple[int, int]:
    """Return the limit and the pool of a mechanism: what was asked for, else public constants."""
    limit = union.limit_used
    return limit, max(limit, LEAST_POOL if union.pool is None else union.pool)


def total_delta(
    opening: RoundPlan,
    later: tuple[AdaptiveRound, ...],
    evidence: EvidenceRounds,
    budget: Budget,
    pool: int,
    data_sets: int = 1,
) -> float:
    """Return what all rounds spend: the chance that a novel item comes out, and delta of the Gaussian rounds.

    Over several data sets, each with these rounds, chances add up, and so do the squares of mu.
    """
    first, mu = opening.pair()
    mus = [each.shares.sensitivity / each.sigma for each in later]
    if any(charged < runs for charged, runs in zip(evidence.mus, mus, strict=True)):
        raise InternalError("a round would run with less noise than was charged for; please report the call.")
    # A bound by the pool alone; where it is negligible the exact recursion is not needed.
    crude = any_release(evidence, pool)
    enough = data_sets * crude < NEGLIGIBLE * budget.delta
    novel = first + (crude if enough else novel_release(evidence, opening.shares.setting.limit, pool))
    # mu^2 = the sum of S^2 / sigma^2 over all rounds and data sets (docs/privacy/adaptive.md, "Shared items").
    known = gaussian_delta(budget.epsilon, hypot(mu, *mus) * sqrt(data_sets))
    # d + delta_G(epsilon; mu), from the numbers that run.
    return min(1.0, (data_sets * novel + known) * ROUNDING)


def _slack(epsilon: float, rounds: int, limit: int, pool: int) -> float:
    """Return what finite arithmetic costs: of decisions, and of draws from a pool that is larger than the limit."""
    return walk_slack(epsilon, 1 + rounds) + (draw_slack(pool, rounds) if pool > limit else 0.0)


def _sigmas(budget: Budget, target: float, sensitivity: float, schedule: Schedule, data_sets: int = 1) -> list[float]:
    """Return the noise of each round: all of them together, of all data sets, spend what novelty leaves."""
    whole = gaussian_sigma(budget.epsilon, target * (1 - schedule.novelty), sensitivity) * (1 + 2.0**-40)
    whole *= sqrt(data_sets)
    shares = (schedule.opening, *schedule.shares)
    # sigma_r = sigma |shares| / share_r, so that the sum of 1 / sigma_r^2 is 1 / sigma^2.
    return [whole * hypot(*shares) / share for share in shares]


def _rough_cutoff(budget: Budget, target: float, schedule: Schedule, promise: AtLeast | None, data_sets: int) -> float:
    """Return more than the highest cutoff of any round."""
    widest = 2 * max(_sigmas(budget, target, 1.0, schedule, data_sets))
    cutoff = (12.0 + schedule.alpha) * widest + 1.0 + sqrt(-log(target / data_sets))
    if promise is None:
        return cutoff
    return cutoff + promise.deviations("gaussian", 1 + len(schedule.shares)) * widest + 1.01 * promise.few


def _opening(
    shares: CalibratedRule, sigma: float, schedule: Schedule, target: float, promise: AtLeast | None
) -> RoundPlan:
    """Return the first round, an ordinary one."""
    # The opening's part of what novel items may cost.
    novel = target * schedule.novelty * schedule.opening_novelty
    lowest = lowest_threshold(shares.novelty, "gaussian", sigma, novel, shares.sensitivity)
    if promise is not None:
        lowest = max(lowest, promise.threshold(shares, "gaussian", sigma, 1 + len(schedule.shares)))
    unit = shares.setting.unit
    threshold = (ceil(lowest * unit) + 1) / unit
    cutoff = threshold + schedule.alpha * sigma
    return RoundPlan(with_cutoff(shares.weighting_rule, shares.setting, cutoff), "gaussian", sigma, threshold)


def _round(shares: CalibratedRule, sigma: float, schedule: Schedule, promise: AtLeast | None) -> AdaptiveRound:
    """Return a later round, its cutoff above what the usual threshold, or that of a promise, asks for."""
    threshold = USUAL_THRESHOLD * sigma
    if promise is not None:
        threshold = max(threshold, promise.threshold(shares, "gaussian", sigma, 1 + len(schedule.shares)))
    bound = with_cutoff(shares.weighting_rule, shares.setting, threshold + schedule.alpha * sigma)
    # A power of two of at most sigma / 1024, but no finer than the grid of weights.
    cell = 2.0 ** floor(log2(sigma / CELLS_IN_SIGMA))
    return AdaptiveRound(bound, sigma, max(cell, 1.0 / shares.setting.unit))


def _evidence(
    later: tuple[AdaptiveRound, ...], schedule: Schedule, pool: int, target: float, promise: AtLeast | None
) -> EvidenceRounds:
    """Return how evidence is added up, thresholds just high enough for what novelty may spend."""
    # What is left of it for the later rounds.
    goal = target * schedule.novelty * (1 - schedule.opening_novelty)
    mus = tuple(each.shares.sensitivity / each.sigma for each in later)
    parts, falls = schedule.parts, schedule.falls
    half_cells = hypot(*(each.cell / each.sigma for each in later)) / 2

    def at(last: float) -> EvidenceRounds:
        thresholds = tuple(last + fall for fall in falls)
        # Half a cell a round, and whatever adding in doubles may lose.
        rounds = EvidenceRounds(mus, parts, thresholds, schedule.floors, half_cells * 1.001 + 1e-9)
        return rounds if promise is None else raised(promise, later, rounds)

    if promise is not None and any_release(at(0.0), pool) < NEGLIGIBLE * goal:
        return at(0.0)
    limit = later[0].shares.setting.limit

    def excess(last: float) -> float:
        return log(novel_release(at(last), limit, pool) / goal)

    # From sqrt(-2 ln d), about where a normal tail is d.
    last = falling_to(excess, start=sqrt(-2 * log(goal)), tolerance=TOLERANCE)
    return at(last)
