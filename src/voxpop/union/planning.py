"""From a budget to the numbers that will run."""

from math import ceil
from typing import TYPE_CHECKING, Literal

from voxpop.errors import BudgetError
from voxpop.privacy.budget import Budget
from voxpop.privacy.calibrate import Scale, calibrate
from voxpop.privacy.slack import numerical_slack
from voxpop.privacy.threshold import NORMS
from voxpop.rounds.at_least import check_promise, released_with_few
from voxpop.rounds.charge import rounds_delta, with_cutoff
from voxpop.rounds.fractions import round_fractions
from voxpop.rounds.plan import RoundPlan
from voxpop.union.plan import UnionPlan
from voxpop.weighting.additive import Count
from voxpop.weighting.rule import CalibratedRule, RuleSetting, WeightingRule
from voxpop.weighting.soundness import sound_rule

if TYPE_CHECKING:
    from voxpop.union.set_union import SetUnion


def plan_union(union: "SetUnion", budget: Budget) -> UnionPlan:
    """Fill in a set union; see `SetUnion.plan`."""
    if union.accounting == "set-only":
        from voxpop.union.set_only import plan_union_set_only

        return plan_union_set_only(union, budget)
    if union.one_item_each:
        return _optimal_plan(union, budget)
    return _threshold_plan(union, budget)


def _optimal_plan(union: "SetUnion", budget: Budget) -> UnionPlan:
    """Plan the optimal selection for one item per user: weights are counts of users."""
    if budget.delta <= numerical_slack(budget.epsilon):
        least = 2 * numerical_slack(budget.epsilon)
        raise BudgetError(
            f"`delta` must be at least {least:.2g} at epsilon {budget.epsilon:g}, got {budget.delta:g}: below that, "
            "deciding with 128 random bits costs more than all of it. Raise `delta` or lower `epsilon`."
        )
    shares = CalibratedRule(Count(), RuleSetting(limit=1, norm=1, bits=0))
    few = 0 if union.promise is None else union.promise.few
    rounds = (RoundPlan(shares, "optimal", scale=0.0, threshold=float(few)),)
    return UnionPlan(union, budget, rounds, delta=budget.delta).checked(budget.delta)


def _threshold_plan(union: "SetUnion", budget: Budget) -> UnionPlan:
    """Plan noise and thresholds, round by round."""
    weighting_rule = sound_rule(union.weighting, union.noise)
    fractions = round_fractions(union.rounds)
    accounting: Literal["joint", "published"] = "published" if union.accounting == "published" else "joint"
    norm = NORMS[union.noise]
    # The grid comes first: sensitivity depends on it, and noise on sensitivity.
    bits = weighting_rule.bits(_rough_cutoff(union, budget, weighting_rule, fractions))
    setting = RuleSetting(union.limit_used, norm, bits)
    # (|T|, w) of items that one user alone holds, and S = 1 + 2 * 2^33 step_error (docs/privacy/set-union.md).
    novelty, sensitivity = weighting_rule.novelty(setting), weighting_rule.sensitivity(setting)
    if novelty.least <= 0.0:
        raise BudgetError(
            f"limit {union.limit_used:,} with epsilon {budget.epsilon:g} leaves a user's items no weight above "
            "rounding; use a smaller limit."
        )
    scales = calibrate(
        budget,
        novelty,
        noise=union.noise,
        accounting=accounting,
        sensitivity=sensitivity,
        fractions=fractions,
        grid=2.0**-bits,
    )
    rounds = tuple(_round(union, weighting_rule, scale, setting) for scale in scales)
    # Both are computed from the rounds as they will run, not from what the calibration aimed at.
    if union.promise is not None:
        check_promise(union.promise, released_with_few(union.promise, rounds))
    delta = rounds_delta(rounds, budget.epsilon)
    return UnionPlan(union, budget, rounds, delta=delta).checked(delta)


def _round(union: "SetUnion", weighting_rule: WeightingRule, scale: Scale, setting: RuleSetting) -> RoundPlan:
    """Fill in one round."""
    threshold = _threshold(union, weighting_rule, scale, setting)
    bound = with_cutoff(weighting_rule, setting, threshold + union.alpha_used * scale.scale)
    return RoundPlan(bound, union.noise, scale.scale, threshold)


def _threshold(union: "SetUnion", weighting_rule: WeightingRule, scale: Scale, setting: RuleSetting) -> float:
    """Return the threshold of a round: what novel items ask for, or what was promised about items of few users."""
    if union.promise is None:
        return scale.threshold
    shares = CalibratedRule(weighting_rule, setting)
    # One unit more than rounding up asks for: the promise is checked again from the numbers that run.
    needed = union.promise.threshold(shares, union.noise, scale.scale, union.rounds)
    return max(scale.threshold, (ceil(needed * setting.unit) + 1) / setting.unit)


def _rough_cutoff(
    union: "SetUnion", budget: Budget, weighting_rule: WeightingRule, fractions: tuple[float, ...]
) -> float:
    """Find about where weights stop rising, on a coarse grid, to choose the fine one."""
    if not weighting_rule.sequential:
        return 1.0
    coarse = RuleSetting(union.limit_used, NORMS[union.noise], bits=48)
    scales = calibrate(
        budget, weighting_rule.novelty(coarse), noise=union.noise, accounting="published", fractions=fractions
    )
    thresholds = [_threshold(union, weighting_rule, scale, coarse) for scale in scales]
    # Plus 1, so that the grid has room for what the fine calibration changes.
    return max(each + union.alpha_used * scale.scale + 1.0 for each, scale in zip(thresholds, scales, strict=True))
