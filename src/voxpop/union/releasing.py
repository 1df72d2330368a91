"""The double line: the only place where set union turns private weights into a public set."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from voxpop.privacy.coins import Coins
from voxpop.privacy.secret import Secret
from voxpop.release import Release

if TYPE_CHECKING:
    from voxpop.corpus import Corpus, Histogram
    from voxpop.corpus.remaining import Remaining
    from voxpop.privacy.budget import Budget
    from voxpop.privacy.decide import Rule
    from voxpop.union.plan import RoundPlan, UnionPlan


def release_union(plan: "UnionPlan", corpus: "Corpus", seed: int | None) -> Release:
    """Weigh, decide and name the items, round after round; see `SetUnion.release`."""
    secret = Secret.fresh() if seed is None else Secret.from_seed(seed)
    remaining = corpus.remaining()
    for number, round_plan in enumerate(plan.rounds):
        remaining.leave_out(run_round(round_plan, plan.budget, remaining, secret, f"round {number}/length 1"))
    guarantee = replace(plan.guarantee, private=secret.private)
    return Release.from_items(remaining.released(), plan, guarantee, corpus.reading, corpus.keys)


def run_round(
    round_plan: "RoundPlan", budget: "Budget", remaining: "Remaining", secret: Secret, occasion: str
) -> NDArray[np.int64]:
    """Return the ids that one round releases; only items of bounded sets are ever asked about."""
    histogram = remaining.weigh(round_plan.shares, round_plan.shares.setting.limit, secret, occasion)
    return chosen(round_plan.rule(budget), histogram, secret, occasion)


def chosen(rule: "Rule", histogram: "Histogram", secret: Secret, occasion: str) -> NDArray[np.int64]:
    """Return the ids that a rule releases, rising: one draw per id and occasion.

    Args:
        rule: how likely an item is released, given its weight.
        histogram: only items of bounded sets are ever asked about.
        secret: source of the draws.
        occasion: which pass of the release this is.
    """
    return histogram.chosen(Coins(rule, secret, f"noise/{occasion}"))
