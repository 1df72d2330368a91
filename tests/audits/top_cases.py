"""The worst cases of rankings: a canary who holds some grams of a short public list.

A copy is such a list. All copies are ranked together, every gram of them, under noise of the rate that naming the first
k of one copy asks for. The noise of a gram is a draw of its own, and so the order within a copy depends on that copy
alone: its first k are what a ranking of the copy alone would name. The event is that at least so many of them are grams
that the canary holds. Nobody else holds anything: what counts are equal moves most.

- *near*: the canary holds its grams once.
- *over*: it holds each of them eight times.
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
from voxpop.mechanisms.counts.mechanism import Top
from voxpop.mechanisms.counts.plan import TopPlan
from voxpop.privacy.budget import Budget
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.planned import sealed
from voxpop.release.release import Release
from voxpop.release.result import StoredPlan
from voxpop.testing.auditing import Case, Counts, epsilon_shown
from voxpop.testing.sensitivity import copied_items, numbered_words

PLACES: Final = (1, 3)
GRAMS: Final = 100_000
"""In one release: the longer a list, the fewer copies."""
WIDTHS: Final = (2, 3, 4, 6, 9, 13, 18, 24, 32)


def top_cases(places: tuple[int, ...] = PLACES, budget: Budget = BUDGET) -> Iterator[Case]:
    """Yield the cases for each number of places.

    Args:
        places: how many grams a ranking names.
        budget: the claim.
    """
    worst = [telling(k, budget) for k in places]
    for each in worst:
        yield each.case(budget)
    yield replace(worst[0], times=EXCESS).case(budget)


@dataclass(frozen=True, slots=True)
class Lists:
    """Short lists of grams, each with a canary of its own.

    Attributes:
        k: how many grams a ranking of one list names.
        width: grams of a list.
        held: the canary holds the first so many of them.
        most: the event is that so many of these are named.
        times: how often the canary holds each.
    """

    k: int
    width: int
    held: int
    most: int
    times: int = 1

    def plan(self, budget: Budget) -> TopPlan:
        """Return the plan of ranking one list."""
        return Top(self.k).plan(budget, public_list(self.width))

    def chances(self, rate: float) -> tuple[float, float]:
        """Return the probabilities of the event with the canary and without, under noise of this rate."""
        with_canary, without = (named_of_held(self.k, self.width, self.held, each) for each in (rate, 0.0))
        return float(with_canary[self.most :].sum()), float(without[self.most :].sum())

    def case(self, budget: Budget) -> Case:
        """Return the case, of as many lists as fit one release."""
        plan, copies = self.plan(budget), GRAMS // self.width
        # No ranking of its own: the noise of one list, on as many as a release holds.
        changed = replace(plan, grams=public_list(copies * self.width), picks=copies * self.width)
        every = sealed(changed, plan.delta)
        joined, without = (
            partial(self.run, every, copied_items(users, self.width, copies))
            for users in ([tuple(range(self.held)) * self.times], [])
        )
        name = f"{'near' if self.times == 1 else 'over'}: {self.held} of {self.width} held, {self.most} named"
        return Case(f"ranking, first {self.k}", name, budget, copies, joined, without, self.chances(plan.rate))

    def run(self, plan: TopPlan, corpus: LocalCorpus) -> tuple[int, Any]:
        """Rank all lists once; return in how many the event happened, and in which."""
        place = np.empty(plan.picks, np.int64)
        place[plan.release(corpus).places] = np.arange(plan.picks)
        first = np.argsort(place.reshape(-1, self.width), axis=1)[:, : self.k]
        happened = (first < self.held).sum(axis=1) >= self.most
        return int(happened.sum()), happened.tobytes()


def telling(k: int, budget: Budget = BUDGET) -> Lists:
    """Return the lists with which many trials would show most."""
    shown = []
    for width in (each for each in WIDTHS if each > k):
        rate = Lists(k, width, 1, 1).plan(budget).rate
        for held in range(1, width):
            for most in range(1, min(k, held) + 1):
                each = Lists(k, width, held, most)
                one, other = each.chances(rate)
                counts = Counts(round(TELLING * one), round(TELLING * other), TELLING)
                shown.append((epsilon_shown(counts, budget.delta), width, each))
    return max(shown, key=lambda row: row[:2])[2]


def named_of_held(k: int, width: int, held: int, log_weight: float) -> Floats:
    """Return how likely each number of held grams is among the first k: exponential mechanisms, pick by pick.

    Args:
        k: picks.
        width: of so many grams.
        held: how many are held.
        log_weight: of each of these, beside 0 of the others.

    Returns:
        float64 (k + 1).

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
    """Return a release of so many items: a public list to rank."""
    return Release.from_items(numbered_words(count), StoredPlan({"mechanism": "a public list"}), Guarantee(0.0, 0.0))
