"""Split one budget over several releases, so that each reaches a stated target. No data is read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import hypot, inf, sqrt
from typing import Any, Final, final

from voxpop.errors import BudgetError, InputError
from voxpop.ledger.caps import AccountLimits
from voxpop.privacy.budget import Budget, check_budget
from voxpop.privacy.gaussian import sigma
from voxpop.privacy.guarantee import Guarantee, gaussian_spend
from voxpop.privacy.numerics import walk_slack

_PRECISION: Final = 0.01
"""The relative precision of the epsilons."""
_PARTS: Final = 3
"""The number of equal parts of delta. The releases share one part, which is less than half of delta, so that their
revealing outcomes fit the cap."""
SMALLEST: Final = 2.0**-7
"""The smallest epsilon to try, as a fraction of the total epsilon."""


@final
@dataclass(frozen=True, slots=True)
class Target:
    """The target of one release, either a number of users that suffices for an item or a standard error of counts.

    Attributes:
        mechanism: The configuration, such as `vp.Items()`, or None for counts of a release.
        users: The number of users that must suffice for the release of an item.
        probability: The probability of the release of such an item.
        per_user: The parameter `per_user` of `plan.users_needed`.
        length: The parameter `length` of `plan.users_needed`.
        error: The maximum standard error of a count, if each user has at most `counted_in_full` released items.
        counted_in_full: The maximum number of released items per user such that the user counts in full.

    Raises:
        InputError: If there is not exactly one target, or it does not fit the mechanism.

    Example:
        >>> import voxpop as vp
        >>> vp.Target(vp.Items(), users=100, per_user=10).is_met(vp.Budget(2, 1e-7))
        True
        >>> vp.Target(error=20, counted_in_full=10).is_met(vp.Budget(0.1, 1e-7))
        False
    """

    mechanism: Any = None
    users: int | None = None
    probability: float = 0.9
    per_user: int | None = None
    length: int | None = None
    error: float | None = None
    counted_in_full: int = 1

    def __post_init__(self) -> None:
        if (self.mechanism is None) != (self.users is None) or (self.users is None) == (self.error is None):
            raise InputError("a target must be `users` for a mechanism, or `error` without one. Give one of the two.")
        if self.error is not None and not (self.error > sqrt(1 / 12) and self.counted_in_full >= 1):
            raise InputError("`error` must be above 0.29, the error of rounding, and `counted_in_full` at least 1.")

    def is_met(self, budget: Budget) -> bool:
        """Return whether a release with this budget reaches the target."""
        if self.error is not None:
            # The error of rounding to whole users is approximately uniform on an interval of length 1.
            return hypot(self._sigma(budget), sqrt(1 / 12)) <= self.error
        plan = self.mechanism.plan(budget)
        given = {"length": self.length, "per_user": self.per_user}
        needed = plan.users_needed(self.probability, **{k: v for k, v in given.items() if v is not None})
        return needed is not None and needed <= (self.users or 0)

    def guarantee(self, budget: Budget) -> Guarantee:
        """Return the guarantee of a release with this budget."""
        if self.error is None:
            found: Guarantee = self.mechanism.plan(budget).guarantee
            return found
        spend = gaussian_spend([(0.0, sqrt(self.counted_in_full) / self._sigma(budget))], walk_slack(budget.epsilon, 1))
        return Guarantee(budget.epsilon, budget.delta, spend=spend)

    def _sigma(self, budget: Budget) -> float:
        exact = budget.delta - walk_slack(budget.epsilon, 1)
        return sigma(budget.epsilon, exact, sqrt(self.counted_in_full)) if exact > 0 else inf


def split_budget(budget: Budget, targets: Mapping[str, Target]) -> dict[str, Budget]:
    """Split a budget over several releases about the same users, so that each reaches its target.

    Each release gets an equal part of a third of delta, and the smallest epsilon that reaches its target. The rest of
    the budget raises all epsilons by the same factor. A ledger with this budget admits all releases in any order, even
    if later releases depend on earlier results. However, targets and budgets must not be computed from the data.

    Args:
        budget: The budget of all releases together.
        targets: The target of each release, by name.

    Returns:
        The budget of each release, by name.

    Raises:
        InputError: If there is no target.
        BudgetError: If the whole budget cannot reach the targets. The message contains a sufficient epsilon.

    Example:
        >>> import voxpop as vp
        >>> words = vp.Target(vp.Items(max_items_per_user=100), users=100)
        >>> targets = {"words": words, "counts": vp.Target(error=30, counted_in_full=16)}
        >>> parts = vp.split_budget(vp.Budget(2, 1e-7), targets)
        >>> all(targets[name].is_met(part) for name, part in parts.items())
        True
        >>> sum(part.delta for part in parts.values()) < 1e-7
        True
    """
    check_budget(budget)
    if not targets or not all(isinstance(each, Target) for each in targets.values()):
        raise InputError(
            '`targets` must name a target for each release, such as {"words": vp.Target(vp.Items(), users=90)}.'
        )
    delta = budget.delta / (_PARTS * len(targets))
    least = {name: _least_epsilon(name, target, budget.epsilon, delta) for name, target in targets.items()}

    def parts(factor: float) -> list[Guarantee]:
        return [targets[name].guarantee(Budget(epsilon * factor, delta)) for name, epsilon in least.items()]

    def fits(factor: float) -> bool:
        return AccountLimits.of(budget).hold(parts(factor))

    if not fits(1.0):
        needed = _needed_epsilon(budget, parts(1.0))
        raise BudgetError(
            f"the targets need epsilon {needed:.3g} together at delta {budget.delta:g}, and the budget has "
            f"{budget.epsilon:g}. Raise the budget, or the numbers of users and errors of the targets."
        )
    low, high = 1.0, budget.epsilon / max(least.values())
    if fits(high):
        low = high
    while high / low > 1 + _PRECISION:
        middle = sqrt(low * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return {name: Budget(epsilon * low, delta) for name, epsilon in least.items()}


def _needed_epsilon(budget: Budget, guarantees: Sequence[Guarantee]) -> float:
    """Return approximately the smallest epsilon of a ledger with this delta that has room for all releases."""
    low, high = budget.epsilon, sum(each.epsilon for each in guarantees)
    while high / low > 1 + _PRECISION:
        middle = sqrt(low * high)
        low, high = (low, middle) if AccountLimits.of(Budget(middle, budget.delta)).hold(guarantees) else (middle, high)
    return high


def _least_epsilon(name: str, target: Target, most: float, delta: float) -> float:
    """Return the smallest epsilon that reaches a target, by bisection of its logarithm."""

    def enough(epsilon: float) -> bool:
        try:
            return target.is_met(Budget(epsilon, delta))
        except BudgetError:
            return False

    if not enough(most):
        raise BudgetError(
            f'the whole budget does not reach the target of "{name}": epsilon {most:g} at delta {delta:.3g}. Raise the '
            "budget, or the number of users or the error of the target."
        )
    low, high = most * SMALLEST, most
    if enough(low):
        return low
    while high / low > 1 + _PRECISION:
        middle = sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
