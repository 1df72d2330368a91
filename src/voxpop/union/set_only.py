"""Set-only accounting of set union: capped shares on a coarse grid, and a table of probabilities for each round."""

from typing import TYPE_CHECKING, Final

from voxpop.privacy.budget import Budget
from voxpop.privacy.set_only import plan_set_only, spent_delta, total_allowance
from voxpop.rounds.fractions import round_fractions
from voxpop.rounds.plan import RoundPlan
from voxpop.union.plan import UnionPlan
from voxpop.weighting.capped import CappedRule
from voxpop.weighting.rule import CalibratedRule, RuleSetting

if TYPE_CHECKING:
    from voxpop.union.set_union import SetUnion

CAP: Final = 0.5
"""A public choice for all data; benchmarks/results/set_only.md compares others on two collections."""
LEAST_UNITS: Final = 40
"""Units in the least weight, at least: rounding shares down costs an item less than one part in 40."""


def plan_union_set_only(union: "SetUnion", budget: Budget) -> UnionPlan:
    """Fill in the tables of a set union under set-only accounting; see `SetUnion.plan`."""
    weighting_rule = CappedRule(CAP if union.cap is None else union.cap, own=union.weighting == "weighted")
    bits = 1
    # table is (limit + 1,), units by number of items held; its last entry is the least weight.
    while weighting_rule.table(RuleSetting(union.limit_used, 2, bits))[-1] < LEAST_UNITS:
        bits += 1
    shares = CalibratedRule(weighting_rule, RuleSetting(union.limit_used, 2, bits))
    tables = plan_set_only(budget, weighting_rule.table(shares.setting), round_fractions(union.rounds))
    # Allowances add up over rounds; then Renyi divergence becomes delta once (docs/privacy/set-only.md, "Rounds").
    delta = spent_delta(total_allowance(tables), budget.epsilon, union.limit_used, several=union.rounds > 1)
    rounds = tuple(
        RoundPlan(shares, "set-only", 0.0, each.table.half / shares.setting.unit, set_only=each) for each in tables
    )
    return UnionPlan(union, budget, rounds, delta=delta).checked(delta)
