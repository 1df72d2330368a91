"""The double line: the only place where set union turns private weights into a public set."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from voxpop.privacy.coins import Coins
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.secret import Secret
from voxpop.release import Release

if TYPE_CHECKING:
    from voxpop.corpus import Corpus, Histogram
    from voxpop.privacy.decide import Rule
    from voxpop.union.plan import UnionPlan


def release_union(plan: "UnionPlan", corpus: "Corpus", seed: int | None) -> Release:
    """Weigh, decide and name the items, round after round; see `SetUnion.release`."""
    secret = Secret.fresh() if seed is None else Secret.from_seed(seed)
    remaining = corpus.remaining()
    for number, round_plan in enumerate(plan.rounds):
        occasion, limit = f"round {number}/length 1", round_plan.shares.setting.limit
        histogram = remaining.weigh(round_plan.shares, limit, secret, occasion)
        remaining.leave_out(chosen(round_plan.rule(plan.budget), histogram, secret, occasion))
    guarantee = Guarantee(plan.budget.epsilon, plan.budget.delta, private=secret.private)
    return Release.from_items(remaining.released(), plan, guarantee)


def chosen(
    rule: "Rule", histogram: "Histogram", secret: Secret, occasion: str, lucky: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Return the ids that a rule releases, rising: one draw per id and occasion.

    Args:
        rule: how likely an item is released, given its weight.
        histogram: only items of bounded sets are ever asked about.
        secret: source of the draws.
        occasion: which pass of the release this is.
        lucky: ids that are released where they have no weight.
    """
    return histogram.chosen(Coins(rule, secret, f"noise/{occasion}"), lucky)
