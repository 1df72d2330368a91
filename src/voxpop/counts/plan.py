"""Counts with their noise filled in."""

from dataclasses import dataclass
from math import hypot, isqrt, nextafter, sqrt
from typing import TYPE_CHECKING, Any, final

from voxpop.errors import BudgetError
from voxpop.privacy.budget import Budget
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.planned import Planned
from voxpop.privacy.slack import walk_slack
from voxpop.privacy.spend import gaussian_spend

if TYPE_CHECKING:
    from voxpop.corpus.engine import Engine
    from voxpop.counts.counts import Counts
    from voxpop.release.release import Release
    from voxpop.release.tally import Tally


@final
@dataclass(frozen=True, slots=True, repr=False)
class CountsPlan(Planned["Counts"]):
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
        """How far one user moves all counts together, in l2."""
        # A user adds at most 1 to each of `limit` grams a length, or sqrt(limit / n) to each of n: in l2 the root of
        # the sum of limits (docs/privacy/counts.md).
        return root_above(sum(self.limits))

    @property
    def error(self) -> float:
        """Standard deviation of a count, rounding to whole users included."""
        # Rounding to whole users is about uniform on a length of 1: variance 1 / 12.
        return hypot(self.sigma, sqrt(1 / 12))

    def _guaranteed(self) -> Guarantee:
        slack = walk_slack(self.budget.epsilon, max(1, len(self.limits)))
        spend = gaussian_spend([(0.0, self.sensitivity / self.sigma)], slack)
        return Guarantee(self.budget.epsilon, self.budget.delta, spend=spend)

    def release(self, corpus: "Engine", seed: int | None = None) -> "Tally":
        """Run the plan on a corpus; see `Counts.release`."""
        from voxpop.counts.releasing import release_counts

        return release_counts(self, corpus, seed)

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
        """Return the plan as a person reads it."""
        limits = ", ".join(f"{limit:,}" for limit in self.limits) or "none"
        return "\n".join(
            [
                "Counts of the users who hold each released gram, Gaussian noise",
                str(self.guarantee),
                f"grams of each length for which a user counts in full: {limits}",
                f"standard error of a count: {self.error:.4g} users",
            ]
        )


def plan_counts(counts: "Counts", budget: Budget, release: "Release") -> CountsPlan:
    """Fill in the noise; see `Counts.plan`."""
    from voxpop.counts.listed import sizes_of
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
    return plan.checked(float(precise.gaussian_delta(budget.epsilon, mu) + slack))


def root_above(number: int) -> float:
    """Return the square root of a whole number, never rounded down."""
    root = sqrt(number)
    # Only of squares is a root exact; of others the next larger double is above it.
    exact = float(isqrt(number)) == root and isqrt(number) ** 2 == number
    return root if exact else nextafter(root, float("inf"))
