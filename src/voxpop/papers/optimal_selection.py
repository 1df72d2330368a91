"""Differentially Private Partition Selection (Desfontaines, Voss, Gipson, Mandayam; PoPETs 2022)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from voxpop.errors import BudgetError
from voxpop.mechanisms.rounds.plan import RoundPlan
from voxpop.mechanisms.rounds.users_needed import MinUsersBound, promise_of
from voxpop.mechanisms.set_union.mechanism import check_min_users
from voxpop.mechanisms.set_union.plan import UnionPlan
from voxpop.privacy.budget import Budget, check_budget
from voxpop.privacy.numerics import numerical_slack
from voxpop.privacy.planned import Mechanism, certified
from voxpop.privacy.weightings.builtin import Count
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting

if TYPE_CHECKING:
    from voxpop.engine.data import Corpus  # noqa: F401
    from voxpop.mechanisms.set_union.plan import OnePlan
    from voxpop.release.release import Release  # noqa: F401


@final
@dataclass(frozen=True, slots=True)
class OptimalSelection(Mechanism["Corpus", "Release"]):
    """Release items with the largest probabilities that the budget allows, using one item per user (Theorem 1).

    If a user has several items, one of them is drawn. No mechanism that decides about each item separately releases an
    item with a higher probability (docs/privacy/optimal-selection.md). If users have several items, `voxpop.Items`
    releases more.

    Attributes:
        min_users: The number of users below which an item is never released. By default, there is no such number.

    Example:
        >>> import voxpop as vp
        >>> plan = vp.papers.OptimalSelection().plan(vp.Budget(epsilon=1, delta=1e-8))
        >>> plan.users_needed(0.9, per_user=1)
        20
    """

    min_users: int | None = None

    def __post_init__(self) -> None:
        """Check `min_users`."""
        check_min_users(self.min_users)

    @property
    def max_items_per_user(self) -> int:
        """The maximum number of items per user, which is 1."""
        return 1

    @property
    def promise(self) -> MinUsersBound | None:
        """The promise about items with few users, or None if there is no promise."""
        return promise_of(self.min_users)

    def plan(self, budget: Budget) -> "OnePlan":
        """Compute the probabilities of release for a budget, without data.

        Raises:
            BudgetError: Delta is too small for decisions with 128 random bits.
        """
        check_budget(budget)
        if budget.delta <= numerical_slack(budget.epsilon):
            least = 2 * numerical_slack(budget.epsilon)
            raise BudgetError(
                f"`delta` must be at least {least:.2g} at epsilon {budget.epsilon:g}, got {budget.delta:g}. Below "
                "that, decisions with 128 random bits cost more than all of it. Raise `delta` or lower `epsilon`."
            )
        shares = CalibratedRule(Count(), RuleSetting(limit=1, norm=1, bits=0))
        few = 0 if self.promise is None else self.promise.few
        only = RoundPlan(shares, "optimal", scale=0.0, threshold=float(few))
        return certified(UnionPlan(self, budget, (only,), self.promise))

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""
        return {"mechanism": "items", "paper": "optimal selection", "max_items_per_user": 1, **Count().to_dict()}
