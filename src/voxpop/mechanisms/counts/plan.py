"""Plans of counts and rankings, which compute the noise from a budget and a release, without private data."""

from dataclasses import dataclass
from math import nextafter, sqrt
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, final

from voxpop.errors import InternalError
from voxpop.mechanisms.counts.constants import SHARE_OF_LIMIT, USUAL
from voxpop.mechanisms.counts.releasing import release_counts, release_top, to_count
from voxpop.privacy import precise
from voxpop.privacy.budget import Budget, budget_numbers, check_probability, check_slack
from voxpop.privacy.certificate import counts_square, root_above
from voxpop.privacy.gaussian import sigma
from voxpop.privacy.numerics import walk_slack, with_rounding
from voxpop.privacy.passes import Counted, CountsProof, PicksProof
from voxpop.privacy.peeling import behind, gumbel_spread, largest_rate
from voxpop.privacy.planned import Configured, Planned, certified

if TYPE_CHECKING:
    from voxpop.engine.data import Corpus
    from voxpop.mechanisms.counts.releasing import DataAndGrams
    from voxpop.release.counts import Counts, Top
    from voxpop.release.known import KnownItems
    from voxpop.release.release import Release


class CountsConfiguration(Configured, Protocol):
    """The fields of `CountsMechanism` that plans read."""

    @property
    def known_items(self) -> "KnownItems | None":
        """The public list, if there is one."""


@final
@dataclass(frozen=True, slots=True, repr=False)
class CountsPlan(Planned[CountsConfiguration, "Corpus", "Counts"]):
    """The plan of `CountsMechanism`, with every number of the run, computed before any private data is read.

    If the limit is chosen privately, the plan contains the numbers of the largest limit before the release, because
    this limit has the most noise.

    Attributes:
        grams: The release with the grams to count.
        proof: The possible limits with their noise scales, and the noise scale of the private choice.
        ran: The index of the limit that the release used (None before the release).
    """

    _recorded: ClassVar = frozenset({"ran"})

    grams: "Release"
    proof: CountsProof
    ran: int | None = None

    @property
    def _counted(self) -> Counted:
        return self.proof.menu[-1 if self.ran is None else self.ran]

    @property
    def limits(self) -> tuple[int, ...]:
        """The maximum number of grams per user at full weight, for each length."""
        return self._counted.limits

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise on every count, in users."""
        return self._counted.sigma

    @property
    def sensitivity(self) -> float:
        """The l2 sensitivity of all counts together."""
        # At each length, a user adds at most 1 to each of `limit` grams, or sqrt(limit / n) to each of n grams.
        # Therefore the l2 norm over all lengths is at most the square root of the sum of the limits
        # (docs/privacy/counts.md).
        return root_above(max(1, sum(self.limits)))

    @property
    def error(self) -> float:
        """The standard error of a count, including the rounding to whole users."""
        return with_rounding(self.sigma)

    def _proof(self) -> CountsProof:
        return self.proof

    def _prepared(self, data: "Corpus") -> "DataAndGrams":
        """Return the data and the grams to count. Raise an error if the public list does not match the release."""
        return to_count(self, data)

    def _run(self, data: "DataAndGrams", seed: int | None) -> "Counts":
        return release_counts(self, data, seed)

    def to_dict(self) -> dict[str, Any]:
        """Return every public number, ready for JSON."""
        return {
            **self.mechanism.to_dict(),
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "passes": [*self._choice(), *self._counts()],
            "sensitivity": self.sensitivity,
            "error": self.error,
        }

    def _choice(self) -> list[dict[str, Any]]:
        """Return a row for the private choice of the limit, or an empty list without a choice."""
        proof = self.proof
        if not proof.classes_sigma:
            return []
        words = [each.limits[0] if each.limits else 0 for each in proof.menu]
        return [{"pass": "choice", "limits": words, "sigma": proof.classes_sigma, "chosen": self.ran is not None}]

    def _counts(self) -> list[dict[str, Any]]:
        """Return one row for the counts of each length."""
        return [
            {"pass": "count", "length": length, "limit": limit, "sigma": self.sigma}
            for length, limit in enumerate(self.limits, start=1)
        ]


def plan_counts(
    counts: CountsConfiguration,
    menu: tuple[tuple[int, ...], ...],
    budget: Budget,
    release: "Release",
    square: float | None = None,
) -> CountsPlan:
    """Compute the noise for the limits of `CountsMechanism.menu`; see `CountsMechanism.plan`.

    Args:
        counts: The configuration.
        menu: The possible limits.
        budget: The budget of the counts, or of the release that includes them.
        release: The release with the grams to count.
        square: The mu^2 that the counts may spend, or None if they spend the whole budget.
    """
    slack = _slack(budget, len(menu[0]), len(menu) - 1)
    check_slack("counts need", budget, slack)
    # The counts of all lengths together are one exact Gaussian mechanism (Balle and Wang, 2018).
    exact = nextafter(budget.delta - slack, 0.0)
    sensitivities = [root_above(max(1, sum(limits))) for limits in menu]

    def noise(sensitivity: float) -> float:
        """Return the smallest noise scale that covers all counts together."""
        if square is None:
            return sigma(budget.epsilon, exact, sensitivity)
        return sensitivity * (1 + 2.0**-40) / sqrt(square)

    sigmas: tuple[float, ...]
    if len(menu) == 1:
        sigmas, histogram = (noise(sensitivities[0]),), 0.0
    else:
        # Split mu^2 between the histogram and the counts.
        whole = noise(1.0) * (1 + 2.0**-40)
        sigmas = tuple(each * (whole / sqrt(1 - SHARE_OF_LIMIT)) for each in sensitivities)
        histogram = whole / sqrt(SHARE_OF_LIMIT)
    known = None if counts.known_items is None else counts.known_items.listed
    proof = CountsProof(tuple(map(Counted, menu, sigmas)), histogram, known=known)
    # Compare the cost of the most expensive limit with `square`, in the same eighty-digit arithmetic that confirmed
    # sigma.
    if square is not None and counts_square(proof) > precise.number(square):
        raise InternalError("counts would run with less noise than was charged for")
    return certified(CountsPlan(counts, budget, release, proof))


def _slack(budget: Budget, lengths: int, chosen: float) -> float:
    """Return the delta that is reserved for finite arithmetic. The choice of a limit counts as one more pass."""
    return walk_slack(budget.epsilon, max(1, lengths) + bool(chosen))


@final
@dataclass(frozen=True, slots=True, repr=False)
class TopPlan(Planned[Configured, "Corpus", "Top"]):
    """The plan of `TopMechanism`, with every number of the run, computed before any private data is read.

    Attributes:
        grams: The release with the grams to rank.
        proof: The number of grams in the ranking (k, or the number of all grams if it is smaller), the number of all
            grams, and the rate of the Gumbel noise on every count, per user.
    """

    grams: "Release"
    proof: PicksProof

    @property
    def error(self) -> float:
        """The standard deviation of the noise on the numbers of users, which determine the order."""
        return gumbel_spread(self.proof.rate)

    def _proof(self) -> PicksProof:
        return self.proof

    def behind(self, probability: float = USUAL) -> float:
        """Return an error bound for the order of the ranking, in users.

        With the given probability, no gram that is ranked lower or not ranked exceeds a gram in the ranking by this
        number of users or more.

        Args:
            probability: The probability that the bound is correct, strictly between 0 and 1.

        Raises:
            InputError: If the probability is out of range.
        """
        check_probability(probability)
        proof = self.proof
        return behind(proof.picks, proof.candidates, proof.rate, probability) if proof.picks else 0.0

    def _run(self, data: "Corpus", seed: int | None) -> "Top":
        return release_top(self, data, seed)

    def to_dict(self) -> dict[str, Any]:
        """Return every public number, ready for JSON."""
        return {
            **self.mechanism.to_dict(),
            **budget_numbers(self.budget, self.delta_spent),
            "passes": [{"pass": "picks", **self.proof.to_dict()}],
            "error": self.error,
            "behind": self.behind(),
        }


def plan_top(top: Configured, k: int, budget: Budget, release: "Release") -> TopPlan:
    """Compute the noise for a ranking of k grams; see `TopMechanism.plan`."""
    picks, candidates = min(k, len(release)), max(1, len(release))
    # The candidates are all released grams, including grams without users, because released grams are public.
    rate = largest_rate(budget, max(1, picks), candidates)
    return certified(TopPlan(top, budget, release, PicksProof(picks, len(release), rate)))
