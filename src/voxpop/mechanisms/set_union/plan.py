"""The plans of set union, with the numbers of the run, the guarantee, and the number of users that an item needs.

This module does not read data. The engine and the release are imported when a release begins, because they import numba
and pyarrow, which plans do not need.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, final

from voxpop.mechanisms.rounds import users_needed as needed
from voxpop.mechanisms.rounds.adaptive import AdaptiveRounds, Terms
from voxpop.mechanisms.rounds.listed import known_users_needed, listed_numbers
from voxpop.mechanisms.rounds.menu import (
    Menu,
    UnionStep,
    adaptive_proof,
    deciding,
    planned_rounds,
    planned_slack,
    rows_of,
    users_needed_by,
)
from voxpop.mechanisms.rounds.plan import LISTED_NOVELTY, NOVELTY, RoundPlan
from voxpop.mechanisms.rounds.users_needed import MinUsersBound
from voxpop.privacy.budget import Budget, budget_numbers, check_slack
from voxpop.privacy.certificate import slack_delta
from voxpop.privacy.numerics import optimal_delta
from voxpop.privacy.parameters import KnownList
from voxpop.privacy.passes import Proof, SelectionProof, ThresholdProof
from voxpop.privacy.planned import ITEMS_EACH, Configured, Data, DiscoveryPlan, ResultType, certified

if TYPE_CHECKING:
    from voxpop.engine.data import Corpus
    from voxpop.release.known import KnownItems
    from voxpop.release.release import Release


class UnionConfiguration(Configured, Protocol):
    """The fields of `Items` that plans read."""

    @property
    def max_items_per_user(self) -> int | None:
        """The maximum number of items per user in a round (None for a private choice)."""

    @property
    def promise(self) -> MinUsersBound | None:
        """The promise about items with few users, or None if there is no promise."""

    @property
    def known_items(self) -> "KnownItems | None":
        """The public list, if there is one."""


@final
@dataclass(frozen=True, slots=True, repr=False)
class UnionPlan(DiscoveryPlan[Any, Data, ResultType]):
    """The result of `Items.plan` and `plan_each`, with every number of the run, computed before any data is read.

    Attributes:
        passes: `AdaptiveRounds`, or the `Menu` for the private choice of a limit, or one `RoundPlan` for a published
            algorithm. In the plan of a release, the selected rounds follow the `Menu`.
        promise: The promise about items with few users, or None if there is no promise.
        data_sets: The names of the data sets, if several data sets have such passes.

    Example:
        >>> import voxpop as vp
        >>> plan = vp.Items(max_items_per_user=100).plan(vp.Budget(epsilon=3, delta=4.5e-5))
        >>> len(plan.last.rounds), plan.delta_spent <= 4.5e-5, plan.miss_probability() < 1e-6
        (20, True, True)
        >>> plan = vp.papers.SetUnion().plan(vp.Budget(epsilon=3, delta=4.5e-5))
        >>> round(plan.sigma, 2), plan.users_needed(0.5, per_user=1)
        (1.33, 7)
    """

    _recorded: ClassVar = frozenset({"passes"})
    counts_items: ClassVar = True

    passes: tuple[UnionStep, ...]
    promise: MinUsersBound | None = None
    data_sets: tuple[str, ...] = ()

    @property
    def last(self) -> RoundPlan | AdaptiveRounds:
        """The `RoundPlan` or `AdaptiveRounds` that releases items.

        Before a choice, the rounds of the largest limit are returned.
        """
        return deciding(self.passes[-1])

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise on an item's weight in the last round, or 0 if no noise is added."""
        last = self.last
        # The variance of Laplace noise of scale b is 2 b^2.
        return last.scale * (2.0**0.5 if isinstance(last, RoundPlan) and last.noise == "laplace" else 1.0)

    @property
    def scale(self) -> float:
        """The scale of the noise in the last round, which is the sigma of Gaussian noise or the b of Laplace noise."""
        return self.last.scale

    @property
    def threshold(self) -> float:
        """The threshold of the last round, in units of weight, for an item that no round dropped."""
        return self.last.threshold

    def _proof(self) -> Proof:
        first = self.passes[0]
        if not isinstance(first, RoundPlan):
            limit, listed = self.mechanism.max_items_per_user, listed_of(self.mechanism)
            return adaptive_proof(first, limit, data_sets=self.data_sets, listed=listed)
        if first.noise != "optimal":
            return ThresholdProof(first.stated(), None)
        # The cost of 128-bit draws is subtracted before the rule is constructed, not after.
        delta = optimal_delta(self.budget.epsilon, self.budget.delta)
        return SelectionProof(delta, round(first.threshold))

    def _users_needed(self, probability: float, length: int, per_user: int) -> int | None:
        return users_needed_by(self.passes[-1], self.budget, probability, per_user)

    def miss_probability(self) -> float:
        """Return the probability that an item with ten times the required number of users is missed.

        The result is the maximum over users with 1, 10 and 100 items that are as common as this item.
        """
        last = self.last
        if isinstance(last, RoundPlan):
            return max(needed.miss_probability(last, self.budget, items) for items in ITEMS_EACH)
        return max(needed.adaptive_missing(last, items) for items in ITEMS_EACH)

    def released_with_few(self) -> float:
        """Bound the probability that an item with fewer than `min_users` users is released.

        Without `min_users`, return 1.
        """
        step = self.passes[-1]
        if self.promise is None:
            return 1.0
        if isinstance(step, Menu):
            return self.promise.beta  # every limit of the menu keeps the promise
        if isinstance(step, RoundPlan):
            # Optimal selection never releases an item with so few users.
            return 0.0 if step.noise == "optimal" else self.promise.reached(step)
        return needed.ever_released_with_few(self.promise, step.first_round, step.score)

    @property
    def known_items(self) -> "KnownItems | None":
        """The public list, if there is one."""
        return getattr(self.mechanism, "known_items", None)  # published algorithms have no list

    def _prepared(self, data: Data) -> Any:
        from voxpop.engine.contract import check_engine

        known = self.known_items
        for each in data.values() if isinstance(data, Mapping) else [data]:
            if known is not None:
                known.check(check_engine(each).keys)
        return data

    def _run(self, data: Any, seed: int | None) -> Any:
        from voxpop.mechanisms.set_union.releasing import release_each, release_items

        return (release_each if self.data_sets else release_items)(self, data, seed)

    def to_dict(self) -> dict[str, Any]:
        """Return every public number, ready for JSON."""
        step = self.passes[-1]
        sizes: dict[str, Any] = {} if isinstance(step, RoundPlan) else {"max_items_per_user": None, "pool": None}
        if isinstance(step, AdaptiveRounds):
            sizes |= {"max_items_per_user": step.limit, "pool": step.pool}
        return {
            **self.mechanism.to_dict(),
            **budget_numbers(self.budget, self.delta_spent),
            **({"data_sets": list(self.data_sets)} if self.data_sets else {}),
            **sizes,
            "sigma": self.sigma,
            "scale": self.scale,
            "threshold": self.threshold,
            "cutoff": self.last.cutoff,
            "passes": rows_of(*self.passes),
            "users_needed": needed.users_needed_rows(self.users_needed),
            "miss_probability": self.miss_probability(),
            **self._promised(),
            **listed_numbers(self.passes[-1], self.known_items, self._most_per_user, self.transcript),
        }

    @property
    def _most_per_user(self) -> int | None:
        limit: int | None = self.mechanism.max_items_per_user
        return limit

    def known_users_needed(self, probability: float, *, per_user: int | None = None) -> int | None:
        """Return the number of users that a listed item needs to be released with this probability.

        The result assumes that a tenth of the list is released. If a larger part is released, an item needs fewer
        users.

        Args:
            probability: A number strictly between 0 and 1.
            per_user: The number of items per user, as in `users_needed`.

        Raises:
            InputError: A number is out of range, or there is no list.
        """
        limit = self.mechanism.max_items_per_user
        return known_users_needed(self.passes[-1], self.known_items, limit, probability, per_user)

    def _promised(self) -> dict[str, Any]:
        if self.promise is None:
            return {}
        union, names = replace(self.mechanism, min_users=None), self.data_sets
        without = union.plan_each(names, self.budget) if names else union.plan(self.budget)
        return {
            "min_users": self.promise.users,
            "failure_probability": self.promise.beta,
            "released_with_few": self.released_with_few(),
            "users_needed_without_promise": needed.users_needed_rows(without.users_needed),
        }


if TYPE_CHECKING:
    OnePlan = UnionPlan[Corpus, Release]
    EachPlan = UnionPlan[Mapping[str, Corpus], dict[str, Release]]


def listed_of(union: UnionConfiguration) -> KnownList | None:
    """Return the numbers of the public list of a configuration, or None if there is no list."""
    return None if union.known_items is None else union.known_items.listed


def plan_adaptive(
    union: UnionConfiguration, budget: Budget, data_sets: tuple[str, ...] = (), promise: MinUsersBound | None = None
) -> UnionPlan[Any, Any]:
    """Plan adaptive rounds.

    Args:
        union: The configuration.
        budget: The budget of the release.
        data_sets: The names of several data sets that share the budget, or an empty tuple for a single data set.
        promise: The promise about items with few users. The default is the promise of the configuration.
    """
    promise, many = promise or union.promise, max(1, len(data_sets))
    # The rounds of data sets are independent, so the costs of finite arithmetic add up.
    listed = listed_of(union)
    slack = many * slack_delta(planned_slack(union.max_items_per_user, listed), budget.epsilon)
    check_slack("adaptive rounds need", budget, slack)
    novelty = NOVELTY if listed is None else LISTED_NOVELTY
    terms = Terms(budget.epsilon, budget.delta - slack, 1.0, novelty, many, promise, listed)
    return certified(UnionPlan(union, budget, (planned_rounds(terms, union.max_items_per_user),), promise, data_sets))
