"""Adaptive rounds with their noise filled in: what will run, what it guarantees, how many users an item needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final, overload

from voxpop.privacy.evidence import EvidenceRounds
from voxpop.privacy.guarantee import Guarantee
from voxpop.rounds.adaptive.numbers import AdaptiveRound, LastRound, round_rows
from voxpop.rounds.adaptive.planning import rounds_slack, rounds_spend
from voxpop.rounds.holders import SIZES, check_holders
from voxpop.rounds.plan import RoundPlan
from voxpop.union.plan_numbers import PlanNumbers

if TYPE_CHECKING:
    from voxpop.corpus.engine import Engine
    from voxpop.release import Release


@final
@dataclass(frozen=True, slots=True, repr=False)
class AdaptivePlan(LastRound, PlanNumbers):
    """What `SetUnion.plan` returns by default: every number that will run, before any data is read.

    Attributes:
        limit: most items of one user in a round.
        pool: most items of one user in all rounds after the opening.
        opening: the first round, which only releases.
        rounds: the later rounds.
        evidence: how later rounds are added up, and when items are released or dropped.
        data_sets: where several share the budget, their names: each gets these very rounds.
        delta: what the numbers above spend at the budget's epsilon, in all data sets, at most the budget's delta.

    Example:
        >>> import voxpop as vp
        >>> plan = vp.SetUnion(limit=100).plan(vp.Budget(epsilon=3, delta=4.5e-5))
        >>> len(plan.rounds), plan.delta <= 4.5e-5, plan.missing() < 1e-6
        (20, True, True)
    """

    limit: int
    pool: int
    opening: RoundPlan
    rounds: tuple[AdaptiveRound, ...]
    evidence: EvidenceRounds
    data_sets: tuple[str, ...] = ()
    delta: float = field(kw_only=True)

    def _guaranteed(self) -> Guarantee:
        if self.data_sets:
            # The numbers are those of one data set; together they compose by epsilon and delta.
            return Guarantee(self.budget.epsilon, self.budget.delta)
        slack = rounds_slack(self.budget.epsilon, len(self.rounds), self.limit, self.pool)
        return Guarantee(self.budget.epsilon, self.budget.delta, spend=rounds_spend(self, slack))

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on an item's weight, in the last round."""
        return self.scale

    def holders(self, probability: float, items: int = 1) -> int | None:
        """Return how many users must hold an item for the release to name it with this probability.

        The users are taken to hold `items` items each, all as rare as this one and none of them dropped. Where users
        hold more than `limit` items, about so many of them choose it as is usual.

        Args:
            probability: strictly between 0 and 1.
            items: distinct items of each of the users.

        Returns:
            The number of users, or None where no number is enough.

        Raises:
            InputError: for arguments out of range.
        """
        from voxpop.rounds.adaptive.holders import users_needed

        check_holders(probability, items)
        return users_needed(self, probability, items)

    def missing(self) -> float:
        """Return the chance that an item is missing which ten times as many users hold as it needs.

        The worst of users with 1, 10 and 100 items, all as common as this one.
        """
        from voxpop.rounds.adaptive.holders import missing

        return max(missing(self, items) for items in SIZES)

    def released_with_few(self) -> float:
        """Bound how likely an item of fewer than `at_least` users is released; 1 where nothing is promised."""
        from voxpop.rounds.adaptive.few import ever_released_with_few

        promise = self.mechanism.promise
        if promise is None:
            return 1.0
        return ever_released_with_few(promise, self.opening, self.rounds, self.evidence)

    @overload
    def release(self, corpus: "Engine", seed: int | None = None) -> "Release": ...

    @overload
    def release(self, corpus: "Mapping[str, Engine]", seed: int | None = None) -> "dict[str, Release]": ...

    def release(
        self, corpus: "Engine | Mapping[str, Engine]", seed: int | None = None
    ) -> "Release | dict[str, Release]":
        """Run the plan on a corpus, or on its data sets by name; see `SetUnion.release`."""
        from voxpop.union.adaptive.releasing import release_adaptive, release_several

        if isinstance(corpus, Mapping):
            return release_several(self, corpus, seed)
        return release_adaptive(self, corpus, seed)

    def _sizes(self) -> dict[str, Any]:
        named = {"data_sets": list(self.data_sets)} if self.data_sets else {}
        return {**named, "limit": self.limit, "pool": self.pool}

    def _names(self) -> tuple[str, ...]:
        return self.data_sets

    def _round_rows(self) -> list[dict[str, Any]]:
        return round_rows(self)

    def __str__(self) -> str:
        """Return the plan as a person reads it."""
        from voxpop.union.adaptive.describe import describe

        return describe(self.to_dict(), str(self.guarantee))
