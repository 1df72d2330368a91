"""The double line of adaptive rounds: noisy weights, and what follows from them.

Everything after an `EvidenceStep` is a function of noisy weights: of a Gaussian mechanism on the items that other users
hold, and of noise and a user's own weights on those that nobody else holds.
"""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from voxpop.privacy.decisions import ReleaseDecisions
from voxpop.privacy.evidence_step import EvidenceStep
from voxpop.progress import track
from voxpop.rounds.adaptive.numbers import Rounds

if TYPE_CHECKING:
    from voxpop.corpus.engine import Engine
    from voxpop.privacy.budget import Budget
    from voxpop.privacy.secret import Secret

OPENING = "round 0/length 1"
POOL = "pool/length 1"


def released_in_rounds(rounds: Rounds, budget: "Budget", corpus: "Engine", secret: "Secret") -> pa.LargeStringArray:
    """Return what the rounds are sure of, one after the other, in order of bytes.

    Args:
        rounds: what runs.
        budget: of the plan that they are part of.
        corpus: the private side.
        secret: of all draws and noise.
    """
    pools, opening = corpus.pools(secret), rounds.opening
    decisions = ReleaseDecisions(opening.rule(budget), secret, f"noise/{OPENING}")
    pools.opening(opening.shares, rounds.limit, decisions, OPENING)
    # Once, before the rounds: a user gives weight to at most `pool` items in all of them together.
    pools.draw(rounds.pool, POOL)
    for number, each in enumerate(track(rounds.rounds, "releasing", lambda _: 1, None, "rounds")):
        pass_name = f"round {number + 1}/length 1"
        pools.advance(each.shares, rounds.limit, evidence_step(rounds, number, secret, pass_name), pass_name)
    return pools.released()


def evidence_step(rounds: Rounds, number: int, secret: "Secret", pass_name: str) -> EvidenceStep:
    """Return what a round makes of weights."""
    each, rules = rounds.rounds[number], rounds.evidence
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
