"""A ranking with its noise filled in."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

from voxpop.errors import InputError
from voxpop.privacy.budget import Budget, budget_numbers
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.peeling import behind, largest_rate, spent, spread
from voxpop.privacy.planned import Planned

if TYPE_CHECKING:
    from voxpop.corpus.engine import Engine
    from voxpop.counts.top import Top
    from voxpop.release.ranking import Ranking
    from voxpop.release.release import Release

USUAL = 0.95


@final
@dataclass(frozen=True, slots=True, repr=False)
class TopPlan(Planned["Top"]):
    """What `Top.plan` returns: every number that will run, before any private data is read.

    Attributes:
        grams: the release whose grams are ranked.
        picks: how many grams will be named: k, or all there are.
        rate: of the Gumbel noise on every count, per user.
        delta: what the numbers above spend at the budget's epsilon, at most the budget's delta.
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
        """Return how far the ranking may be out of order, in users.

        With this probability no gram that is named has so many users fewer than one that comes later or is not named.

        Args:
            probability: strictly between 0 and 1.

        Raises:
            InputError: for a probability out of range.
        """
        if not 0.0 < probability < 1.0:
            raise InputError(f"`probability` must lie strictly between 0 and 1, got {probability!r}.")
        return behind(self.picks, len(self.grams), self.rate, probability) if self.picks else 0.0

    def release(self, corpus: "Engine", seed: int | None = None) -> "Ranking":
        """Run the plan on a corpus; see `Top.release`."""
        from voxpop.counts.releasing import release_top

        return release_top(self, corpus, seed)

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
        """Return the plan as a person reads it."""
        return "\n".join(
            [
                f"The {self.picks:,} grams of {len(self.grams):,} that most users hold, in order, Gumbel noise",
                str(self.guarantee),
                f"standard error of the number of users behind the order: {self.error:.4g}",
                f"with probability {USUAL:g} nothing that is named has {self.behind():,.0f} users fewer than something "
                "after it",
            ]
        )


def plan_top(top: "Top", budget: Budget, release: "Release") -> TopPlan:
    """Fill in the noise; see `Top.plan`."""
    picks, candidates = min(top.k, len(release)), max(1, len(release))
    # Among all released grams, which are public, held by anybody or not.
    rate = largest_rate(budget, max(1, picks), candidates)
    delta = spent(budget, max(1, picks), candidates, rate)
    return TopPlan(top, budget, release, picks, rate, delta=delta).checked(delta)
