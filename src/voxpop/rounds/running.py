"""One round run on an engine: weigh, then decide by one draw for each item."""

from typing import TYPE_CHECKING

from voxpop.arrays import Int64s
from voxpop.privacy.decisions import ReleaseDecisions
from voxpop.privacy.secret import Secret

if TYPE_CHECKING:
    from voxpop.corpus.engine import RoundWalk, Weights
    from voxpop.privacy.budget import Budget
    from voxpop.privacy.decide import Rule
    from voxpop.rounds.plan import RoundPlan


def run_round(
    round_plan: "RoundPlan", budget: "Budget", remaining: "RoundWalk", secret: Secret, pass_name: str
) -> Int64s:
    """Return the ids that one round releases; only items of bounded sets are ever asked about."""
    histogram = remaining.weigh(round_plan.shares, round_plan.shares.setting.limit, secret, pass_name)
    return chosen(round_plan.rule(budget), histogram, secret, pass_name)


def chosen(rule: "Rule", histogram: "Weights", secret: Secret, pass_name: str) -> Int64s:
    """Return the ids that a rule releases, rising: one draw per id and pass.

    Args:
        rule: how likely an item is released, given its weight.
        histogram: only items of bounded sets are ever asked about.
        secret: source of the draws.
        pass_name: which pass of the release this is.
    """
    return histogram.chosen(ReleaseDecisions(rule, secret, f"noise/{pass_name}"))
