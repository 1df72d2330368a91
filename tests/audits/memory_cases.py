"""The worst cases of what is read and weighed within a memory limit: set union and n-grams where order matters.

The same cases and the same exact probabilities as in memory: only where the users stand in order, how they are weighed
and how pairs are numbered is other code (docs/design/0009-spilling.md).
"""

from collections.abc import Iterator
from dataclasses import replace

from audits.adaptive_cases import near_adaptive
from audits.engines import Engine, within_limit
from audits.union_cases import BUDGET, EXCESS, LIMIT, alone, classic_of, near
from audits.walk_cases import walk_cases
from voxpop.mechanisms.set_union.mechanism import SetUnion
from voxpop.mechanisms.set_union.plan import AdaptivePlan
from voxpop.mechanisms.weightings.builtin import PolicyGaussian
from voxpop.testing.auditing import Case
from voxpop.testing.cases import ngrams

COPIES = 8_000
"""Of one release of set union, so that its items fit."""


def memory_cases() -> Iterator[Case]:
    """Yield the cases, each named after where it runs."""
    for case in (*engine_cases(within_limit, COPIES), *walk_cases(engine=within_limit)):
        yield replace(case, mechanism=f"{case.mechanism}, within a limit")


def engine_cases(engine: Engine, copies: int) -> Iterator[Case]:
    """Yield cases of set union and of n-grams on any engine.

    Args:
        engine: where collections are read and weighed.
        copies: most in one release of set union.
    """
    plan = classic_of(SetUnion(limit=LIMIT, weighting=PolicyGaussian()).plan(BUDGET))
    yield near(plan, engine, copies)
    yield alone(plan, LIMIT, "alone", engine, copies)
    yield alone(plan, EXCESS * LIMIT, "over", engine, copies)
    adaptive = SetUnion(limit=LIMIT).plan(BUDGET)
    if isinstance(adaptive, AdaptivePlan):
        yield near_adaptive(adaptive, engine, copies)
    yield ngrams(engine=engine)
