"""From a share of a budget to the numbers of adaptive rounds, whoever runs them."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, floor, hypot, log, log2, nextafter, sqrt

from voxpop.errors import InternalError
from voxpop.privacy.budget import Budget
from voxpop.privacy.evidence import EvidenceRounds, any_release, novel_release
from voxpop.privacy.gaussian import delta as gaussian_delta
from voxpop.privacy.gaussian import sigma as gaussian_sigma
from voxpop.privacy.joint import ROUNDING
from voxpop.privacy.search import falling_to
from voxpop.privacy.slack import draw_slack, walk_slack
from voxpop.privacy.spend import Spend, gaussian_spend
from voxpop.privacy.threshold import lowest_threshold
from voxpop.rounds.adaptive.few import raised
from voxpop.rounds.adaptive.numbers import AdaptiveRound, AdaptiveRounds, Rounds, mus_of
from voxpop.rounds.adaptive.schedule import LEAST_POOL, USUAL_THRESHOLD, Schedule
from voxpop.rounds.at_least import AtLeast
from voxpop.rounds.charge import with_cutoff
from voxpop.rounds.plan import RoundPlan
from voxpop.weighting.rule import CalibratedRule, RuleSetting
from voxpop.weighting.soundness import WEIGHTING_RULES

CELLS_IN_SIGMA = 2**10
NEGLIGIBLE = 1e-4
"""Part of what may be spent up to which a crude bound on novel items will do."""
TOLERANCE = 0.004
"""How near thresholds come to what novel items may spend, in its logarithm."""


def plan_rounds(
    epsilon: float,
    delta: float,
    limit: int,
    pool: int,
    schedule: Schedule,
    *,
    promise: AtLeast | None = None,
    data_sets: int = 1,
    share: float = 1.0,
) -> AdaptiveRounds:
    """Fill in opening, rounds and evidence.

    Args:
        epsilon: of the whole.
        delta: of novelty and of all Gaussian noise together, slack left out.
        limit: most items of one user in a round.
        pool: most items of one user in all rounds after the opening.
        schedule: how the rounds share what they have.
        promise: about items of few users, where there is one.
        data_sets: how many share the whole evenly, each with rounds of its own.
        share: these rounds' part of all mu^2; what comes after them has the rest.
    """
    # What doubles may err by is left out of it.
    target = delta * (1 - 1e-6) / ROUNDING
    weighting_rule = WEIGHTING_RULES["l2-descent"]

    def sigmas(sensitivity: float) -> list[float]:
        whole = gaussian_sigma(epsilon, target * (1 - schedule.novelty), sensitivity) * (1 + 2.0**-40)
        whole *= sqrt(data_sets / share)
        parts = (schedule.opening, *schedule.shares)
        # sigma_r = sigma |shares| / share_r, so that the sum of 1 / sigma_r^2 is 1 / sigma^2.
        return [whole * hypot(*parts) / part for part in parts]

    # Sensitivities depend a little on cutoffs, cutoffs on noise: a generous cutoff serves all rounds.
    cutoff = _rough_cutoff(max(sigmas(1.0)), target / data_sets, schedule, promise)
    setting = RuleSetting(limit, 2, weighting_rule.bits(cutoff))
    first, *others = sigmas(weighting_rule.sensitivity(setting))
    shares = CalibratedRule(weighting_rule, setting)
    opening = _opening(shares, first, schedule, target / data_sets, promise)
    later = tuple(_round(shares, sigma, schedule, promise) for sigma in others)
    evidence = _evidence(later, schedule, pool, target / data_sets, promise)
    return AdaptiveRounds(limit, pool, opening, later, evidence)


def total_delta(
    opening: RoundPlan,
    later: Sequence[AdaptiveRound],
    evidence: EvidenceRounds,
    budget: Budget,
    pool: int,
    data_sets: int = 1,
    rest: float = 0.0,
) -> float:
    """Return what all rounds spend: the chance that a novel item comes out, and delta of the Gaussian rounds.

    Over several data sets, each with these rounds, chances add up, and so do the squares of mu.

    Args:
        opening: the first round.
        later: the rounds after it.
        evidence: how they are added up.
        budget: at whose epsilon delta is asked for.
        pool: most items of one user in the later rounds.
        data_sets: how many have such rounds.
        rest: mu^2 of Gaussian releases afterwards, about what came out (docs/privacy/adaptive.md, "What follows").
    """
    novel, mu = _paired(opening, later, evidence, pool, NEGLIGIBLE * budget.delta / data_sets)
    # mu^2 = the sum of S^2 / sigma^2 over all rounds and data sets (docs/privacy/adaptive.md, "Shared items").
    known = gaussian_delta(budget.epsilon, hypot(mu * sqrt(data_sets), sqrt(rest)))
    # d + delta_G(epsilon; mu), from the numbers that run.
    return min(1.0, (data_sets * novel + known) * ROUNDING)


def rounds_spend(rounds: Rounds, slack: float, rest: float = 0.0) -> Spend:
    """Return by which rounds compose with other releases (docs/privacy/composition.md, "Adaptive rounds"), rounded up.

    Args:
        rounds: what runs.
        slack: what finite arithmetic costs.
        rest: mu^2 of Gaussian releases afterwards.
    """
    novel, mu = _paired(rounds.opening, rounds.rounds, rounds.evidence, rounds.pool, 0.0)
    return replace(gaussian_spend([(min(1.0, novel), mu)], slack, rest), apart=True)


def _paired(
    opening: RoundPlan, later: Sequence[AdaptiveRound], evidence: EvidenceRounds, pool: int, negligible: float
) -> tuple[float, float]:
    """Return the chance that a novel item comes out, and mu of all rounds together.

    Up to a negligible chance a crude bound, by the pool alone, will do instead of the exact recursion.
    """
    first, _ = opening.pair()
    mus = mus_of(opening, later)
    if any(charged < runs for charged, runs in zip(evidence.mus, mus[1:], strict=True)):
        raise InternalError("a round would run with less noise than was charged for; please report the call.")
    crude = any_release(evidence, pool)
    novel = crude if crude < negligible else novel_release(evidence, opening.shares.setting.limit, pool)
    return first + novel, hypot(*mus)


def pool_for(limit: int, asked: int | None = None) -> int:
    """Return the pool for a limit: what was asked for, else a public constant; never below the limit."""
    return max(limit, LEAST_POOL if asked is None else asked)


def rounds_slack(epsilon: float, rounds: int, limit: int, pool: int) -> float:
    """Return what finite arithmetic costs: of decisions, and of draws from a pool that is larger than the limit."""
    return walk_slack(epsilon, 1 + rounds) + (draw_slack(pool, rounds) if pool > limit else 0.0)


def _rough_cutoff(widest: float, target: float, schedule: Schedule, promise: AtLeast | None) -> float:
    """Return more than the highest cutoff of any round, for noise of at most half of `2 * widest`."""
    wide = 2 * widest
    cutoff = (12.0 + schedule.alpha) * wide + 1.0 + sqrt(-log(target))
    if promise is None:
        return cutoff
    return cutoff + promise.deviations("gaussian", 1 + len(schedule.shares)) * wide + 1.01 * promise.few


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
        # Far out the bound is below all doubles.
        return log(max(novel_release(at(last), limit, pool), nextafter(0.0, 1.0)) / goal)

    # From sqrt(-2 ln d), about where a normal tail is d.
    last = falling_to(excess, start=sqrt(-2 * log(goal)), tolerance=TOLERANCE)
    return at(last)
