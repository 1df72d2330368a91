"""The worst cases of n-grams as published (DPNE), with a canary who wrote one phrase of two words.

Each word has enough users for all words to be released, and length 2 receives enough of the budget to show nearly the
whole epsilon. Each pair of words is a copy.

Pairs are independent trials for the following reason. If all words are released and the number of candidates is fixed,
the noise and the threshold of length 2 are fixed numbers, and the weight of a pair depends only on its users. The noise
of each pair is a separate draw, or a draw of the simulation if the pair has no weight. The event also requires these
public numbers to have their expected values, so a release with other values counts as a miss. The probability of such a
release is below 1e-6, because the weights and forecasts of words are far from all values that would change these
numbers.

- *near*: a pair has the number of users at which one more user has the largest effect.
- *empty*: no other user has the pair. With the canary, the pair is released by the noise on its weight. Without the
  canary, the pair is released by the simulation.
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
from voxpop.testing.auditing import Case, TrialCounts, epsilon_shown
from voxpop.testing.collections import corpus_of_tokens, released_numbers

BUDGET = Budget(1.0, 0.02)
RATIO = 0.176
"""The ratio of sigma of length 1 to sigma of length 2. With this ratio, length 2 has 97 percent of mu^2."""
SURE = 7.0
"""The distance between the weight of a word and its threshold, in units of sigma."""
WORDS = 48
EMPTY_WORDS = 24
TELLING = 10**6
MOST_HOLDERS = 60


@dataclass(frozen=True, slots=True)
class Crowd:
    """The users of words, and the pairs that are copies.

    Attributes:
        holders: int64 (words), the number of users with only this word in their document.
        common: The number of common words. The common words are the first words, and each pair of them is a copy.
    """

    holders: Int64s
    common: int

    @property
    def copies(self) -> int:
        """The number of pairs of common words."""
        return self.common**2

    def corpus(self, others: int) -> LocalCorpus:
        """Return the corpus in which `others` users have each pair."""
        words = np.repeat(np.arange(self.holders.size), self.holders)
        single = np.stack([words, np.full(words.size, -1)], axis=1).ravel()
        left, right = np.divmod(np.arange(self.copies), self.common)
        double = np.repeat(np.stack([left, right, np.full(self.copies, -1)], axis=1), others, axis=0).ravel()
        sizes = np.concatenate([np.full(words.size, 2), np.full(self.copies * others, 3)])
        tokens = np.concatenate([single, double]).astype(np.int32)
        return corpus_of_tokens(tokens, sizes, self.holders.size, "tokens")


def ngrams_cases(budget: Budget = BUDGET) -> Iterator[Case]:
    """Yield the cases.

    Args:
        budget: The claimed guarantee.
    """
    for weighting in ("weighted", "policy-gaussian"):
        plan = _two_lengths(weighting=weighting).plan(budget)
        yield _near(plan, Crowd(np.full(WORDS, _enough(plan)), WORDS), f"n-grams, DPNE, {weighting}")
    plan = _two_lengths(max_spurious_share=0.5).plan(budget)
    yield _case(plan, Crowd(np.full(EMPTY_WORDS, _enough(plan)), EMPTY_WORDS), "n-grams, DPNE, weighted", "empty", 0)


def _two_lengths(**fields: Any) -> DPNE:
    return DPNE(**{"max_length": 2, "max_phrases_per_user": 4, "ratio": RATIO, "alpha": 3 * SURE, **fields})


def _enough(plan: NGramsPlan) -> int:
    """Return a number of users that makes the release of a word practically certain."""
    return ceil(plan.lengths[0].lowest_threshold + SURE * plan.lengths[0].sigma)


def _near(plan: NGramsPlan, crowd: Crowd, mechanism: str) -> Case:
    ran = _foreseen(plan, crowd)
    shown: list[tuple[float, int]] = []
    for others in range(1, MOST_HOLDERS):
        one, other = _chances(ran, others)
        counts = TrialCounts(round(TELLING * one), round(TELLING * other), TELLING)
        shown.append((epsilon_shown(counts, plan.budget.delta), others))
    return _case(plan, crowd, mechanism, "near", max(shown)[1])


def _case(plan: NGramsPlan, crowd: Crowd, mechanism: str, name: str, others: int) -> Case:
    ran = _foreseen(plan, crowd)
    joined, without = (partial(_run, plan, crowd, crowd.corpus(holders), ran) for holders in (others + 1, others))
    return Case(
        mechanism, f"{name}: {others} others", plan.budget, crowd.copies, joined, without, _chances(ran, others)
    )


def _foreseen(plan: NGramsPlan, crowd: Crowd) -> LengthRun:
    """Return the values that length 2 uses, taken from a release without any pairs."""
    return plan.release(crowd.corpus(0), seed=0).plan.ran[1]  # type: ignore[attr-defined, no-any-return]


def _chances(ran: LengthRun, others: int) -> tuple[float, float]:
    """Return the probabilities of releasing a pair that `others` other users have, with and without the canary."""
    from scipy.special import ndtr

    with_canary, without = ndtr((others + np.array([1.0, 0.0]) - ran.threshold) / ran.sigma)
    return float(with_canary), float(without)


def _settled(ran: LengthRun) -> tuple[Any, ...]:
    """Return the values that are fixed before the vote."""
    return ran.sigma, ran.measurement_sigma, ran.candidates, ran.threshold


def _run(plan: NGramsPlan, crowd: Crowd, corpus: LocalCorpus, foreseen: LengthRun) -> tuple[int, Any]:
    """Run one release, and return the number of released pairs of common words and a digest of their names."""
    release = plan.release(corpus)
    pairs = released_numbers(release, 2)
    pairs = pairs[(pairs < crowd.common).all(axis=1)]
    found = np.zeros(crowd.copies, np.bool_)
    if _settled(release.plan.ran[1]) == _settled(foreseen):  # type: ignore[attr-defined]
        found[pairs[:, 0] * crowd.common + pairs[:, 1]] = True
    return int(found.sum()), found.tobytes()
