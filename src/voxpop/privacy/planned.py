"""What the plan of every mechanism begins with: what was planned, and what it may spend."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from voxpop.privacy.budget import Budget
from voxpop.showing import Printed

Mechanism = TypeVar("Mechanism")


@dataclass(frozen=True, slots=True, repr=False)
class Planned(Printed, Generic[Mechanism]):
    """A plan: public numbers that are known before any private data are read, shown as `print` shows them.

    Attributes:
        mechanism: the public configuration that was planned.
        budget: what may be spent.
    """

    mechanism: Mechanism
    budget: Budget
