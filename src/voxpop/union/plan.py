"""A set union with its noise filled in: what will run, what it guarantees, and how many users an item needs."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.slack import numerical_slack
from voxpop.privacy.spend import Spend, gaussian_spend
from voxpop.rounds.holders import check_holders
from voxpop.rounds.plan import RoundPlan
from voxpop.union.plan_numbers import PlanNumbers

if TYPE_CHECKING:
    from voxpop.corpus.engine import Engine
    from voxpop.release import Release


@final
@dataclass(frozen=True, slots=True, repr=False)
class UnionPlan(PlanNumbers):
    """What `SetUnion.plan` returns: every number that will run, before any data is read.

    Attributes:
        rounds: one `RoundPlan` per round.
        delta: what the numbers above spend at the budget's epsilon, at most the budget's delta.

    Example:
        >>> import voxpop as vp
        >>> plan = vp.SetUnion(limit=100, weighting="l2-descent").plan(vp.Budget(epsilon=3, delta=4.5e-5))
        >>> round(plan.sigma, 2), plan.holders(0.5, items=1)
        (1.28, 7)
    """

    rounds: tuple[RoundPlan, ...]
    delta: float = field(kw_only=True)

    def _guaranteed(self) -> Guarantee:
        return Guarantee(self.budget.epsilon, self.budget.delta, spend=self._spend())

    def _spend(self) -> Spend | None:
        """What Gaussian rounds spend; None for any other noise."""
        if any(each.noise != "gaussian" for each in self.rounds):
            return None
        # By (d, mu) of each round, so that releases compose without loss (docs/privacy/composition.md).
        return gaussian_spend([each.pair() for each in self.rounds], slack=numerical_slack(self.budget.epsilon))

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on an item's weight, in the last round; 0 where no noise is added."""
        last = self.rounds[-1]
        # Laplace noise of scale b has the variance 2 b^2.
        return last.scale * 2.0**0.5 if last.noise == "laplace" else last.scale

    @property
    def scale(self) -> float:
        """Scale of the noise in the last round: sigma of Gaussian noise, b of Laplace noise."""
        return self.rounds[-1].scale

    @property
    def threshold(self) -> float:
        """Threshold of the last round, in units of weight."""
        return self.rounds[-1].threshold

    @property
    def cutoff(self) -> float | None:
        """Weight at which items stop rising in the last round; None for weightings without a cutoff."""
        return self.rounds[-1].cutoff

    def holders(self, probability: float, items: int = 1) -> int | None:
        """Return how many users must hold an item for the release to name it with this probability.

        The users are taken to hold `items` items each, all as rare as this one; in the last round alone, so earlier
        rounds only help. Where users hold more than `limit` items, their random choice is averaged over.

        Args:
            probability: strictly between 0 and 1.
            items: distinct items of each of the users.

        Returns:
            The number of users, or None where no number is enough (a cutoff too low, or over 10^12 users).

        Raises:
            InputError: for arguments out of range.
        """
        from voxpop.rounds.holders import users_needed

        check_holders(probability, items)
        return users_needed(self.rounds[-1], self.budget, probability, items)

    def missing(self) -> float:
        """Return the chance that an item is missing which ten times as many users hold as it needs.

        The worst of users with 1, 10 and 100 items, all as common as this one.
        """
        from voxpop.rounds.holders import SIZES, missing

        # By the last round alone: earlier rounds only release more.
        return max(missing(self.rounds[-1], self.budget, items) for items in SIZES)

    def released_with_few(self) -> float:
        """Bound how likely an item of fewer than `at_least` users is released; 1 where nothing is promised."""
        from voxpop.rounds.at_least import released_with_few

        promise = self.mechanism.promise
        if promise is None:
            return 1.0
        # The optimal rule is never above 0 for so few: they do not count.
        return 0.0 if self.mechanism.one_item_each else released_with_few(promise, self.rounds)

    def release(self, corpus: "Engine", seed: int | None = None) -> "Release":
        """Run the plan on a corpus; see `SetUnion.release`."""
        from voxpop.union.releasing import release_union

        return release_union(self, corpus, seed)

    def _round_rows(self) -> list[dict[str, Any]]:
        return [each.to_dict() for each in self.rounds]

    def __str__(self) -> str:
        """Return the plan as a person reads it."""
        from voxpop.union.describe import describe

        return describe(self.to_dict(), str(self.guarantee))
