"""What the plan of every mechanism begins with: what was planned, what it may spend, and that it spends no more."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Self, TypeVar

from voxpop.errors import InputError, InternalError
from voxpop.privacy.budget import Budget
from voxpop.privacy.guarantee import Guarantee
from voxpop.showing import Printed

Mechanism = TypeVar("Mechanism")


@dataclass(frozen=True, slots=True, repr=False)
class Planned(Printed, ABC, Generic[Mechanism]):
    """A plan: public numbers that are known before any private data are read, shown as `print` shows them.

    What plans ends with `checked`. A plan that was made in any other way, such as by `dataclasses.replace`, may hold
    numbers that spend more than its budget, so it has no guarantee, and without one nothing is charged or released.

    Attributes:
        mechanism: the public configuration that was planned.
        budget: what may be spent.

    Example:
        >>> import voxpop as vp
        >>> from dataclasses import replace
        >>> plan = vp.SetUnion(limit=100).plan(vp.Budget(epsilon=3, delta=4.5e-5))
        >>> try:
        ...     replace(plan, budget=vp.Budget(epsilon=0.1, delta=1e-9)).guarantee
        ... except vp.errors.InputError as error:
        ...     print(str(error)[:40])
        this plan was changed after it was made,
    """

    mechanism: Mechanism
    budget: Budget
    _checked: bool = field(default=False, init=False, compare=False)

    def checked(self, delta: float) -> Self:
        """Return the plan, once what its numbers spend is held against its budget: the last step of planning.

        Args:
            delta: what the numbers in the plan spend at the budget's epsilon, computed from them.

        Raises:
            InternalError: where that is more than the budget's.
        """
        if not delta <= self.budget.delta:
            raise InternalError("the plan's own numbers exceed the budget; please report the parameters of the call.")
        object.__setattr__(self, "_checked", True)
        return self

    def noting(self, **ran: Any) -> Self:
        """Return the plan with what a release notes in it: nothing that what it spends depends on."""
        noted = replace(self, **ran)
        object.__setattr__(noted, "_checked", self._checked)
        return noted

    @property
    def guarantee(self) -> Guarantee:
        """What a release of this plan guarantees by itself.

        Raises:
            InputError: where the plan was changed after it was made.
        """
        if not self._checked:
            raise InputError(
                "this plan was changed after it was made, so nobody knows what its numbers spend, and nothing is "
                "released by it. Change the mechanism or the budget instead, and plan again: mechanism.plan(budget)."
            )
        return self._guaranteed()

    def guaranteed(self, *, private: bool) -> Guarantee:
        """Return the guarantee of a release whose secret nobody knows, or of one made with a seed.

        Raises:
            InputError: where the plan was changed after it was made.
        """
        guarantee = self.guarantee
        return replace(guarantee, private=guarantee.private and private)

    @abstractmethod
    def _guaranteed(self) -> Guarantee:
        """Return what the numbers of a checked plan guarantee."""
