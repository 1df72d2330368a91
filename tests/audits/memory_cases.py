"""The worst cases of set union and n-grams within a memory limit, in which the order of users matters.

The cases and the exact probabilities are the same as for the engine in memory. However, different code orders users,
weighs them and numbers pairs (docs/design/0009-spilling.md).
"""

from collections.abc import Iterator
from dataclasses import replace

from audits.adaptive_cases import near_adaptive
from audits.engines import EngineOf, within_limit
from audits.union_cases import BUDGET, EXCESS, LIMIT, alone, classic_of, near
from audits.walk_cases import walk_cases
from voxpop.mechanisms.rounds.adaptive import AdaptiveRounds
from voxpop.mechanisms.set_union.mechanism import Items
from voxpop.papers.dpsu import SetUnion
from voxpop.testing.auditing import Case
from voxpop.testing.cases import ngrams

COPIES = 8_000
"""The number of copies in one release of set union. It is so small that the items fit."""


def memory_cases() -> Iterator[Case]:
    """Yield the cases. The names of their mechanisms end with "within a limit"."""
    for case in (*engine_cases(within_limit, COPIES), *walk_cases(engine=within_limit)):
        yield replace(case, mechanism=f"{case.mechanism}, within a limit")


def engine_cases(engine: EngineOf, copies: int) -> Iterator[Case]:
    """Yield cases of set union and of n-grams on any engine.

    Args:
        engine: The engine that reads and weighs collections.
        copies: The largest number of copies in one release of set union.
    """
    plan = classic_of(SetUnion(LIMIT, "policy-gaussian", accounting="joint").plan(BUDGET))
    yield near(plan, engine, copies)
    yield alone(plan, LIMIT, "alone", engine, copies)
    yield alone(plan, EXCESS * LIMIT, "over", engine, copies)
    adaptive = Items(max_items_per_user=LIMIT).plan(BUDGET)
    if isinstance(adaptive.last, AdaptiveRounds):
        yield near_adaptive(adaptive, engine, copies)
    yield ngrams(engine=engine)
