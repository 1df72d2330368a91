"""The privacy boundary of rounds: weigh on an engine, then release or drop items by one draw for each.

Everything after an `EvidenceStep` is a function of noisy weights: of a Gaussian mechanism on the items that other users
hold, and of noise and a user's own weights on the items that only this user holds.
"""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from voxpop.kernels.arrays import Int64s
from voxpop.mechanisms.rounds.adaptive import Rounds
from voxpop.privacy.cumulative import EvidenceStep
from voxpop.privacy.decisions import ReleaseDecisions
from voxpop.privacy.secret import Secret
from voxpop.reading.progress import track

if TYPE_CHECKING:
    from voxpop.engine.contract import Engine, RoundWalk, Weights
    from voxpop.mechanisms.rounds.plan import RoundPlan
    from voxpop.privacy.budget import Budget
    from voxpop.privacy.decisions import Rule


def run_round(
    round_plan: "RoundPlan", budget: "Budget", remaining: "RoundWalk", secret: Secret, pass_name: str
) -> Int64s:
    """Return the ids that one round releases; only items of bounded sets are candidates."""
    histogram = remaining.weigh(round_plan.shares, round_plan.shares.setting.limit, secret, pass_name)
    return chosen(round_plan.rule(budget), histogram, secret, pass_name)


def chosen(rule: "Rule", histogram: "Weights", secret: Secret, pass_name: str) -> Int64s:
    """Return the ids that a rule releases, rising: one draw per id and pass.

    Args:
        rule: probability that an item is released, given its weight.
        histogram: only items of bounded sets are candidates.
        secret: source of the draws.
        pass_name: which pass of the release this is.
    """
    return histogram.chosen(ReleaseDecisions(rule, secret, f"noise/{pass_name}"))


OPENING = "round 0/length 1"
POOL = "pool/length 1"


def released_in_rounds(rounds: Rounds, budget: "Budget", corpus: "Engine", secret: "Secret") -> pa.LargeStringArray:
    """Return the items that each round releases, in order of bytes.

    Args:
        rounds: the rounds that run.
        budget: of the plan that they are part of.
        corpus: the private side.
        secret: of all draws and noise.
    """
    pools, opening = corpus.pools(secret), rounds.opening
    decisions = ReleaseDecisions(opening.rule(budget), secret, f"noise/{OPENING}")
    pools.opening(opening.shares, rounds.limit, decisions, OPENING)
    # Once, before the rounds: a user gives weight to at most `pool` items in all of them together.
    pools.draw(rounds.pool, POOL)
    for number, each in enumerate(track(rounds.rounds, "releasing", lambda _: 1, None, "rounds", exact=True)):
        pass_name = f"round {number + 1}/length 1"
        pools.advance(each.shares, rounds.limit, evidence_step(rounds, number, secret, pass_name), pass_name)
    return pools.released()


def evidence_step(rounds: Rounds, number: int, secret: "Secret", pass_name: str) -> EvidenceStep:
    """Return the outcome of a round from weights."""
    each, rules = rounds.rounds[number], rounds.evidence
    # Levels are stated in standard deviations of the noise of the cumulative score; the step compares sums.
    unit, spread = each.shares.setting.unit, float(rules.spreads[number])
    return EvidenceStep(
        sigma=each.sigma,
        unit=unit,
        cell=round(each.cell * unit),
        part=rules.parts[number],
        threshold=rules.thresholds[number] * spread,
        # The last round has no drop threshold, because no round follows.
        floor=rules.floors[number] * spread if number < len(rules.floors) else -np.inf,
        secret=secret,
        purpose=f"noise/{pass_name}",
    )
