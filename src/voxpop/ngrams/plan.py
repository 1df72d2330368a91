"""The plan of an n-gram extraction: what every length gets, and what all lengths guarantee together."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

from voxpop.errors import InputError
from voxpop.ngrams.lengths import LengthPlan, LengthRun, SweepRun
from voxpop.ngrams.slack import ngrams_slack
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.planned import Planned
from voxpop.privacy.spend import gaussian_spend
from voxpop.rounds.adaptive.numbers import AdaptiveRounds, round_rows
from voxpop.rounds.adaptive.planning import rounds_spend
from voxpop.rounds.plan import RoundPlan

if TYPE_CHECKING:
    from voxpop.corpus.engine import Engine
    from voxpop.ngrams.ngrams import NGrams
    from voxpop.release import Release

USUAL = 10
"""The same, at which users needed are shown."""
PROBABILITIES = (0.5, 0.9)
GRAMS_OF_EACH = 10


@final
@dataclass(frozen=True, slots=True, repr=False)
class NGramsPlan(Planned["NGrams"]):
    """What `NGrams.plan` returns: every number that is known before any data are read.

    The noise of length 1, and the total that all later lengths and measurements may spend, are fixed. With
    `budgets="auto"` later lengths share that total by what was released; the guarantee does not depend on how.

    Attributes:
        first: noise and threshold of length 1, or its adaptive rounds.
        later: total mu^2 of everything after length 1.
        lengths: one `LengthPlan` for each length.
        delta: what the numbers above spend at the budget's epsilon, at most the budget's delta.
        ran: in the plan of a release, what each length really ran with.
        swept: the same of the last vote on what came close, where there was one.

    Example:
        >>> import voxpop as vp
        >>> plan = vp.NGrams(limit=100, budgets="equal", accounting="published").plan(vp.Budget(4, 1e-7))
        >>> round(plan.first.scale, 3), round(plan.first.threshold, 3)
        (3.984, 24.439)
    """

    first: RoundPlan | AdaptiveRounds
    later: float
    lengths: tuple[LengthPlan, ...]
    delta: float = field(kw_only=True)
    ran: tuple[LengthRun, ...] = ()
    swept: SweepRun | None = None

    def _guaranteed(self) -> Guarantee:
        slack = ngrams_slack(self.mechanism, self.budget.epsilon)
        # (d, mu_1) of length 1, and M of all that follows: it composes with other releases by these.
        if isinstance(self.first, AdaptiveRounds):
            spend = rounds_spend(self.first, slack, self.later)
        else:
            spend = gaussian_spend([self.first.pair()], slack, rest=self.later)
        return Guarantee(self.budget.epsilon, self.budget.delta, spend=spend)

    @property
    def sigma(self) -> tuple[float, ...]:
        """Standard deviation of the noise at each length."""
        return tuple(each.sigma for each in self.lengths)

    def round_of(self, length: int, sigma: float, threshold: float) -> RoundPlan:
        """Return the weighting, noise and threshold of a length after the first, on the finest grid that they fit.

        To show what numbers mean; a release runs on the grid that it was charged for.
        """
        from voxpop.ngrams.later import finest_round

        return finest_round(self.mechanism, length, sigma, threshold)

    def holders(
        self, length: int, probability: float, grams: int = GRAMS_OF_EACH, candidates_each: int = USUAL
    ) -> int | None:
        """Return how many users must hold a phrase for the release to name it with this probability.

        Its parts are taken to be released. Where users hold more than `limit` phrases, their choice is averaged over.

        Args:
            length: tokens in the phrase.
            probability: strictly between 0 and 1.
            grams: phrases of that length that each of the users holds, all as rare as this one.
            candidates_each: candidates for each gram released at the length before; not used for length 1.

        Returns:
            The number of users, or None where no number is enough.

        Raises:
            InputError: for arguments out of range.
        """
        from voxpop.ngrams.later import threshold_for
        from voxpop.rounds.adaptive.holders import users_needed as users_needed_in_rounds
        from voxpop.rounds.holders import users_needed

        if not 1 <= length <= self.mechanism.max_length:
            raise InputError(f"`length` must be from 1 to {self.mechanism.max_length}, got {length!r}.")
        if not 0.0 < probability < 1.0:
            raise InputError(f"`probability` must lie strictly between 0 and 1, got {probability!r}.")
        if grams < 1 or candidates_each < 1:
            raise InputError("`grams` and `candidates_each` must be whole numbers of at least 1.")
        if length > 1:
            sigma = self.lengths[length - 1].sigma
            round_plan = self.round_of(length, sigma, threshold_for(self.mechanism.eta, sigma, 1, candidates_each))
            return users_needed(round_plan, self.budget, probability, grams)
        if isinstance(self.first, AdaptiveRounds):
            return users_needed_in_rounds(self.first, probability, grams)
        return users_needed(self.first, self.budget, probability, grams)

    def release(self, corpus: "Engine", seed: int | None = None) -> "Release":
        """Run the plan on a corpus; see `NGrams.release`."""
        from voxpop.ngrams.releasing import release_ngrams

        return release_ngrams(self, corpus, seed)

    def after(self, ran: tuple[LengthRun, ...], swept: SweepRun | None = None) -> "NGramsPlan":
        """Return the plan with what each length and the last vote really ran with."""
        return self.noting(ran=ran, swept=swept)

    def to_dict(self) -> dict[str, Any]:
        """Return every public number, ready for JSON."""
        return {
            **self.mechanism.to_dict(),
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "delta_spent": self.delta,
            "mu_squared_later": self.later,
            "round_plans": round_rows(self.first) if isinstance(self.first, AdaptiveRounds) else [],
            "lengths": [self._length_row(each) for each in self.lengths],
            "ran": [each.to_dict() for each in self.ran],
            "swept": None if self.swept is None else self.swept.to_dict(),
        }

    def _length_row(self, each: LengthPlan) -> dict[str, Any]:
        needed = {f"users_{round(100 * p)}": self.holders(each.length, p) for p in PROBABILITIES}
        return {
            "length": each.length,
            "sigma": each.sigma,
            "measurement_sigma": each.measurement_sigma,
            "lowest_threshold": each.lowest_threshold,
            "highest_threshold": each.highest_threshold,
            "spurious": None if each.spurious is None else each.spurious._asdict(),
            **needed,
        }

    def __str__(self) -> str:
        """Return the plan as a person reads it."""
        from voxpop.ngrams.describe import describe

        return describe(self.to_dict(), str(self.guarantee))
