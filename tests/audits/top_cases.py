"""The worst cases of rankings. In each case, the canary has some grams of a short public list.

Each copy is one such list. All grams of all copies are ranked together, with the noise for releasing the first k grams
of one copy. The noise of each gram is a separate draw, so the order within a copy depends only on that copy. The first
k grams of a copy are those that a ranking of only this copy would release. The event is that at least a given number of
these grams belongs to the canary. No other user has any grams, because one more user has the largest effect if all
counts are the same.

- *near*: the canary has its grams once.
- *over*: the canary has each of its grams eight times.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import exp
from typing import Any, Final

import numpy as np

from audits.union_cases import BUDGET, EXCESS, TELLING
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.kernels.arrays import Floats
from voxpop.mechanisms.counts.mechanism import TopMechanism
from voxpop.mechanisms.counts.plan import TopPlan
from voxpop.privacy.budget import Budget
from voxpop.privacy.guarantee import Guarantee
from voxpop.release.release import Release
from voxpop.release.result import StoredPlan
from voxpop.testing.auditing import Case, TrialCounts, epsilon_shown
from voxpop.testing.cases import unchecked
from voxpop.testing.collections import copied_items, numbered_words

PLACES: Final = (1, 3)
GRAMS: Final = 100_000
"""The number of grams in one release. If lists are longer, there are fewer copies."""
WIDTHS: Final = (2, 3, 4, 6, 9, 13, 18, 24, 32)


def top_cases(places: tuple[int, ...] = PLACES, budget: Budget = BUDGET) -> Iterator[Case]:
    """Yield the cases of each number of places.

    Args:
        places: The numbers of grams in a ranking.
        budget: The claimed guarantee.
    """
    worst = [telling(k, budget) for k in places]
    for each in worst:
        yield each.case(budget)
    yield replace(worst[0], times=EXCESS).case(budget)


@dataclass(frozen=True, slots=True)
class Lists:
    """Short lists of grams, each with a separate canary.

    Attributes:
        k: The number of grams in the ranking of one list.
        width: The number of grams per list.
        held: The number of grams that the canary has. These are the first grams of the list.
        most: The minimum number of these grams that the ranking must contain for the event to occur.
        times: The number of times that the canary has each of its grams.
    """

    k: int
    width: int
    held: int
    most: int
    times: int = 1

    def plan(self, budget: Budget) -> TopPlan:
        """Return the plan for ranking one list."""
        return TopMechanism(self.k).plan(budget, public_list(self.width))

    def chances(self, rate: float) -> tuple[float, float]:
        """Return the probabilities of the event with and without the canary, for noise with this rate."""
        with_canary, without = (named_of_held(self.k, self.width, self.held, each) for each in (rate, 0.0))
        return float(with_canary[self.most :].sum()), float(without[self.most :].sum())

    def case(self, budget: Budget) -> Case:
        """Return the case, with as many lists as fit in one release."""
        plan, copies = self.plan(budget), GRAMS // self.width
        # This plan is not a public configuration, because it applies the noise of one list to all lists of a release.
        grams = copies * self.width
        proof = replace(plan.proof, picks=grams, candidates=grams)
        every = unchecked(replace(plan, grams=public_list(grams), proof=proof))
        joined, without = (
            partial(self.run, every, copied_items(users, self.width, copies))
            for users in ([tuple(range(self.held)) * self.times], [])
        )
        name = f"{'near' if self.times == 1 else 'over'}: {self.held} of {self.width} held, {self.most} named"
        return Case(f"ranking, first {self.k}", name, budget, copies, joined, without, self.chances(plan.proof.rate))

    def run(self, plan: TopPlan, corpus: LocalCorpus) -> tuple[int, Any]:
        """Rank all lists once, and return the number of lists with the event and a digest of these lists."""
        place = np.empty(plan.proof.picks, np.int64)
        place[plan.release(corpus).places] = np.arange(plan.proof.picks)
        first = np.argsort(place.reshape(-1, self.width), axis=1)[:, : self.k]
        happened = (first < self.held).sum(axis=1) >= self.most
        return int(happened.sum()), happened.tobytes()


def telling(k: int, budget: Budget = BUDGET) -> Lists:
    """Return the lists that show the largest epsilon after many trials."""
    shown = []
    for width in (each for each in WIDTHS if each > k):
        rate = Lists(k, width, 1, 1).plan(budget).proof.rate
        for held in range(1, width):
            for most in range(1, min(k, held) + 1):
                each = Lists(k, width, held, most)
                one, other = each.chances(rate)
                counts = TrialCounts(round(TELLING * one), round(TELLING * other), TELLING)
                shown.append((epsilon_shown(counts, budget.delta), width, each))
    return max(shown, key=lambda row: row[:2])[2]


def named_of_held(k: int, width: int, held: int, log_weight: float) -> Floats:
    """Return the distribution of the number of the canary's grams among the first k.

    Each pick is one exponential mechanism.

    Args:
        k: The number of picks.
        width: The number of grams in the list.
        held: The number of grams of the canary.
        log_weight: The log-weight of each gram of the canary. The log-weight of all other grams is 0.

    Returns:
        float64 (k + 1), the probability of each number from 0 to k.

    Example:
        >>> named_of_held(1, 4, 1, 0.0).tolist()
        [0.75, 0.25]
    """
    law, weight = np.zeros(k + 1), exp(log_weight)
    law[0] = 1.0
    for picked in range(k):
        before = np.arange(picked + 1)
        left = np.maximum(held - before, 0) * weight
        others = np.maximum(width - held - (picked - before), 0)
        chance = left / np.maximum(left + others, 1e-300)
        now = law[: picked + 1]
        law[1 : picked + 2], law[: picked + 1] = law[1 : picked + 2] + now * chance, now * (1 - chance)
    return law


def public_list(count: int) -> Release:
    """Return a release of `count` items, which is a public list to rank."""
    return Release.from_items(numbered_words(count), StoredPlan({"mechanism": "a public list"}), Guarantee(0.0, 0.0))
