"""The common base classes of mechanisms and plans, with the budget check, the release, and its ledger entry."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from math import nan
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from voxpop.errors import InputError, InternalError
from voxpop.files.progress import track
from voxpop.privacy.budget import Budget, Printed, check_probability, check_whole
from voxpop.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from voxpop.privacy.composition import Admission
    from voxpop.privacy.gate.gate import Gate
    from voxpop.privacy.passes import Certificate, Claim, Proof

ConfigurationType = TypeVar("ConfigurationType")
Data = TypeVar("Data")
ResultType = TypeVar("ResultType")
_MOST_PER_USER = 10**12
USUAL_ITEMS, ITEMS_EACH = 10, (1, 10, 100)
"""The number of items per user that plans assume by default, and the numbers of items per user for which tables have a
row."""
AnyPlan = TypeVar("AnyPlan", bound="CertifiedPlan[Any]")
_State = TypeVar("_State")
_Gate = TypeVar("_Gate")


class Account(Protocol):
    """The account of one data set in a `voxpop.Ledger`, or one run of that account."""

    def charge(self, guarantee: Guarantee, mechanism: str) -> Any:
        """Charge a release before it runs, and return its entry."""

    def finish(self, entry: Any, result: Any) -> None:
        """Record that a release is complete, or raise an error if the result must be discarded."""

    def fail(self, entry: Any) -> None:
        """Record that a release raised an exception."""


class Configured(Protocol):
    """The public configuration of a plan."""

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""


@dataclass(frozen=True, slots=True, repr=False)
class CertifiedPlan(Printed, ABC, Generic[ConfigurationType]):
    """Public numbers with a certificate, which are computed before any private data is read.

    Only `mechanism.plan(budget)` creates plans that have a guarantee. A copy with other values, such as a copy made
    with `dataclasses.replace`, can exceed the budget. Such a copy has no guarantee, is not charged, and releases
    nothing.

    Attributes:
        mechanism: The public configuration of the plan.
        budget: The privacy budget.
        delta_spent: The delta that the plan spends at the epsilon of the budget, at most the delta of the budget.
        certificate: All numbers on which the guarantee is based.

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
    """Fields that a release sets. The guarantee does not depend on them."""

    mechanism: ConfigurationType
    budget: Budget
    _certificate: str = field(default="", init=False, compare=False)
    _spent: float = field(default=nan, init=False, compare=False)
    _transcript: str = field(default="", init=False, compare=False)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one release of this plan.

        Raises:
            InputError: The plan was changed after its creation.
        """
        self._checked()
        return self._guaranteed()

    @property
    def delta_spent(self) -> float:
        """The delta that the plan spends at the epsilon of the budget, or NaN if the plan was changed."""
        return self._spent

    @property
    def certificate(self) -> "Certificate":
        """All numbers on which the guarantee is based. `voxpop.privacy.certificate.check` computes delta from them.

        Raises:
            InputError: The plan was changed after its creation.
        """
        from voxpop.privacy.passes import Certificate

        return Certificate.from_dict(json.loads(self._checked()))

    @property
    def transcript(self) -> list[dict[str, Any]]:
        """The passes of the release that recorded this plan, in order. The list is empty before a release.

        The transcript depends only on the certificate and released results.
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
    def _claim(self) -> "Claim":
        """The budget that the certificate claims."""
        from voxpop.privacy.passes import Claim

        return Claim(self.budget.epsilon, self.budget.delta)

    @abstractmethod
    def _proof(self) -> "Proof":
        """Return all numbers on which the guarantee is based."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return all public numbers as a dictionary for JSON."""

    def __str__(self) -> str:
        """Return the text of the plan, which the function `describe` in the package of the mechanism writes."""
        package = type(self).__module__.rpartition(".")[0]
        return str(import_module(f"{package}.describe").describe(self.to_dict(), str(self.guarantee)))

    def _guaranteed(self) -> Guarantee:
        """Return the guarantee of a checked plan."""
        from voxpop.privacy.certificate import spend_of

        certificate = self.certificate
        claim = certificate.claim
        return Guarantee(claim.epsilon, claim.delta, claim.neighbours, spend=spend_of(certificate))


class Planned(CertifiedPlan[ConfigurationType], Generic[ConfigurationType, Data, ResultType]):
    """A plan of one release."""

    __slots__ = ()

    def release(self, data: Data, *, ledger: "Account | None" = None, seed: int | None = None) -> ResultType:
        """Run the plan on a data set.

        The ledger is charged before the plan runs. The charge remains if the release fails or is interrupted, because
        part of the result may have been seen. Only an interrupted run of `account.run(label)` may be repeated.

        Args:
            data: The data set, as returned by `voxpop.read` or `voxpop.load_corpus`.
            ledger: The account to charge, as returned by `voxpop.Ledger`, or None.
            seed: A seed, which makes the release reproducible and NOT private. The release is marked as not private.
                Omit the seed for real data. A release with a seed cannot be charged to a ledger.

        Returns:
            The result with this plan and its guarantee.

        Raises:
            BudgetError: The ledger has too little budget left. Nothing ran and nothing was charged.
            LedgerError: The ledger cannot be read or written. Nothing ran.
            InputError: The plan was changed after its creation, or both a ledger and a seed were given.
        """
        guarantee, prepared = self.guarantee, self._prepared(data)
        if ledger is None:
            return self._run(prepared, seed)
        if seed is not None:
            raise InputError(
                "a release with a seed is not private, so it cannot be charged to a ledger. Remove one of the two."
            )
        entry = ledger.charge(guarantee, str(self.to_dict()["mechanism"]))
        try:
            result: Any = self._run(prepared, None)
        except Exception:  # the reason can depend on the noise, so the run must not be repeated
            ledger.fail(entry)
            raise
        if isinstance(result, Mapping):  # several data sets
            result = {name: _with_entry(each, entry.admission) for name, each in result.items()}
        else:
            result = _with_entry(result, entry.admission)
        ledger.finish(entry, result)
        return result  # type: ignore[no-any-return]

    def begin(self, seed: int | None) -> tuple[Any, Guarantee]:
        """Return the gate and the guarantee of a release. With a seed, the guarantee is marked as not private.

        Args:
            seed: The seed of `release`, or None.

        Raises:
            InputError: The plan was changed after its creation.
        """
        from voxpop.privacy.gate.gate import gate_of
        from voxpop.privacy.secret import Secret

        secret, guarantee = Secret.of(seed), self.guarantee
        return gate_of(self._checked(), secret), replace(guarantee, private=guarantee.private and secret.private)

    def _prepared(self, data: Data) -> Any:
        """Return the data in the form that `_run` requires.

        Errors that do not depend on noise are raised here, before the charge.
        """
        return data

    @abstractmethod
    def _run(self, data: Any, seed: int | None) -> ResultType:
        """Run the plan without a ledger."""


class DiscoveryPlan(Planned[ConfigurationType, Data, ResultType]):
    """A plan for a release of items that enough users share."""

    __slots__ = ()
    counts_items: ClassVar[bool] = False
    """Whether the number of users needed depends on the number of items per user."""

    def users_needed(self, probability: float, *, length: int | None = None, per_user: int | None = None) -> int | None:
        """Return the number of users that an item needs to be released with this probability.

        The number follows from the plan and does not depend on any data.

        Args:
            probability: The probability of the release, strictly between 0 and 1.
            length: The number of tokens in the phrase, 1 by default (only for n-grams). The result assumes that the
                parts of the phrase are released.
            per_user: The number of distinct items (or phrases of that length) per user, all of which are assumed to be
                as rare as this one (only for items and n-grams). The default is 10, or the maximum per user if it is
                smaller. If users have more items than this maximum, the result is an average over the random choice of
                their items.

        Returns:
            The number of users, or None if no number up to 10^12 suffices.

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
                raise InputError(f"`{name}` does not apply to {self.to_dict()['mechanism']}. Remove it.")
            check_whole(name, value, most, meaning)
        usual = min(USUAL_ITEMS, self._most_per_user or USUAL_ITEMS)
        return self._users_needed(probability, length or 1, per_user or usual)

    @property
    def longest(self) -> int | None:
        """The largest `length`, or None if items have no length."""
        return None

    @property
    def _most_per_user(self) -> int | None:
        """The maximum number of items or phrases per user, or None if it is absent or chosen privately."""
        return None

    @abstractmethod
    def _users_needed(self, probability: float, length: int, per_user: int) -> int | None:
        """Return the number of users needed, for arguments that have already been checked."""


class Mechanism(ABC, Generic[Data, ResultType]):
    """A public configuration that can be planned for a budget and run on data."""

    __slots__ = ()

    @abstractmethod
    def plan(self, budget: Budget) -> Planned[Any, Data, ResultType]:
        """Compute the noise for a budget, without private data."""

    def release(
        self, data: Data, budget: Budget, *, ledger: "Account | None" = None, seed: int | None = None
    ) -> ResultType:
        """Plan for the budget and run the plan on a data set.

        Args:
            data: The data set, as returned by `voxpop.read` or `voxpop.load_corpus`.
            budget: The privacy budget of the release.
            ledger: The account to charge before the release runs, as returned by `voxpop.Ledger`, or None.
            seed: A seed, which makes the release reproducible and NOT private. The release is marked as not private.
                Omit the seed for real data.

        Returns:
            The result with its plan and its guarantee.
        """
        return self.plan(budget).release(data, ledger=ledger, seed=seed)


def certified(plan: AnyPlan) -> AnyPlan:
    """Check the certificate of a plan against the budget, and return the plan with its certificate.

    This is the last step of planning.

    Args:
        plan: A new plan that no caller has received yet.

    Raises:
        InternalError: The numbers of the certificate cost more than the budget.
    """
    from voxpop.privacy.certificate import check
    from voxpop.privacy.passes import Certificate

    text = Certificate(plan._claim, plan._proof()).to_json()
    # Check the written text, because the gate and saved releases also use this text.
    spent = check(Certificate.from_dict(json.loads(text)))
    if not spent <= plan.budget.delta:
        raise InternalError("the plan's own numbers exceed the budget")
    object.__setattr__(plan, "_spent", spent)
    object.__setattr__(plan, "_certificate", text)
    return plan


def with_record(
    plan: AnyPlan, gate: "Gate[Any] | None" = None, passed: Sequence[Mapping[str, Any]] | None = None, **ran: Any
) -> AnyPlan:
    """Return a plan with the record of a release.

    Args:
        plan: The plan of the release.
        gate: The gate of the release, which provides the certificate and the transcript, or None.
        passed: The transcript of a saved release, or None. The certificate of a saved release is compared separately.
        ran: The values of fields that the class of the plan lists in `_recorded`.

    Raises:
        InternalError: A value for another field was passed. Such a field could affect the guarantee.
    """
    if other := sorted(ran.keys() - type(plan)._recorded):
        raise InternalError(f"a release cannot record {other[0]!r} in its plan")
    noted = replace(plan, **ran)
    for name in ("_spent", "_certificate", "_transcript"):
        object.__setattr__(noted, name, getattr(plan, name))
    if gate is not None:
        for name, text in zip(("_certificate", "_transcript"), gate.record, strict=True):
            object.__setattr__(noted, name, text)
    if passed is not None:
        object.__setattr__(noted, "_transcript", json.dumps(passed))
    return noted


def _with_entry(result: Any, entry: "Admission") -> Any:
    """Return a result with its ledger entry, if the result supports entries."""
    named = getattr(result, "with_ledger_entry", None)
    return result if named is None else named(entry)


@dataclass(frozen=True, slots=True)
class GateCall(Generic[_Gate, _State]):
    """A pass over private data, with everything that is fixed before it runs.

    Attributes:
        run: The function that runs the pass through the gate and returns its outcome, which is released.
        after: The function that computes the next public state from the outcome.
        counted: Whether progress messages count the pass.
    """

    run: Callable[[_Gate], Any]
    after: Callable[[Any], _State]
    counted: bool = True


def run_passes(
    state: _State, schedule: Callable[[_State], GateCall[_Gate, _State] | None], gate: _Gate, unit: str | None
) -> _State:
    """Run passes until the schedule ends, and return the last state.

    Args:
        state: The public state before the first pass.
        schedule: A function that returns the next pass for a public state, or None at the end.
        gate: The gate of the release, which compares each pass with the certificate.
        unit: The plural noun for passes in progress messages; None if only schedules inside the passes show messages.
    """

    def passes() -> Iterator[int]:
        nonlocal state
        while (step := schedule(state)) is not None:
            state = step.after(step.run(gate))
            yield int(step.counted)

    for _ in passes() if unit is None else track(passes(), "releasing", int, None, unit, exact=True):
        pass
    return state


def one_pass(run: Callable[[_Gate], Any]) -> Callable[[Any], GateCall[_Gate, Any] | None]:
    """Return the schedule of a mechanism with a single pass. The last state is the outcome of the pass."""
    return lambda state: GateCall(run, lambda outcome: outcome) if state is None else None
