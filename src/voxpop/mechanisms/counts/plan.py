"""Plans of counts and rankings: the noise for a budget and the grams of a release; no private data."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import hypot, isqrt, nextafter, sqrt
from typing import TYPE_CHECKING, Any, Protocol, final

from voxpop.errors import BudgetError, InputError
from voxpop.mechanisms.counts.constants import USUAL
from voxpop.privacy.budget import Budget, budget_numbers
from voxpop.privacy.guarantee import Guarantee, gaussian_spend
from voxpop.privacy.numerics import walk_slack
from voxpop.privacy.peeling import behind, largest_rate, spent, spread
from voxpop.privacy.planned import Configured, Planned, sealed

if TYPE_CHECKING:
    from voxpop.engine.data import Corpus
    from voxpop.release.release import Release
    from voxpop.release.tally import Ranking, Tally


class Limits(Configured, Protocol):
    """The fields of `Counts` that the plan reads."""

    def limits(self, sizes: Sequence[int]) -> list[int]:
        """Return the limit of each length."""


class Picks(Configured, Protocol):
    """The fields of `Top` that the plan reads."""

    @property
    def k(self) -> int:
        """The number of grams to name."""


@final
@dataclass(frozen=True, slots=True, repr=False)
class CountsPlan(Planned[Limits, "Corpus", "Tally"]):
    """What `Counts.plan` returns: every number that will run, before any private data is read.

    Attributes:
        grams: the release whose grams are counted.
        limits: for each length, the most grams for which a user counts in full.
        sigma: standard deviation of the noise on every count, in users.
    """

    grams: "Release"
    limits: tuple[int, ...]
    sigma: float

    @property
    def sensitivity(self) -> float:
        """The l2 sensitivity of all counts together."""
        # A user adds at most 1 to each of `limit` grams a length, or sqrt(limit / n) to each of n: in l2 the root of
        # the sum of limits (docs/privacy/counts.md).
        return root_above(max(1, sum(self.limits)))

    @property
    def error(self) -> float:
        """Standard deviation of a count, rounding to whole users included."""
        # Rounding to whole users is about uniform on a length of 1: variance 1 / 12.
        return hypot(self.sigma, sqrt(1 / 12))

    def _guaranteed(self) -> Guarantee:
        slack = walk_slack(self.budget.epsilon, max(1, len(self.limits)))
        spend = gaussian_spend([(0.0, self.sensitivity / self.sigma)], slack)
        return Guarantee(self.budget.epsilon, self.budget.delta, spend=spend)

    def _run(self, data: "Corpus", seed: int | None) -> "Tally":
        from voxpop.mechanisms.counts.releasing import release_counts

        return release_counts(self, data, seed)

    def to_dict(self) -> dict[str, Any]:
        """Return every public number, ready for JSON."""
        return {
            **self.mechanism.to_dict(),
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "limits": list(self.limits),
            "sensitivity": self.sensitivity,
            "sigma": self.sigma,
            "error": self.error,
        }

    def __str__(self) -> str:
        """Return the plan as text."""
        from voxpop.mechanisms.counts.describe import describe_counts

        return describe_counts(self.to_dict(), str(self.guarantee))


def plan_counts(counts: Limits, budget: Budget, release: "Release") -> CountsPlan:
    """Fill in the noise; see `Counts.plan`."""
    from voxpop.mechanisms.counts.releasing import sizes_of
    from voxpop.privacy import precise
    from voxpop.privacy.gaussian import sigma

    sizes = sizes_of(release)
    slack = walk_slack(budget.epsilon, max(1, len(sizes)))
    if budget.delta <= 2 * slack:
        raise BudgetError(
            f"counts need a delta above {2 * slack:.2g}, got {budget.delta:g}: their noise is Gaussian. Choose it far "
            "below 1 / (number of users you expect), such as 1e-7; it must not be computed from the data."
        )
    limits = tuple(counts.limits(sizes))
    # The exact Gaussian mechanism (Balle and Wang, 2018), for all lengths together.
    sensitivity = root_above(max(1, sum(limits)))
    noise = sigma(budget.epsilon, nextafter(budget.delta - slack, 0.0), sensitivity)
    # In eighty digits, in which sigma was confirmed.
    mu = precise.number(sensitivity) / precise.number(noise)
    plan = CountsPlan(counts, budget, release, limits, noise)
    return sealed(plan, float(precise.gaussian_delta(budget.epsilon, mu) + slack))


def root_above(number: int) -> float:
    """Return the square root of a whole number, never rounded down."""
    root = sqrt(number)
    # Only of squares is a root exact; of others the next larger double is above it.
    exact = float(isqrt(number)) == root and isqrt(number) ** 2 == number
    return root if exact else nextafter(root, float("inf"))


@final
@dataclass(frozen=True, slots=True, repr=False)
class TopPlan(Planned[Picks, "Corpus", "Ranking"]):
    """The plan of `Top`: every number that will run, before any private data is read.

    Attributes:
        grams: the release whose grams are ranked.
        picks: number of grams that will be named: k, or all.
        rate: of the Gumbel noise on every count, per user.
        delta: delta of the numbers above at the budget's epsilon, at most the budget's delta.
    """

    grams: "Release"
    picks: int
    rate: float
    delta: float = field(kw_only=True)

    @property
    def error(self) -> float:
        """Standard deviation of the noise on the number of users that the order follows."""
        return spread(self.rate)

    def _guaranteed(self) -> Guarantee:
        return Guarantee(self.budget.epsilon, self.budget.delta)

    def behind(self, probability: float = USUAL) -> float:
        """Return the error bound of the order of the ranking, in users.

        With this probability no gram that is named has this number of users fewer than one that comes later or is not
        named.

        Args:
            probability: strictly between 0 and 1.

        Raises:
            InputError: for a probability out of range.
        """
        if not 0.0 < probability < 1.0:
            raise InputError(f"`probability` must lie strictly between 0 and 1, got {probability!r}.")
        return behind(self.picks, len(self.grams), self.rate, probability) if self.picks else 0.0

    def _run(self, data: "Corpus", seed: int | None) -> "Ranking":
        from voxpop.mechanisms.counts.releasing import release_top

        return release_top(self, data, seed)

    def to_dict(self) -> dict[str, Any]:
        """Return every public number, ready for JSON."""
        return {
            **self.mechanism.to_dict(),
            **budget_numbers(self.budget, self.delta),
            "picks": self.picks,
            "among": len(self.grams),
            "rate": self.rate,
            "error": self.error,
            "behind": self.behind(),
        }

    def __str__(self) -> str:
        """Return the plan as text."""
        from voxpop.mechanisms.counts.describe import describe_top

        return describe_top(self.to_dict(), str(self.guarantee))


def plan_top(top: Picks, budget: Budget, release: "Release") -> TopPlan:
    """Fill in the noise; see `Top.plan`."""
    picks, candidates = min(top.k, len(release)), max(1, len(release))
    # Among all released grams, which are public, with or without users.
    rate = largest_rate(budget, max(1, picks), candidates)
    delta = spent(budget, max(1, picks), candidates, rate)
    return sealed(TopPlan(top, budget, release, picks, rate, delta=delta), delta)
