"""The worst cases of what is read and weighed within a memory limit: set union and n-grams where order matters.

The same cases and the same exact probabilities as in memory: only where the users stand in order, how they are weighed
and how pairs are numbered is other code (docs/design/0009-spilling.md).
"""

from collections.abc import Iterator
from dataclasses import replace

from voxpop.errors import InternalError
from voxpop.testing.audit.adaptive_cases import near_adaptive
from voxpop.testing.audit.case import Case
from voxpop.testing.audit.engines import Engine, within_limit
from voxpop.testing.audit.union_cases import BUDGET, EXCESS, LIMIT, alone, near
from voxpop.testing.audit.votes_cases import votes_cases
from voxpop.union.adaptive.plan import AdaptivePlan
from voxpop.union.plan import UnionPlan
from voxpop.union.set_union import SetUnion

COPIES = 8_000
"""Of one release of set union, so that its items fit."""


def memory_cases() -> Iterator[Case]:
    """Yield the cases, each named after where it runs."""
    for case in engine_cases(within_limit, COPIES):
        yield replace(case, mechanism=f"{case.mechanism}, within a limit")


def engine_cases(engine: Engine, copies: int) -> Iterator[Case]:
    """Yield cases of set union and of n-grams on any engine.

    Args:
        engine: where collections are read and weighed.
        copies: most in one release of set union.
    """
    plan = SetUnion(limit=LIMIT, weighting="l2-descent").plan(BUDGET)
    if not isinstance(plan, UnionPlan):
        raise InternalError("a classic set union has a plan of its own; please report.")
    yield near(plan, engine, copies)
    yield alone(plan, LIMIT, "alone", engine, copies)
    yield alone(plan, EXCESS * LIMIT, "over", engine, copies)
    adaptive = SetUnion(limit=LIMIT).plan(BUDGET)
    if isinstance(adaptive, AdaptivePlan):
        yield near_adaptive(adaptive, engine, copies)
    yield next(votes_cases(engine=engine))
