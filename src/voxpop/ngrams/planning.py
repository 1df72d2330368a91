"""From a budget to the numbers that will run."""

from dataclasses import replace
from math import nextafter, sqrt
from typing import TYPE_CHECKING

from voxpop.errors import BudgetError
from voxpop.ngrams.later import NORM, grid_round, later_round, later_setting, threshold_for
from voxpop.ngrams.lengths import CROWDED, LengthPlan
from voxpop.ngrams.plan import NGramsPlan
from voxpop.ngrams.schedule import WORDS_NOVELTY, WORDS_PART
from voxpop.ngrams.slack import ngrams_slack
from voxpop.ngrams.spending import IndividualSpending, spending_of
from voxpop.ngrams.spurious import allowance
from voxpop.ngrams.sweep import sweeping
from voxpop.privacy.budget import Budget, too_large
from voxpop.privacy.calibrate import calibrate
from voxpop.rounds.adaptive.numbers import AdaptiveRounds
from voxpop.rounds.adaptive.planning import plan_rounds, pool_for, total_delta
from voxpop.rounds.adaptive.schedule import schedule_for
from voxpop.rounds.charge import check_charged, rounds_delta
from voxpop.rounds.plan import RoundPlan
from voxpop.weighting.rule import RuleSetting
from voxpop.weighting.soundness import WEIGHTING_RULES

if TYPE_CHECKING:
    from voxpop.ngrams.ngrams import NGrams


def plan_ngrams(ngrams: "NGrams", budget: Budget) -> NGramsPlan:
    """Fill in an extraction; see `NGrams.plan`."""
    slack = ngrams_slack(ngrams, budget.epsilon)
    if budget.delta <= 2 * slack:
        if 2 * slack >= 1.0:
            raise too_large(budget.epsilon)
        raise BudgetError(
            f"n-grams need a delta of at least {2 * slack:.2g} at epsilon {budget.epsilon:g}, got {budget.delta:g}: "
            "without it no word that is unknown beforehand may be released. Choose it far below 1 / (number of users "
            "you expect), such as 1e-7; it must not be computed from the data."
        )
    rule = ngrams.shares
    # What 128 bits cost comes off first, rounded down.
    exact = Budget(budget.epsilon, nextafter(budget.delta - slack, 0.0))
    first, later, spent = (_in_rounds if ngrams.words == "adaptive" else _in_one)(ngrams, exact, rule.first)
    plan = NGramsPlan(ngrams, budget, first, later, _lengths(ngrams, first, later), delta=spent + slack)
    return plan.checked(plan.delta)


def _in_one(ngrams: "NGrams", budget: Budget, share: float) -> tuple[RoundPlan, float, float]:
    """Return one round for length 1, the mu^2 of what comes later, and the delta of both."""
    first = _first_round(ngrams, budget, share)
    later = _rest((first.shares.sensitivity / first.scale) ** 2, share) if ngrams.max_length > 1 else 0.0
    # Length 1 with a Gaussian of mu^2 = M behind it (docs/privacy/ngrams.md, "With length 1").
    return first, later, rounds_delta([first], budget.epsilon, later)


def _rest(square: float, share: float) -> float:
    """Return what a length 1 of so much mu^2, a share of all, leaves to later ones, rounded down.

    It is fixed before any data are read.
    """
    return nextafter(square * (1 - 2.0**-40) * (1 / share - 1), 0.0)


def _in_rounds(ngrams: "NGrams", budget: Budget, share: float) -> tuple[AdaptiveRounds, float, float]:
    """Return adaptive rounds for length 1, the mu^2 of what comes later, and the delta of both."""
    limit, more = ngrams.limits[0], ngrams.max_length > 1
    schedule = schedule_for(limit)
    if more:
        share, schedule = share * WORDS_PART, replace(schedule, novelty=WORDS_NOVELTY)
    first = plan_rounds(budget.epsilon, budget.delta, limit, pool_for(limit), schedule, share=share)
    later = _rest(first.square, share) if more else 0.0
    # Rounds with a Gaussian of mu^2 = M behind them (docs/privacy/adaptive.md, "What follows").
    return first, later, total_delta(first.opening, first.rounds, first.evidence, budget, first.pool, rest=later)


def _first_round(ngrams: "NGrams", budget: Budget, share: float) -> RoundPlan:
    """Return the plan of length 1, which leaves the rest of mu^2 to later lengths."""
    weighting_rule = WEIGHTING_RULES[ngrams.weighting]
    rough = RuleSetting(ngrams.limits[0], NORM, bits=48)
    # mu of all later lengths, over mu_1.
    rest = sqrt(1 / share - 1)
    (coarse,) = calibrate(budget, weighting_rule.novelty(rough), accounting="published", rest=rest)
    setting = RuleSetting(
        ngrams.limits[0], NORM, weighting_rule.bits(coarse.threshold + ngrams.alpha * coarse.scale + 1.0)
    )
    sensitivity = weighting_rule.sensitivity(setting)
    (scale,) = calibrate(
        budget,
        weighting_rule.novelty(setting),
        accounting=ngrams.accounting,
        sensitivity=sensitivity,
        grid=2.0**-setting.bits,
        rest=rest * sensitivity,
    )
    return grid_round(weighting_rule, setting, scale.scale, scale.threshold, ngrams.alpha)


def _lengths(ngrams: "NGrams", first: RoundPlan | AdaptiveRounds, later: float) -> tuple[LengthPlan, ...]:
    """Run the budgets without data: every length takes its usual share, and measures where it may."""
    lengths = [LengthPlan(1, first.scale, None, first.threshold, first.threshold)]
    spending = spending_of(ngrams, later)
    for length in range(2, ngrams.max_length + 1):
        measured = spending.measurement(length, ngrams.measurement).sigma if ngrams.guide else None
        square = spending.vote(length, None)
        setting = later_setting(ngrams, length, square, 1, CROWDED, spending.reach)
        charge = spending.pay(square, WEIGHTING_RULES[ngrams.weighting].sensitivity(setting))
        low, high = (threshold_for(ngrams.eta, charge.sigma, 1, many) for many in (1, CROWDED))
        check_charged(later_round(ngrams, setting, charge.sigma, high).shares, charge.sigma, charge.square)
        lengths.append(LengthPlan(length, charge.sigma, measured, low, high, allowance(ngrams, length)))
        asked = spending.prevote(length)
        if asked is not None:
            later_setting(ngrams, length, asked, 1, CROWDED, spending.reach)
    if isinstance(spending, IndividualSpending) and ngrams.max_length > 1:
        later_setting(sweeping(ngrams), 2, spending.sweep(), 1, CROWDED, spending.reach)
    return tuple(lengths)
