"""The double line: the only place where set union turns private weights into a public set."""

from typing import TYPE_CHECKING

from voxpop.corpus.engine import Engine, check_engine
from voxpop.privacy.secret import Secret
from voxpop.release import Release
from voxpop.rounds.running import run_round

if TYPE_CHECKING:
    from voxpop.union.plan import UnionPlan


def release_union(plan: "UnionPlan", corpus: Engine, seed: int | None) -> Release:
    """Weigh, decide and name the items, round after round; see `SetUnion.release`."""
    check_engine(corpus)
    secret = Secret.of(seed)
    guarantee = plan.guaranteed(private=secret.private)
    remaining = corpus.round_walk()
    for number, round_plan in enumerate(plan.rounds):
        # Released items take no more weight; what is left is a function of released sets (docs/privacy/rounds.md).
        remaining.leave_out(run_round(round_plan, plan.budget, remaining, secret, f"round {number}/length 1"))
    return Release.from_items(remaining.released(), plan, guarantee, corpus.reading, corpus.keys)
