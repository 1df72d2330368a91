"""Plans of counts and rankings: the noise for a budget and the grams of a release; no private data."""

from dataclasses import dataclass
from math import hypot, nextafter, sqrt
from typing import TYPE_CHECKING, Any, ClassVar, final

from voxpop.errors import InternalError
from voxpop.mechanisms.counts.constants import SHARE_OF_LIMIT, USUAL
from voxpop.privacy.budget import Budget, budget_numbers, check_probability, check_slack
from voxpop.privacy.certificate import counts_square, root_above
from voxpop.privacy.numerics import walk_slack
from voxpop.privacy.passes import Counted, CountsProof, PicksProof
from voxpop.privacy.peeling import behind, gumbel_spread, largest_rate
from voxpop.privacy.planned import Configured, Planned, certified

if TYPE_CHECKING:
    from voxpop.engine.data import Corpus
    from voxpop.release.counts import Counts, Top
    from voxpop.release.release import Release


@final
@dataclass(frozen=True, slots=True, repr=False)
class CountsPlan(Planned[Configured, "Corpus", "Counts"]):
    """What `Counts.plan` returns: every number that will run, before any private data is read.

    Without a limit the numbers before the release are those of the largest limit, which has the most noise.

    Attributes:
        grams: the release whose grams are counted.
        menu: for each limit that may run, and for each length, the most grams for which a user counts in full.
        sigmas: by limit, standard deviation of the noise on every count, in users.
        histogram_sigma: standard deviation of the noise on the number of users in a class; 0 where nothing is chosen.
        ran: in the plan of counts, which limit ran; None before.
    """

    _recorded: ClassVar = frozenset({"ran"})

    grams: "Release"
    menu: tuple[tuple[int, ...], ...]
    sigmas: tuple[float, ...]
    histogram_sigma: float = 0.0
    ran: int | None = None

    @property
    def limits(self) -> tuple[int, ...]:
        """For each length, the most grams for which a user counts in full."""
        return self.menu[-1 if self.ran is None else self.ran]

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on every count, in users."""
        return self.sigmas[-1 if self.ran is None else self.ran]

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

    def _proof(self) -> CountsProof:
        pairs = zip(self.menu, self.sigmas, strict=True)
        return CountsProof(tuple(Counted(limits, sigma) for limits, sigma in pairs), self.histogram_sigma)

    def _run(self, data: "Corpus", seed: int | None) -> "Counts":
        from voxpop.mechanisms.counts.releasing import release_counts

        return release_counts(self, data, seed)

    def to_dict(self) -> dict[str, Any]:
        """Return every public number, ready for JSON."""
        return {
            **self.mechanism.to_dict(),
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            **self._chosen(),
            "limits": list(self.limits),
            "sensitivity": self.sensitivity,
            "sigma": self.sigma,
            "error": self.error,
        }

    def _chosen(self) -> dict[str, Any]:
        if not self.histogram_sigma:
            return {}
        words = [limits[0] if limits else 0 for limits in self.menu]
        return {"menu": {"limits": words, "sigma": self.histogram_sigma, "chosen": self.ran is not None}}


def plan_counts(
    counts: Configured,
    menu: tuple[tuple[int, ...], ...],
    budget: Budget,
    release: "Release",
    square: float | None = None,
) -> CountsPlan:
    """Fill in the noise for the limits of `Counts.menu`; see `Counts.plan`.

    Args:
        counts: the configuration.
        menu: the limits that may run.
        budget: of the counts, or of the release that they are a part of.
        release: whose grams are counted.
        square: the mu^2 that they may spend; None for all that the budget gives.
    """
    from voxpop.privacy import precise
    from voxpop.privacy.gaussian import sigma

    slack = _slack(budget, len(menu[0]), len(menu) - 1)
    check_slack("counts need", budget, slack)
    # The exact Gaussian mechanism (Balle and Wang, 2018), for all lengths together.
    exact = nextafter(budget.delta - slack, 0.0)
    sensitivities = [root_above(max(1, sum(limits))) for limits in menu]

    def noise(sensitivity: float) -> float:
        """Return the least noise of all together."""
        if square is None:
            return sigma(budget.epsilon, exact, sensitivity)
        return sensitivity * (1 + 2.0**-40) / sqrt(square)

    sigmas: tuple[float, ...]
    if len(menu) == 1:
        sigmas, histogram = (noise(sensitivities[0]),), 0.0
    else:
        # Split between histogram and counts.
        whole = noise(1.0) * (1 + 2.0**-40)
        sigmas = tuple(each * (whole / sqrt(1 - SHARE_OF_LIMIT)) for each in sensitivities)
        histogram = whole / sqrt(SHARE_OF_LIMIT)
    plan = CountsPlan(counts, budget, release, menu, sigmas, histogram)
    # In eighty digits, in which sigma was confirmed; of the limit that costs most.
    if square is not None and counts_square(plan._proof()) > precise.number(square):
        raise InternalError("counts would run with less noise than was charged for")
    return certified(plan)


def _slack(budget: Budget, lengths: int, chosen: float) -> float:
    """Return the cost of finite arithmetic; the choice of a limit counts as one more pass."""
    return walk_slack(budget.epsilon, max(1, lengths) + bool(chosen))


@final
@dataclass(frozen=True, slots=True, repr=False)
class TopPlan(Planned[Configured, "Corpus", "Top"]):
    """The plan of `Top`: every number that will run, before any private data is read.

    Attributes:
        grams: the release whose grams are ranked.
        picks: number of grams that will be named: k, or all.
        rate: of the Gumbel noise on every count, per user.
    """

    grams: "Release"
    picks: int
    rate: float

    @property
    def error(self) -> float:
        """Standard deviation of the noise on the number of users that the order follows."""
        return gumbel_spread(self.rate)

    def _proof(self) -> PicksProof:
        return PicksProof(self.picks, len(self.grams), self.rate)

    def behind(self, probability: float = USUAL) -> float:
        """Return the error bound of the order of the ranking, in users.

        With this probability no gram that is named has this number of users fewer than one that comes later or is not
        named.

        Args:
            probability: strictly between 0 and 1.

        Raises:
            InputError: for a probability out of range.
        """
        check_probability(probability)
        return behind(self.picks, len(self.grams), self.rate, probability) if self.picks else 0.0

    def _run(self, data: "Corpus", seed: int | None) -> "Top":
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


def plan_top(top: Configured, k: int, budget: Budget, release: "Release") -> TopPlan:
    """Fill in the noise for a number of places; see `Top.plan`."""
    picks, candidates = min(k, len(release)), max(1, len(release))
    # Among all released grams, which are public, with or without users.
    rate = largest_rate(budget, max(1, picks), candidates)
    return certified(TopPlan(top, budget, release, picks, rate))
