"""From a budget to the numbers of focused rounds."""

from dataclasses import replace
from math import ceil, floor, hypot, log, log2, sqrt
from typing import TYPE_CHECKING

from voxpop.errors import BudgetError, InternalError
from voxpop.privacy.budget import Budget
from voxpop.privacy.evidence import EvidenceRounds, novel_release
from voxpop.privacy.gaussian import delta as gaussian_delta
from voxpop.privacy.gaussian import sigma as gaussian_sigma
from voxpop.privacy.joint import ROUNDING
from voxpop.privacy.search import crossing
from voxpop.privacy.slack import walk_slack
from voxpop.privacy.threshold import lowest_threshold, release_probability
from voxpop.rounds.plan import RoundPlan
from voxpop.union.focus.plan import FocusPlan, FocusRound
from voxpop.union.focus.schedule import SCHEDULE, Schedule
from voxpop.weighting.cells import NORMS, sound_sharing
from voxpop.weighting.sharing import BoundShares, Setting, Sharing

if TYPE_CHECKING:
    from voxpop.union.set_union import SetUnion

CELLS_IN_SIGMA = 2**10
COARSE, FINE = 1 / 40, 1 / 150
"""Steps of the grids of evidence: to search with, and to promise with."""
CORRECTIONS, SPARED = 2, 0.02
"""How often a fine grid corrects what a coarse one found, and what it leaves of the logarithm of the bound."""


def plan_focused(union: "SetUnion", budget: Budget, schedule: Schedule = SCHEDULE) -> FocusPlan:
    """Fill in a focused set union; see `SetUnion.plan`."""
    sharing = sound_sharing(union.weighting, union.noise)
    slack = walk_slack(budget.epsilon, 1 + len(schedule.shares))
    if budget.delta <= 2 * slack:
        raise BudgetError(
            f"focused rounds need a delta of at least {2 * slack:.2g} at epsilon {budget.epsilon:g}, got "
            f"{budget.delta:g}. Choose it far below 1 / (number of users you expect), such as 1e-7."
        )
    target = (budget.delta - slack) * (1 - 1e-6) / ROUNDING
    # Sensitivities depend a little on cutoffs, cutoffs on noise: a generous cutoff serves all rounds.
    setting = Setting(union.limit, NORMS[union.noise], sharing.bits(_rough_cutoff(budget, target, schedule)))
    sigmas = _sigmas(budget, target, sharing.sensitivity(setting), schedule)
    opening = _opening(sharing, setting, sigmas[0], schedule, target)
    later = tuple(_round(sharing, setting, sigma, schedule) for sigma in sigmas[1:])
    evidence = _evidence(sharing.sensitivity(setting), later, schedule, union.limit, target)
    spent = total_delta(opening, later, evidence, budget) + slack
    if not spent <= budget.delta:
        raise InternalError("the plan's own numbers exceed the budget; please report the parameters of the call.")
    return FocusPlan(union, budget, opening, later, evidence, delta=spent)


def total_delta(opening: RoundPlan, later: tuple[FocusRound, ...], evidence: EvidenceRounds, budget: Budget) -> float:
    """Return what all rounds spend: the chance that a novel item comes out, and delta of the Gaussian rounds."""
    sharing, setting = opening.shares.sharing, opening.shares.setting
    sensitivity = sharing.sensitivity(setting)
    first = release_probability(sharing.novelty(setting), "gaussian", opening.scale, opening.threshold, sensitivity)
    mu = hypot(sensitivity / opening.scale, *(sensitivity / each.sigma for each in later))
    novel = first + novel_release(evidence, setting.limit)
    return min(1.0, (novel + gaussian_delta(budget.epsilon, mu)) * ROUNDING)


def _sigmas(budget: Budget, target: float, sensitivity: float, schedule: Schedule) -> list[float]:
    """Return the noise of each round: all of them together spend what novelty leaves."""
    whole = gaussian_sigma(budget.epsilon, target * (1 - schedule.novelty), sensitivity) * (1 + 2.0**-40)
    shares = (schedule.opening, *schedule.shares)
    return [whole * hypot(*shares) / share for share in shares]


def _rough_cutoff(budget: Budget, target: float, schedule: Schedule) -> float:
    """Return more than the highest cutoff of any round."""
    return (12.0 + schedule.alpha) * 2 * max(_sigmas(budget, target, 1.0, schedule)) + 1.0 + sqrt(-log(target))


def _opening(sharing: Sharing, setting: Setting, sigma: float, schedule: Schedule, target: float) -> RoundPlan:
    """Return the first round, an ordinary one."""
    novel = target * schedule.novelty * schedule.opening_novelty
    sensitivity = sharing.sensitivity(setting)
    lowest = lowest_threshold(sharing.novelty(setting), "gaussian", sigma, novel, sensitivity)
    threshold = (ceil(lowest * setting.unit) + 1) / setting.unit
    bound = BoundShares(sharing, _cut(sharing, setting, threshold + schedule.alpha * sigma))
    return RoundPlan(bound, "gaussian", sigma, threshold)


def _round(sharing: Sharing, setting: Setting, sigma: float, schedule: Schedule) -> FocusRound:
    """Return a later round, its cutoff above what a threshold of 5.5 standard deviations asks for."""
    bound = BoundShares(sharing, _cut(sharing, setting, (5.5 + schedule.alpha) * sigma))
    cell = 2.0 ** floor(log2(sigma / CELLS_IN_SIGMA))
    return FocusRound(bound, sigma, max(cell, 1.0 / setting.unit))


def _cut(sharing: Sharing, setting: Setting, cutoff: float) -> Setting:
    """Return the setting with a cutoff, where the weighting has one; never below what one user can give."""
    return replace(setting, cutoff=ceil(max(cutoff, 1.0) * setting.unit)) if sharing.sequential else setting


def _evidence(
    sensitivity: float, later: tuple[FocusRound, ...], schedule: Schedule, limit: int, target: float
) -> EvidenceRounds:
    """Return how evidence is added up, thresholds just high enough for what novelty may spend.

    A coarse grid finds about where, from above, since it bounds more loosely. The bound falls with the threshold about
    as a normal tail does, which tells how much lower a fine grid allows.
    """
    goal = target * schedule.novelty * (1 - schedule.opening_novelty)
    mus = tuple(sensitivity / each.sigma for each in later)
    parts = tuple(mu**schedule.power for mu in mus)
    falls = [schedule.fall * number for number in reversed(range(len(later)))]
    half_cells = hypot(*(each.cell / each.sigma for each in later)) / 2

    def at(last: float) -> EvidenceRounds:
        thresholds = tuple(last + fall for fall in falls)
        # Half a cell a round, and whatever adding in doubles may lose.
        return EvidenceRounds(mus, parts, thresholds, schedule.floors, half_cells * 1.001 + 1e-9)

    def excess(last: float, fineness: float) -> float:
        return log(novel_release(at(last), limit, fineness) / goal)

    least = sqrt(-2 * log(goal))
    last = crossing(lambda value: excess(value, COARSE), least - 2.0, least + 4.0, 0.01)
    for _ in range(CORRECTIONS):
        lower = last + (excess(last, FINE) + SPARED) / last
        last = lower if lower < last and excess(lower, FINE) <= 0 else last
    return at(last)
