"""The double line of adaptive rounds: noisy weights, and what follows from them.

Everything after an `EvidenceStep` is a function of noisy weights: of a Gaussian mechanism on the items that other users
hold, and of noise and a user's own weights on those that nobody else holds.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from voxpop.corpus.engine import Engine, check_engine
from voxpop.errors import InputError
from voxpop.privacy.decisions import ReleaseDecisions
from voxpop.privacy.evidence_step import EvidenceStep
from voxpop.privacy.secret import Secret
from voxpop.progress import track
from voxpop.release import Release

if TYPE_CHECKING:
    from voxpop.union.adaptive.plan import AdaptivePlan

OPENING = "round 0/length 1"
POOL = "pool/length 1"


def release_adaptive(plan: "AdaptivePlan", corpus: Engine, seed: int | None) -> Release:
    """Release what the rounds are sure of, one after the other; see `SetUnion.release`."""
    check_engine(corpus)
    if plan.data_sets:
        raise InputError(
            f"the plan is for data sets named {', '.join(plan.data_sets)}: give a dictionary with a corpus for each."
        )
    return _released(plan, corpus, seed)


def _released(plan: "AdaptivePlan", corpus: Engine, seed: int | None) -> Release:
    secret = Secret.of(seed)
    limit, opening = plan.limit, plan.opening
    pools = corpus.pools(secret)
    pools.opening(
        opening.shares, limit, ReleaseDecisions(opening.rule(plan.budget), secret, f"noise/{OPENING}"), OPENING
    )
    # Once, before the rounds: a user gives weight to at most `pool` items in all of them together.
    pools.draw(plan.pool, POOL)
    for number, each in enumerate(track(plan.rounds, "releasing", lambda _: 1, None, "rounds")):
        pass_name = f"round {number + 1}/length 1"
        pools.advance(each.shares, limit, evidence_step(plan, number, secret, pass_name), pass_name)
    guarantee = replace(plan.guarantee, private=secret.private)
    return Release.from_items(pools.released(), plan, guarantee, corpus.reading, corpus.keys)


def release_several(plan: "AdaptivePlan", corpora: Mapping[str, Engine], seed: int | None) -> dict[str, Release]:
    """Release from several data sets, each with noise of its own; see `SetUnion.release`."""
    if set(corpora) != set(plan.data_sets):
        raise InputError(
            f"the plan is for data sets named {', '.join(plan.data_sets) or 'nothing: plan with `data_sets`'}; got "
            f"{', '.join(map(str, corpora)) or 'none'}."
        )
    for each in corpora.values():
        check_engine(each)
    # No two data sets share a draw: only so do their noises add up as squares of mu (docs/privacy/adaptive.md, "Several
    # data sets").
    seeds = {name: None if seed is None else seed + number for number, name in enumerate(plan.data_sets)}
    return {name: _released(plan, corpora[name], seeds[name]) for name in corpora}


def evidence_step(plan: "AdaptivePlan", number: int, secret: Secret, pass_name: str) -> EvidenceStep:
    """Return what a round makes of weights."""
    each, rules = plan.rounds[number], plan.evidence
    # Levels are stated in standard deviations of the evidence's own noise; the step compares sums.
    unit, spread = each.shares.setting.unit, float(rules.spreads[number])
    return EvidenceStep(
        sigma=each.sigma,
        unit=unit,
        cell=round(each.cell * unit),
        part=rules.parts[number],
        threshold=rules.thresholds[number] * spread,
        # No floor in the last round: nothing follows for which an item could be dropped.
        floor=rules.floors[number] * spread if number < len(rules.floors) else -np.inf,
        secret=secret,
        purpose=f"noise/{pass_name}",
    )
