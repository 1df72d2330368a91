"""The case of the choice of a limit in which one more user in a class has the largest effect.

Each trial counts the users of a collection again, with a fresh secret. The event is that the noisy count of the user's
class reaches a number.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from audits.engines import EngineOf, in_memory
from audits.union_cases import BUDGET
from voxpop.errors import InternalError
from voxpop.mechanisms.rounds.menu import Menu, planned_slack
from voxpop.mechanisms.set_union.mechanism import Items
from voxpop.privacy.budget import Budget
from voxpop.privacy.gate.rounds import AdaptiveGate
from voxpop.privacy.passes import AdaptiveProof, Certificate, Claim
from voxpop.privacy.secret import Secret
from voxpop.testing.auditing import Case
from voxpop.testing.collections import copied_items

USERS = 40
COPIES = 500
"""The number of counts in one run, each with separate noise."""


def limit_cases(budget: Budget = BUDGET) -> Iterator[Case]:
    """Yield the case.

    Args:
        budget: The claimed guarantee.
    """
    plan: Any = Items().plan(budget)
    yield counted(plan.passes[0], budget)


def counted(menu: Menu, budget: Budget, engine: EngineOf = in_memory) -> Case:
    """Return the case of one more user in the first class."""
    from scipy.special import ndtr

    if not isinstance(menu, Menu):
        raise InternalError("the default set union chooses no limit")
    # Counts are rounded to whole users, and halves are rounded up.
    joined, without = (float(ndtr((users - USERS - 0.5) / menu.sigma)) for users in (USERS + 1, USERS))
    event = Reached(menu, USERS + 1)
    larger, smaller = (partial(event.run, engine(copied_items([(0,)], 1, users))) for users in (USERS + 1, USERS))
    return Case("set union, choice of the limit", "one user more", budget, COPIES, larger, smaller, (joined, without))


@dataclass(frozen=True, slots=True)
class Reached:
    """The event that the noisy count of the first class reaches a number.

    Attributes:
        menu: The menu, which chooses a limit by counting users.
        number: The count to reach, in users.
    """

    menu: Menu
    number: int

    def run(self, corpus: Any) -> tuple[int, Any]:
        """Count the users several times, each with a fresh secret, and return the number of events and the counts."""
        counts, proof = [], AdaptiveProof((), self.menu.stated(), None, None, planned_slack(None))
        text = Certificate(Claim(BUDGET.epsilon, BUDGET.delta), proof).to_json()
        for _ in range(COPIES):
            gate = AdaptiveGate(text, Secret.of(None))
            gate.open(corpus)
            counts.append(int(gate.classes()[0]))
        return sum(count >= self.number for count in counts), tuple(counts)
