"""The cases of heavy hitters in which one more user of a word has the largest effect.

Words of different copies share no symbol, so they share neither votes nor prefixes. The coin of each user in each round
is a separate draw. Rounds continue as long as any copy has prefixes. Therefore, the result of a copy depends only on
that copy.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from voxpop.engine.local.corpus import LocalCorpus
from voxpop.mechanisms.heavy_hitters.mechanism import HeavyHitters
from voxpop.mechanisms.heavy_hitters.plan import HittersPlan
from voxpop.privacy.budget import Budget
from voxpop.testing.auditing import Case, TrialCounts, epsilon_shown
from voxpop.testing.collections import copied_documents, released_numbers

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
        hitters: The configurations to audit.
        budget: The claimed guarantee.
    """
    for each in hitters:
        yield near(each.plan(budget))


def near(plan: HittersPlan, most_copies: int = COPIES) -> Case:
    """Return the case in which one more user, the canary, has the largest effect."""
    _, exact, others = max(_all_near(plan))
    copies = max(1_000, most_copies * 20 // (others + 1))
    joined, without = (partial(run, plan, crowd(plan, holders, copies), copies) for holders in (others + 1, others))
    return Case(title(plan.mechanism), f"near: {others} others", plan.budget, copies, joined, without, exact)


def crowd(plan: HittersPlan, holders: int, copies: int) -> LocalCorpus:
    """Return a corpus with copies of users.

    All users of a copy have the same word, which has the largest possible length.

    Args:
        plan: The plan, which determines the length of the word.
        holders: The number of users per copy.
        copies: The number of copies.
    """
    length = plan.rules.longest
    rows = np.arange(copies * length).reshape(copies, length)
    return copied_documents([range(length)] * holders, rows, rows.size)


def _all_near(plan: HittersPlan) -> Iterator[tuple[float, tuple[float, float], int]]:
    from voxpop.privacy.trie.ballot import discovery_rate

    for others in range(MOST_HOLDERS):
        one, other = (discovery_rate(holders, plan.rules.ballot, plan.rounds) for holders in (others + 1, others))
        counts = TrialCounts(round(TELLING * one), round(TELLING * other), TELLING)
        yield epsilon_shown(counts, plan.budget.delta), (one, other), others


def run(plan: HittersPlan, corpus: LocalCorpus, copies: int) -> tuple[int, Any]:
    """Run one release, and return the number of copies with a found word and a digest of these copies."""
    length = plan.rules.longest
    found = np.zeros(copies, np.bool_)
    found[released_numbers(plan.release(corpus), length)[:, 0] // length] = True
    return int(found.sum()), found.tobytes()


def title(hitters: HeavyHitters) -> str:
    """Return the name of a configuration."""
    rounds = f"{hitters.rounds} round{'s' if hitters.rounds > 1 else ''}"
    return f"heavy hitters, {rounds}"
