"""The worst cases of the grams of the paper (CAC12). All symbols of the canary's sequence are the same.

`contexts_cases.py` has the cases of contexts, the method of Voxpop.

*One level*: only single symbols are counted. The noise of each symbol is a separate draw, so each symbol is a copy.

*Two levels*: the alphabet has one symbol, and one release is one trial. The canary moves three counts, each in
proportion to the budget spent on its level. The event requires all three counts to be high. This event shows nearly the
whole epsilon.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from audits.contexts_cases import contexts_cases
from audits.tails import users_bound
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.papers.ngram_model import GramPlan, VariableLengthNGrams
from voxpop.privacy.budget import Budget
from voxpop.testing.auditing import Case
from voxpop.testing.collections import copied_documents, numbered_words

BUDGET = Budget(1.0)
SYMBOLS = 5_000
LENGTH = 3
OTHERS = 8
BACKGROUND = 400
TWO_LEVEL_SHARE = 0.01
"""The share of the trials to run. In this case, one release is one trial, so only one trial in a hundred is run."""


def sequences_cases(budget: Budget = BUDGET) -> Iterator[Case]:
    """Yield the cases.

    Args:
        budget: The claimed guarantee.
    """
    yield one_level(budget)
    yield two_levels(budget)
    yield from contexts_cases(budget)


def one_level(budget: Budget) -> Case:
    """Return the case of counts of single symbols.

    The event is that a noisy count reaches the true count with the canary.
    """
    words = numbered_words(SYMBOLS).to_pylist()
    plan = VariableLengthNGrams(LENGTH, 1, words).plan(budget)
    least = OTHERS + LENGTH
    exact = tuple(users_bound(least - OTHERS - more, plan.scale) for more in (LENGTH, 0))
    joined, without = (partial(_high_counts, plan, _crowd(users), least) for users in (_with_canary(), _others()))
    return Case("sequences, one level", "every symbol the same", budget, SYMBOLS, joined, without, (exact[0], exact[1]))


def _high_counts(plan: GramPlan, corpus: LocalCorpus, least: int) -> tuple[int, Any]:
    tree = plan.release(corpus).tree
    high = np.zeros(SYMBOLS, np.bool_)
    high[np.flatnonzero(tree.counts[0] >= least)] = True
    return int(high.sum()), high.tobytes()


def _crowd(users: list[list[int]]) -> LocalCorpus:
    return copied_documents(users, np.arange(SYMBOLS)[:, None], SYMBOLS, "sequence")


def _others() -> list[list[int]]:
    return [[0]] * OTHERS


def _with_canary() -> list[list[int]]:
    return [*_others(), [0] * LENGTH]


def two_levels(budget: Budget) -> Case:
    """Return the case of one symbol and the symbol that follows it. Each level spends half of epsilon."""
    plan = VariableLengthNGrams(LENGTH, 2, ["000000000"]).plan(budget)
    mean = np.array([BACKGROUND * 2, BACKGROUND, BACKGROUND])
    moved = np.array([LENGTH, LENGTH - 1, 1])
    # Two levels remain at the root and one level remains at its only child, so each node spends half of epsilon.
    chances = np.array([[users_bound(shift, plan.scale) for shift in moved - more] for more in (moved, 0 * moved)])
    exact = chances.prod(axis=1)
    joined, without = (partial(_all_high, plan, _pairs(canary), mean + moved) for canary in (True, False))
    name, probabilities = "every symbol the same", (float(exact[0]), float(exact[1]))
    return Case("sequences, two levels", name, budget, 1, joined, without, probabilities, TWO_LEVEL_SHARE)


def _all_high(plan: GramPlan, corpus: LocalCorpus, least: Any) -> tuple[int, Any]:
    """Return whether the counts of "0", of "00" and of "0" before an end reach `least`, and a digest of this event."""
    tree = plan.release(corpus).tree
    counts = tree.counts[tree.counts >= 0]
    high = bool(counts.size == least.size and (counts >= least).all())
    return int(high), high


def _pairs(canary: bool) -> LocalCorpus:
    """Return users with the sequence "00" and, if requested, the canary, which has one more symbol."""
    documents = [[0, 0]] * BACKGROUND + [[0] * LENGTH] * canary
    return copied_documents(documents, np.zeros((1, 1), np.int64), 1, "sequence")
