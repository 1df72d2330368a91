"""What both plans of a set union, of rounds and of adaptive rounds, say of themselves in numbers."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from voxpop.privacy.budget import budget_numbers
from voxpop.privacy.planned import Planned
from voxpop.rounds.holders import users_needed_rows
from voxpop.union.promised import promised_numbers

if TYPE_CHECKING:
    from voxpop.union.set_union import SetUnion


class PlanNumbers(Planned["SetUnion"], ABC):
    """A plan of a set union, as numbers and in the words of `describe`."""

    __slots__ = ()
    delta: float

    @property
    @abstractmethod
    def sigma(self) -> float:
        """Standard deviation of the noise on an item's weight, in the last round; 0 where no noise is added."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """Scale of the noise in the last round: sigma of Gaussian noise, b of Laplace noise."""

    @property
    @abstractmethod
    def threshold(self) -> float:
        """Threshold of the last round, in units of weight."""

    @property
    @abstractmethod
    def cutoff(self) -> float | None:
        """Weight at which items stop rising in the last round; None for weightings without a cutoff."""

    @abstractmethod
    def holders(self, probability: float, items: int = 1) -> int | None:
        """Return how many users must hold an item for the release to name it with this probability."""

    @abstractmethod
    def missing(self) -> float:
        """Return the chance that an item is missing which ten times as many users hold as it needs.

        The worst of users with 1, 10 and 100 items, all as common as this one.
        """

    @abstractmethod
    def released_with_few(self) -> float:
        """Bound how likely an item of fewer than `at_least` users is released; 1 where nothing is promised."""

    @abstractmethod
    def _round_rows(self) -> list[dict[str, Any]]:
        """Return the numbers of each round."""

    def _sizes(self) -> dict[str, Any]:
        """Return what the plan has chosen beside noise: nothing, where the configuration says it all."""
        return {}

    def _names(self) -> tuple[str, ...]:
        """Return the names of the data sets that share the budget, where there are several."""
        return ()

    def to_dict(self) -> dict[str, Any]:
        """Return every public number, ready for JSON."""
        return {
            **self.mechanism.to_dict(),
            **budget_numbers(self.budget, self.delta),
            **self._sizes(),
            "sigma": self.sigma,
            "scale": self.scale,
            "threshold": self.threshold,
            "cutoff": self.cutoff,
            "round_plans": self._round_rows(),
            "users_needed": users_needed_rows(self.holders),
            "missing": self.missing(),
            **promised_numbers(self.mechanism, self.budget, self.released_with_few(), self._names()),
        }
