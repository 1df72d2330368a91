"""The worst cases of several data sets that share one budget.

Each copy has an item in every data set. The event is that at least a given number of these items is released.

- *near*: the items have the number of users at which one more user of the items in all data sets has the largest
  effect.
- *alone*: only the canary has the items.

Copies are independent in each data set, and data sets share no draws.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Final

import numpy as np

from audits.union_cases import BUDGET, LIMIT, MOST_HOLDERS, TELLING
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.mechanisms.rounds.users_needed import item_probability
from voxpop.mechanisms.set_union.mechanism import Items
from voxpop.mechanisms.set_union.plan import UnionPlan
from voxpop.privacy.budget import Budget
from voxpop.testing.auditing import Case, TrialCounts, epsilon_shown
from voxpop.testing.collections import copied_items, released_numbers

DATA_SETS: Final = ("words", "tags", "places")
COPIES: Final = 20_000
"""The number of copies in one release, in each data set."""


def several_cases(names: Sequence[str] = DATA_SETS, budget: Budget = BUDGET) -> Iterator[Case]:
    """Yield the cases.

    Args:
        names: The names of the data sets.
        budget: The claimed guarantee of all data sets together.
    """
    plan = Items(max_items_per_user=LIMIT).plan_each(names, budget)
    yield near_several(plan)
    yield alone_several(plan)


def near_several(plan: UnionPlan) -> Case:
    """Return the case of users who all have the same item in every data set."""
    chances = [item_probability(plan.last, others, 1) if others else 0.0 for others in range(MOST_HOLDERS)]
    shown = []
    for others, (without, joined) in enumerate(pairwise(chances)):
        for most in range(1, len(plan.data_sets) + 1):
            one, other = (_so_many(plan, most, chance) for chance in (joined, without))
            counts = TrialCounts(round(TELLING * one), round(TELLING * other), TELLING)
            shown.append((epsilon_shown(counts, plan.budget.delta), others, most, (one, other)))
    _, holders, most, exact = max(shown)
    return Everywhere(plan, most).case(f"near: {holders} others, {most} released", holders + 1, holders, exact)


def alone_several(plan: UnionPlan) -> Case:
    """Return the case in which only the canary has an item in every data set."""
    exact = _so_many(plan, 1, item_probability(plan.last, 1, 1)), 0.0
    return Everywhere(plan, 1).case("alone: 1 unique item in each", 1, 0, exact)


def _so_many(plan: UnionPlan, most: int, chance: float) -> float:
    """Return the probability that at least `most` data sets release an item, given the probability of each one."""
    from scipy.stats import binom

    return float(binom.sf(most - 1, len(plan.data_sets), chance))


@dataclass(frozen=True, slots=True)
class Everywhere:
    """The event that at least `most` data sets release the item of a copy.

    Attributes:
        plan: The plan to run.
        most: The smallest number of data sets that must release the item.
    """

    plan: UnionPlan
    most: int

    def case(self, name: str, joined: int, without: int, exact: tuple[float, float]) -> Case:
        """Return the case, given the number of users who have the item of a copy in every data set."""
        copies = max(1_000, COPIES * 8 // max(8, joined))
        larger, smaller = (
            partial(self.run, copied_items([(0,)] * users, 1, copies), copies) for users in (joined, without)
        )
        many = len(self.plan.data_sets)
        title = f"set union, {many} data sets, limit {self.plan.last.limit}"
        return Case(title, name, self.plan.budget, copies, larger, smaller, exact)

    def run(self, corpus: LocalCorpus, copies: int) -> tuple[int, Any]:
        """Run one release of all data sets, and return the number and the digest of the copies with the event."""
        found = np.zeros(copies, np.int64)
        for release in self.plan.release(dict.fromkeys(self.plan.data_sets, corpus)).values():
            found[released_numbers(release)[:, 0]] += 1
        happened = found >= self.most
        return int(happened.sum()), happened.tobytes()
