"""The worst cases of n-grams as published (DPNE): a canary who writes one phrase of two words.

So many users hold each word that all words are released, and so much of the budget goes to length 2 that nearly all of
epsilon shows there. Each pair of words is a copy.

Why pairs are independent trials: given that all words are released and how many candidates there are, noise and
threshold of length 2 are fixed numbers, the weight of a pair is that of its own users, and its noise is its own, or
that of the simulation if it has no weight. The event asks for these public numbers too: a release in which they differ
from those foreseen counts as no hit at all. That happens with a probability below 1e-6 a release, by the distance of
words' weights and forecasts from where they would matter.

- *near*: so many users hold a pair that one more matters most.
- *empty*: nobody else holds the pair: it is released by its own noise with the canary, by the simulation without.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any

import numpy as np

from voxpop.engine.local.corpus import LocalCorpus
from voxpop.kernels.arrays import Int64s
from voxpop.mechanisms.ngrams.charges import LengthRun
from voxpop.mechanisms.ngrams.plan import NGramsPlan
from voxpop.papers.dpne import DPNE
from voxpop.privacy.budget import Budget
from voxpop.testing.auditing import Case, Counts, epsilon_shown
from voxpop.testing.sensitivity import corpus_of, released_numbers

BUDGET = Budget(1.0, 0.02)
RATIO = 0.176
"""Of sigma from length 1 to 2: length 2 has 97 percent of mu^2."""
SURE = 7.0
"""Sigmas by which the weight of a word is above its threshold."""
WORDS = 48
EMPTY_WORDS = 24
TELLING = 10**6
MOST_HOLDERS = 60


@dataclass(frozen=True, slots=True)
class Crowd:
    """Who holds what.

    Attributes:
        holders: int64 by word, users whose only document is that word.
        common: the first so many words; each pair of them is a copy.
    """

    holders: Int64s
    common: int

    @property
    def copies(self) -> int:
        """How many pairs."""
        return self.common**2

    def corpus(self, others: int) -> LocalCorpus:
        """Return the corpus in which so many users hold each pair."""
        words = np.repeat(np.arange(self.holders.size), self.holders)
        single = np.stack([words, np.full(words.size, -1)], axis=1).ravel()
        left, right = np.divmod(np.arange(self.copies), self.common)
        double = np.repeat(np.stack([left, right, np.full(self.copies, -1)], axis=1), others, axis=0).ravel()
        sizes = np.concatenate([np.full(words.size, 2), np.full(self.copies * others, 3)])
        tokens = np.concatenate([single, double]).astype(np.int32)
        return corpus_of(tokens, sizes, self.holders.size, "tokens")


def ngrams_cases(budget: Budget = BUDGET) -> Iterator[Case]:
    """Yield the cases.

    Args:
        budget: the claim.
    """
    for weighting in ("weighted", "policy-gaussian"):
        plan = _two_lengths(weighting=weighting).plan(budget)
        yield _near(plan, Crowd(np.full(WORDS, _enough(plan)), WORDS), f"n-grams, DPNE, {weighting}")
    plan = _two_lengths(eta=0.5).plan(budget)
    yield _case(plan, Crowd(np.full(EMPTY_WORDS, _enough(plan)), EMPTY_WORDS), "n-grams, DPNE, weighted", "empty", 0)


def _two_lengths(**fields: Any) -> DPNE:
    return DPNE(**{"max_length": 2, "limit": 4, "ratio": RATIO, "alpha": 3 * SURE, **fields})


def _enough(plan: NGramsPlan) -> int:
    """Return how many holders make a word's release sure."""
    return ceil(plan.first.shown.threshold + SURE * plan.first.shown.scale)


def _near(plan: NGramsPlan, crowd: Crowd, mechanism: str) -> Case:
    ran = _foreseen(plan, crowd)
    shown: list[tuple[float, int]] = []
    for others in range(1, MOST_HOLDERS):
        one, other = _chances(ran, others)
        counts = Counts(round(TELLING * one), round(TELLING * other), TELLING)
        shown.append((epsilon_shown(counts, plan.budget.delta), others))
    return _case(plan, crowd, mechanism, "near", max(shown)[1])


def _case(plan: NGramsPlan, crowd: Crowd, mechanism: str, name: str, others: int) -> Case:
    ran = _foreseen(plan, crowd)
    joined, without = (partial(_run, plan, crowd, crowd.corpus(holders), ran) for holders in (others + 1, others))
    return Case(
        mechanism, f"{name}: {others} others", plan.budget, crowd.copies, joined, without, _chances(ran, others)
    )


def _foreseen(plan: NGramsPlan, crowd: Crowd) -> LengthRun:
    """Return what length 2 runs with, by a release of words alone."""
    return plan.release(crowd.corpus(0), seed=0).plan.ran[1]  # type: ignore[attr-defined, no-any-return]


def _chances(ran: LengthRun, others: int) -> tuple[float, float]:
    """Return the probabilities that a pair of so many others is released, with the canary and without."""
    from scipy.special import ndtr

    with_canary, without = ndtr((others + np.array([1.0, 0.0]) - ran.threshold) / ran.sigma)
    return float(with_canary), float(without)


def _settled(ran: LengthRun) -> tuple[Any, ...]:
    """Return what was settled before the vote."""
    return ran.sigma, ran.measurement_sigma, ran.candidates, ran.threshold


def _run(plan: NGramsPlan, crowd: Crowd, corpus: LocalCorpus, foreseen: LengthRun) -> tuple[int, Any]:
    """Run one release; return how many pairs of common words are released, and which."""
    release = plan.release(corpus)
    pairs = released_numbers(release, 2)
    pairs = pairs[(pairs < crowd.common).all(axis=1)]
    found = np.zeros(crowd.copies, np.bool_)
    if _settled(release.plan.ran[1]) == _settled(foreseen):  # type: ignore[attr-defined]
        found[pairs[:, 0] * crowd.common + pairs[:, 1]] = True
    return int(found.sum()), found.tobytes()
