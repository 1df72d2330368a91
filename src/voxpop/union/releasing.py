"""The double line: the only place where set union turns private weights into a public set."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from voxpop.privacy.decide import decide
from voxpop.privacy.secret import Secret
from voxpop.release import Release
from voxpop.release.grams import array_of

if TYPE_CHECKING:
    from voxpop.corpus import Corpus, Histogram
    from voxpop.privacy.budget import Budget
    from voxpop.privacy.decide import Rule
    from voxpop.union.plan import RoundPlan, UnionPlan

IDS_AT_ONCE = 1 << 20


def release_union(plan: "UnionPlan", corpus: "Corpus", seed: int | None) -> Release:
    """Weigh, decide and name the items, round after round; see `SetUnion.release`."""
    secret = Secret.fresh() if seed is None else Secret.from_seed(seed)
    remaining = np.ones(len(corpus.vocabulary), np.uint8)
    for number, round_plan in enumerate(plan.rounds):
        released = run_round(round_plan, plan.budget, corpus, secret, remaining, f"round {number}/length 1")
        remaining[released] = 0
    items = corpus.vocabulary.take(array_of(np.flatnonzero(remaining == 0)))
    guarantee = replace(plan.guarantee, private=secret.private)
    return Release.from_items(items, plan, guarantee, corpus.reading)


def run_round(
    round_plan: "RoundPlan",
    budget: "Budget",
    corpus: "Corpus",
    secret: Secret,
    remaining: NDArray[np.uint8],
    occasion: str,
) -> NDArray[np.int64]:
    """Return the ids that one round releases; only items of bounded sets are ever asked about."""
    candidates = None if remaining.all() else remaining
    limit = round_plan.shares.setting.limit
    histogram = corpus.weigh(round_plan.shares, limit, candidates, secret, occasion)
    return chosen(round_plan.rule(budget), histogram, secret, occasion)


def chosen(rule: "Rule", histogram: "Histogram", secret: Secret, occasion: str) -> NDArray[np.int64]:
    """Return the ids that a rule releases: one draw per id and occasion."""
    released = [np.empty(0, np.int64)]
    for start in range(0, histogram.ids.size, IDS_AT_ONCE):
        ids = histogram.ids[start : start + IDS_AT_ONCE]
        draws = secret.draws(f"noise/{occasion}", ids.astype(np.uint64), 0)
        released.append(ids[decide(rule, histogram.weights[start : start + IDS_AT_ONCE], draws)])
    return np.concatenate(released)
