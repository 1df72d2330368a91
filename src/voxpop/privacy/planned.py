"""Common base classes of mechanisms and plans: the budget check, the release, and its ledger entry."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from math import nan
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from voxpop.errors import InputError, InternalError
from voxpop.privacy.budget import Budget, Printed, check_probability, check_whole
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.passes import Certificate, Claim, Proof

if TYPE_CHECKING:
    from voxpop.privacy.composition import Admission
    from voxpop.privacy.gate.gate import Gate

ConfigurationType = TypeVar("ConfigurationType")
Data = TypeVar("Data")
ResultType = TypeVar("ResultType")
_MOST_PER_USER = 10**12
USUAL_ITEMS, ITEMS_EACH = 10, (1, 10, 100)
"""Items per user that plans assume by default, and those for which tables have rows."""
AnyPlan = TypeVar("AnyPlan", bound="Planned[Any, Any, Any]")


class Account(Protocol):
    """The account of one data set, or one run of it; see `voxpop.Ledger`."""

    def charge(self, guarantee: Guarantee, mechanism: str) -> Any:
        """Charge a release before it runs, and return its entry."""

    def finish(self, entry: Any, result: Any) -> None:
        """Record that a release is complete; raises if the result must be discarded."""

    def fail(self, entry: Any) -> None:
        """Record that a release raised an exception."""


class Configured(Protocol):
    """A public configuration, as its plan sees it."""

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""


@dataclass(frozen=True, slots=True, repr=False)
class Planned(Printed, ABC, Generic[ConfigurationType, Data, ResultType]):
    """A plan: the public numbers of a release, computed before any private data is read.

    Only `mechanism.plan(budget)` creates plans that have a guarantee. A copy with other values, such as one made by
    `dataclasses.replace`, may exceed the budget. Such a copy has no guarantee, is not charged and releases nothing.

    Attributes:
        mechanism: The public configuration that was planned.
        budget: The privacy budget.
        delta: The delta that the plan's numbers spend at the budget's epsilon, at most the budget's delta.
        certificate: Everything on which the guarantee rests.

    Example:
        >>> import voxpop as vp
        >>> from dataclasses import replace
        >>> plan = vp.Items(max_items_per_user=100).plan(vp.Budget(epsilon=3, delta=4.5e-5))
        >>> try:
        ...     replace(plan, budget=vp.Budget(epsilon=0.1, delta=1e-9)).guarantee
        ... except vp.errors.InputError as error:
        ...     print(str(error)[:40])
        this plan was changed after it was made,
    """

    _recorded: ClassVar[frozenset[str]] = frozenset()
    """Fields that a release fills in. The guarantee depends on none of them."""

    mechanism: ConfigurationType
    budget: Budget
    _certificate: str = field(default="", init=False, compare=False)
    _spent: float = field(default=nan, init=False, compare=False)
    _transcript: str = field(default="", init=False, compare=False)

    def release(self, data: Data, *, ledger: "Account | None" = None, seed: int | None = None) -> ResultType:
        """Run the plan on a data set.

        The ledger is charged before the plan runs. The charge remains if the release fails or is interrupted, because
        part of the result may have been seen. Only an interrupted run of `account.run(label)` may be repeated.

        Args:
            data: The data set, as returned by `voxpop.read` or `voxpop.load_corpus`.
            ledger: The account to charge; see `voxpop.Ledger`.
            seed: Makes the release reproducible and NOT private, and marks it so. Leave it out for real data. A
                release with a seed cannot be charged to a ledger.

        Returns:
            The result with this plan and its guarantee.

        Raises:
            BudgetError: The ledger has too little budget left; nothing ran and nothing was charged.
            LedgerError: The ledger cannot be read or written; nothing ran.
            InputError: The plan was changed after it was made, or both a ledger and a seed were given.
        """
        guarantee, prepared = self.guarantee, self._prepared(data)
        if ledger is None:
            return self._run(prepared, seed)
        if seed is not None:
            raise InputError(
                "a release with a seed is not private, so it cannot be charged to a ledger. Leave out one of the two."
            )
        entry = ledger.charge(guarantee, str(self.to_dict()["mechanism"]))
        try:
            result: Any = self._run(prepared, None)
        except Exception:  # the reason may depend on the noise, so the run must not be repeated
            ledger.fail(entry)
            raise
        if isinstance(result, Mapping):  # several data sets
            result = {name: _with_entry(each, entry.admission) for name, each in result.items()}
        else:
            result = _with_entry(result, entry.admission)
        ledger.finish(entry, result)
        return result  # type: ignore[no-any-return]

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one release of this plan.

        Raises:
            InputError: The plan was changed after it was made.
        """
        self._checked()
        return self._guaranteed()

    @property
    def delta(self) -> float:
        """The delta that the numbers spend at the budget's epsilon; not a number where the plan was changed."""
        return self._spent

    @property
    def certificate(self) -> Certificate:
        """Everything on which the guarantee rests; `voxpop.privacy.certificate.check` computes delta from it.

        Raises:
            InputError: The plan was changed after it was made.
        """
        return Certificate.from_dict(json.loads(self._checked()))

    @property
    def transcript(self) -> list[dict[str, Any]]:
        """Every pass of the release that recorded this plan, in order; empty before a release.

        It is a function of the certificate and of released results only.
        """
        passes: list[dict[str, Any]] = json.loads(self._transcript or "[]")
        return passes

    def _checked(self) -> str:
        if not self._certificate:
            raise InputError(
                "this plan was changed after it was made, so its privacy cost is unknown and it releases nothing. "
                "Change the mechanism or the budget instead, and plan again: mechanism.plan(budget)."
            )
        return self._certificate

    @property
    def _claim(self) -> Claim:
        """The budget, which the certificate claims."""
        return Claim(self.budget.epsilon, self.budget.delta)

    @abstractmethod
    def _proof(self) -> Proof:
        """Return every number on which the guarantee rests."""

    def begin(self, seed: int | None) -> tuple[Any, Guarantee]:
        """Return the gate of a release, and the guarantee, marked as not private where a seed was given.

        Args:
            seed: See `release`.

        Raises:
            InputError: The plan was changed after it was made.
        """
        from voxpop.privacy.gate.gate import gate_of
        from voxpop.privacy.secret import Secret

        secret, guarantee = Secret.of(seed), self.guarantee
        return gate_of(self._checked(), secret), replace(guarantee, private=guarantee.private and secret.private)

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return every public number, ready for JSON."""

    def __str__(self) -> str:
        """Return the text of the plan, by `describe` of the mechanism's package."""
        package = type(self).__module__.rpartition(".")[0]
        return str(import_module(f"{package}.describe").describe(self.to_dict(), str(self.guarantee)))

    def _guaranteed(self) -> Guarantee:
        """Return the guarantee of a checked plan."""
        from voxpop.privacy.certificate import spend_of

        certificate = self.certificate
        claim = certificate.claim
        return Guarantee(claim.epsilon, claim.delta, claim.neighbours, spend=spend_of(certificate))

    def _prepared(self, data: Data) -> Any:
        """Return the data as `_run` needs it; errors that do not depend on noise are raised here, before the charge."""
        return data

    @abstractmethod
    def _run(self, data: Any, seed: int | None) -> ResultType:
        """Run the plan without a ledger."""


class DiscoveryPlan(Planned[ConfigurationType, Data, ResultType]):
    """A plan whose release names items that enough users hold."""

    __slots__ = ()
    counts_items: ClassVar[bool] = False
    """Whether the number of users depends on the number of items per user."""

    def users_needed(self, probability: float, *, length: int | None = None, per_user: int | None = None) -> int | None:
        """Return the number of users who must hold an item for its release with this probability.

        The number is computed from the plan. It does not depend on any data.

        Args:
            probability: Strictly between 0 and 1.
            length: N-grams only: the number of tokens of the phrase, 1 if left out. The parts of the phrase are assumed
                to be released.
            per_user: Items and n-grams only: number of distinct items (or phrases of that length) each of the
                users holds, all of them as rare as this one. The default is 10, or the maximum per user if it is
                smaller. If users have more items than this maximum, the result is the average over the random choice of
                their items.

        Returns:
            The number of users, or None if no number up to 10^12 is enough.

        Raises:
            InputError: A number is out of range, or the mechanism has no such parameter.
        """
        check_probability(probability)
        for name, value, most, meaning in (
            ("length", length, self.longest, "the number of tokens of the phrase"),
            ("per_user", per_user, _MOST_PER_USER if self.counts_items else None, "the number of items of each user"),
        ):
            if value is None:
                continue
            if most is None:
                raise InputError(f"`{name}` does not apply to {self.to_dict()['mechanism']}. Leave it out.")
            check_whole(name, value, most, meaning)
        usual = min(USUAL_ITEMS, self._most_per_user or USUAL_ITEMS)
        return self._users_needed(probability, length or 1, per_user or usual)

    @property
    def longest(self) -> int | None:
        """The largest `length`; None if items have no length."""
        return None

    @property
    def _most_per_user(self) -> int | None:
        """The maximum number of items or phrases per user; None if the mechanism has none or chooses it privately."""
        return None

    @abstractmethod
    def _users_needed(self, probability: float, length: int, per_user: int) -> int | None:
        """Return the number for arguments that were checked."""


class Mechanism(ABC, Generic[Data, ResultType]):
    """A public configuration that can be planned for a budget and run on data."""

    __slots__ = ()

    @abstractmethod
    def plan(self, budget: Budget) -> Planned[Any, Data, ResultType]:
        """Compute the noise for a budget; no private data is needed."""

    def release(
        self, data: Data, budget: Budget, *, ledger: "Account | None" = None, seed: int | None = None
    ) -> ResultType:
        """Plan for the budget and run the plan on a data set.

        Args:
            data: The data set, as returned by `voxpop.read` or `voxpop.load_corpus`.
            budget: The privacy budget of the release.
            ledger: The account to charge before the release runs; see `voxpop.Ledger`.
            seed: Makes the release reproducible and NOT private, and marks it so. Leave it out for real data.

        Returns:
            The result with the plan that ran and its guarantee.
        """
        return self.plan(budget).release(data, ledger=ledger, seed=seed)


def certified(plan: AnyPlan) -> AnyPlan:
    """Give a plan its certificate, once it was checked against the budget: the last step of planning.

    Args:
        plan: A new plan, which no caller has seen.

    Raises:
        InternalError: The numbers of the certificate cost more than the budget.
    """
    from voxpop.privacy.certificate import check

    text = Certificate(plan._claim, plan._proof()).to_json()
    # The check reads the written text, like the gate and a saved release.
    spent = check(Certificate.from_dict(json.loads(text)))
    if not spent <= plan.budget.delta:
        raise InternalError("the plan's own numbers exceed the budget")
    object.__setattr__(plan, "_spent", spent)
    object.__setattr__(plan, "_certificate", text)
    return plan


def with_record(plan: AnyPlan, gate: "Gate[Any] | None" = None, **ran: Any) -> AnyPlan:
    """Return a plan with the record of a release.

    Args:
        plan: The plan that ran.
        gate: Of the release, whose certificate and transcript are recorded.
        ran: Values of the fields that the class of the plan lists in `_recorded`.

    Raises:
        InternalError: Another field is given, on which the guarantee may depend.
    """
    if other := sorted(ran.keys() - type(plan)._recorded):
        raise InternalError(f"a release cannot record {other[0]!r} in its plan")
    noted = replace(plan, **ran)
    for name in ("_spent", "_certificate", "_transcript"):
        object.__setattr__(noted, name, getattr(plan, name))
    if gate is not None:
        for name, text in zip(("_certificate", "_transcript"), gate.record, strict=True):
            object.__setattr__(noted, name, text)
    return noted


def _with_entry(result: Any, entry: "Admission") -> Any:
    """Return a result that names its ledger entry, where it can."""
    named = getattr(result, "with_ledger_entry", None)
    return result if named is None else named(entry)
