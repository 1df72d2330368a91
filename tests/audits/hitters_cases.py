"""The worst cases of heavy hitters: so many users hold a word that one more matters most.

Words of different copies share no symbol, so neither votes nor prefixes, and each user tosses a coin of its own in each
round. Rounds go on as long as any copy is alive, and end at the last one: what becomes of a copy depends on it alone.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from voxpop.engine.local.corpus import LocalCorpus
from voxpop.mechanisms.heavy_hitters.mechanism import HeavyHitters
from voxpop.mechanisms.heavy_hitters.plan import HittersPlan
from voxpop.privacy.budget import Budget
from voxpop.testing.auditing import Case, Counts, epsilon_shown
from voxpop.testing.sensitivity import copied_documents, released_numbers

BUDGET = Budget(1.0, 0.02)
COPIES = 20_000
MOST_HOLDERS = 60
TELLING = 10**6
HITTERS: tuple[HeavyHitters, ...] = (
    HeavyHitters(max_length=2, unit=2, alphabet="tokens"),
    HeavyHitters(max_length=3, alphabet="tokens"),
)


def hitters_cases(hitters: Sequence[HeavyHitters] = HITTERS, budget: Budget = BUDGET) -> Iterator[Case]:
    """Yield the case of each configuration.

    Args:
        hitters: what to audit.
        budget: the claim.
    """
    for each in hitters:
        yield near(each.plan(budget))


def near(plan: HittersPlan) -> Case:
    """Return the case of so many others who hold the canary's word that it matters most."""
    _, exact, others = max(_all_near(plan))
    copies = max(1_000, COPIES * 20 // (others + 1))
    joined, without = (partial(run, plan, crowd(plan, holders, copies), copies) for holders in (others + 1, others))
    return Case(title(plan.mechanism), f"near: {others} others", plan.budget, copies, joined, without, exact)


def crowd(plan: HittersPlan, holders: int, copies: int) -> LocalCorpus:
    """Return copies of so many users who all hold one word, of as many symbols as there may be."""
    length = plan.rules.longest
    rows = np.arange(copies * length).reshape(copies, length)
    return copied_documents([range(length)] * holders, rows, rows.size)


def _all_near(plan: HittersPlan) -> Iterator[tuple[float, tuple[float, float], int]]:
    from voxpop.privacy.trie.ballot import discovery_rate

    for others in range(MOST_HOLDERS):
        one, other = (discovery_rate(holders, plan.rules.ballot, plan.rounds) for holders in (others + 1, others))
        counts = Counts(round(TELLING * one), round(TELLING * other), TELLING)
        yield epsilon_shown(counts, plan.budget.delta), (one, other), others


def run(plan: HittersPlan, corpus: LocalCorpus, copies: int) -> tuple[int, Any]:
    """Run one release; return how many words are found, and which."""
    length = plan.rules.longest
    found = np.zeros(copies, np.bool_)
    found[released_numbers(plan.release(corpus), length)[:, 0] // length] = True
    return int(found.sum()), found.tobytes()


def title(hitters: HeavyHitters) -> str:
    """Name a configuration."""
    rounds = f"{hitters.rounds} round{'s' if hitters.rounds > 1 else ''}"
    return f"heavy hitters, {rounds}"
