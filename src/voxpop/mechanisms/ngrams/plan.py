"""The plan of n-grams, with the noise, the thresholds and the guarantee for a budget, computed without data."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import nextafter
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, final

from voxpop.engine.contract import check_engine
from voxpop.mechanisms.ngrams import constants as tuned
from voxpop.mechanisms.ngrams.charges import (
    Charges,
    LengthPlan,
    LengthRun,
    Rates,
    SecondChanceRun,
    Voting,
    allowance,
    words_shares,
)
from voxpop.mechanisms.ngrams.releasing import release_ngrams
from voxpop.mechanisms.rounds.adaptive import AdaptiveRounds, Terms
from voxpop.mechanisms.rounds.listed import known_users_needed, listed_numbers
from voxpop.mechanisms.rounds.menu import (
    Menu,
    adaptive_proof,
    deciding,
    planned_rounds,
    planned_slack,
    rows_of,
    users_needed_by,
)
from voxpop.mechanisms.rounds.plan import LISTED_NOVELTY, NOVELTY, RoundPlan
from voxpop.mechanisms.rounds.users_needed import users_needed
from voxpop.privacy.budget import Budget, budget_numbers, check_slack
from voxpop.privacy.certificate import slack_delta
from voxpop.privacy.gate.walks import later_after
from voxpop.privacy.numerics import walk_slack
from voxpop.privacy.passes import AdaptiveProof, Later, Proof, ThresholdProof
from voxpop.privacy.planned import DiscoveryPlan, certified

if TYPE_CHECKING:
    from voxpop.engine.data import Corpus
    from voxpop.mechanisms.ngrams.releasing import Pass, State
    from voxpop.release.known import KnownItems
    from voxpop.release.release import Release

CROWDED = 10**6
"""The number of candidates per gram of the preceding length that a plan assumes for the highest threshold."""
USUAL_CANDIDATES = 10
"""The number of candidates per gram of the preceding length that a plan assumes for the numbers of users needed."""
_PHRASE_PROBABILITIES = (0.5, 0.9)
SIDE_VOTES = 5
"""The maximum number of passes in addition to one pass for each length. They are four screening votes and the
second-chance pass.
"""


class Extraction(Protocol):
    """A configuration that has an `NGramsPlan`, such as `NGrams` or `papers.DPNE`."""

    @property
    def max_length(self) -> int:
        """The maximum number of tokens in a gram."""

    @property
    def max_phrases_per_user(self) -> Any:
        """The maximum number of grams per user at one length.

        At length 1, it is None if the limit is chosen privately. At longer lengths, it is public.
        """

    @property
    def max_spurious_share(self) -> float:
        """The expected share of spurious grams."""

    def voting(self, length: int) -> Voting:
        """Return the parameters of the vote on one length."""

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""


@final
@dataclass(frozen=True, slots=True, repr=False)
class NGramsPlan(DiscoveryPlan[Extraction, "Corpus", "Release"]):
    """The numbers of a release of n-grams, which are known before any data is read.

    The noise of length 1 and the total mu^2 of all later passes are fixed. The division of this total among the passes
    depends on the released grams, but the guarantee does not depend on it.

    Attributes:
        first: The noise and threshold of length 1, its adaptive rounds, or a menu for the private choice of these
            rounds.
        least_later: The total mu^2 of all passes after length 1 if words get the largest share that can be chosen.
        longer: One `LengthPlan` for each length from 2 on.
        slack: The part of delta that is reserved for finite arithmetic.
        schedule: The pure function that returns the next pass of a release (None after the last pass).
        worths: The worth of each length's budget, or an empty tuple if the schedule does not use worths.
        second_sigma: The planned noise scale of the second-chance pass, or None without this pass.
        words: The adaptive rounds that released the words (None before a release and without adaptive rounds).
        ran: The numbers that each length used, or an empty tuple before a release.
        second_chance: The numbers of the second-chance pass, or None if it did not run.

    Example:
        >>> import voxpop as vp
        >>> plan = vp.NGrams(max_length=2).plan(vp.Budget(4, 1e-7))
        >>> plan.users_needed(0.9, length=2) < plan.users_needed(0.9, length=1)
        True
    """

    _recorded: ClassVar = frozenset({"words", "ran", "second_chance"})
    counts_items: ClassVar = True

    first: RoundPlan | AdaptiveRounds | Menu
    least_later: float
    longer: tuple[LengthPlan, ...]
    slack: float
    schedule: "Callable[[State], Pass | None]" = field(compare=False)
    worths: tuple[float, ...] = ()
    second_sigma: float | None = None
    words: AdaptiveRounds | None = None
    ran: tuple[LengthRun, ...] = ()
    second_chance: SecondChanceRun | None = None

    def _proof(self) -> Proof:
        # The proof covers length 1 and the total mu^2 = M of all later passes.
        if isinstance(self.first, RoundPlan):
            return ThresholdProof(self.first.stated(), Later(self.least_later, "everybody", self.mechanism.max_length))
        later = Later(self.least_later, "each user", self.mechanism.max_length + SIDE_VOTES)
        known = self.known_items
        listed = None if known is None else known.listed
        return adaptive_proof(self.first, self.mechanism.max_phrases_per_user, later, listed=listed)

    @property
    def known_items(self) -> "KnownItems | None":
        """The public list of words, if there is one."""
        return getattr(self.mechanism, "known_items", None)  # published algorithms have no list

    def known_users_needed(self, probability: float, *, per_user: int | None = None) -> int | None:
        """Return the number of users that a listed word needs to be released with this probability.

        The result assumes that a tenth of the list is released. If a larger part is released, a word needs fewer users.

        Args:
            probability: A number strictly between 0 and 1.
            per_user: The number of words per user, as in `users_needed`.

        Raises:
            InputError: A number is out of range, or there is no list.
        """
        step, limit = self.words or self.first, self.mechanism.max_phrases_per_user
        return known_users_needed(step, self.known_items, limit, probability, per_user)

    def _prepared(self, data: "Corpus") -> "Corpus":
        if self.known_items is not None:
            self.known_items.check(check_engine(data).keys)
        return data

    @property
    def later(self) -> float:
        """The total mu^2 of all passes after length 1. Before a release, words have the smallest possible share."""
        if isinstance(self.first, RoundPlan):
            return self.least_later
        return self.later_after(self.words or deciding(self.first))

    def later_after(self, words: AdaptiveRounds | RoundPlan | None) -> float:
        """Return the total mu^2 of all passes after length 1 if these rounds release the words."""
        proof = self._proof()
        if not isinstance(words, AdaptiveRounds) or not isinstance(proof, AdaptiveProof) or proof.choice is None:
            return self.least_later
        return later_after(replace(proof, rounds=words.stated())).square

    @property
    def lengths(self) -> tuple[LengthPlan, ...]:
        """The numbers of each length.

        At length 1, these are the numbers that the release used. Before the limit is chosen, the numbers of the largest
        limit are returned.
        """
        first = deciding(self.words or self.first)
        return LengthPlan(1, first.scale, None, first.threshold, first.threshold), *self.longer

    @property
    def sigma(self) -> tuple[float, ...]:
        """The noise scale of each length."""
        return tuple(each.sigma for each in self.lengths)

    @property
    def longest(self) -> int:
        """The maximum number of tokens in a phrase."""
        return self.mechanism.max_length

    @property
    def _most_per_user(self) -> int | None:
        most = self.mechanism.max_phrases_per_user
        return most if isinstance(most, int) else None

    def _users_needed(self, probability: float, length: int, per_user: int) -> int | None:
        if length > 1:
            sigma, voting = self.lengths[length - 1].sigma, self.mechanism.voting(length)
            vote = voting.finest(sigma, voting.threshold(sigma, 1, USUAL_CANDIDATES))
            return users_needed(vote, self.budget, probability, per_user)
        return users_needed_by(self.words or self.first, self.budget, probability, per_user)

    def _run(self, data: "Corpus", seed: int | None) -> "Release":
        return release_ngrams(self, data, seed)

    def to_dict(self) -> dict[str, Any]:
        """Return every public number, ready for JSON.

        The list `passes` has a row for each planned pass, in order, with its type under `pass`:

        - `choice`, `threshold` and `round` are the passes of length 1, as in plans of items. After these rows, the row
          `words` contains the numbers of length 1 as a whole.
        - `measurement` measures the grams of one length to forecast the next length. `screening` is the screening vote
          on a length, and `vote` is the main vote on this length.
        - `second chance` is the second-chance pass.

        Each row from `words` on contains the planned numbers. The entry `ran` of such a row contains the numbers that
        the pass used, or None if the pass has not run.
        """
        return {
            **self.mechanism.to_dict(),
            **budget_numbers(self.budget, self.delta_spent),
            "mu_squared_later": self.later,
            **self._words_numbers(),
            "passes": self._rows(),
            **listed_numbers(self.words or self.first, self.known_items, self._most_per_user, self.transcript),
        }

    def _words_numbers(self) -> dict[str, Any]:
        if isinstance(self.first, RoundPlan):
            return {}
        last = self.words or self.first
        limit, share = (None, None) if isinstance(last, Menu) else (last.limit, last.share)
        shares = self.first.shares if isinstance(self.first, Menu) else (self.first.share,)
        return {"max_words_per_user": limit, "share_of_words": share, "shares_of_words": list(shares)}

    def _rows(self) -> list[dict[str, Any]]:
        chosen = (self.words,) if self.words and isinstance(self.first, Menu) else ()
        rows, runs = rows_of(self.first, *chosen), {run.length: run for run in self.ran}
        for each in self.lengths:
            rows += each.rows(runs.get(each.length), self._users(each.length))
        if self.second_sigma is not None:
            ran = self.second_chance and self.second_chance.to_dict()
            rows.append({"pass": "second chance", "sigma": self.second_sigma, "ran": ran})
        return rows

    def _users(self, length: int) -> dict[str, int | None]:
        return {f"users_{round(100 * p)}": self.users_needed(p, length=length) for p in _PHRASE_PROBABILITIES}


def without_slack(budget: Budget, slack: float) -> Budget:
    """Return the budget minus the delta reserved for finite arithmetic, rounded down.

    Raises:
        BudgetError: Too little delta is left.
    """
    check_slack("n-grams need", budget, slack)
    return Budget(budget.epsilon, nextafter(budget.delta - slack, 0.0))


def rest_after(square: float, share: float) -> float:
    """Return the mu^2 left for later lengths, rounded down, if length 1 has this mu^2 and this share of the total."""
    return nextafter(square * (1 - 2.0**-40) * (1 / share - 1), 0.0)


def plan_ngrams(
    ngrams: Extraction, budget: Budget, worths: tuple[float, ...], schedule: "Callable[[State], Pass | None]"
) -> NGramsPlan:
    """Compute the numbers of a release of n-grams; see `NGrams.plan`."""
    more = ngrams.max_length > 1
    slack = walk_slack(budget.epsilon, ngrams.max_length + SIDE_VOTES)
    known = getattr(ngrams, "known_items", None)
    listed = None if known is None else known.listed
    slack += slack_delta(planned_slack(ngrams.max_phrases_per_user, listed), budget.epsilon)
    exact, novelty = without_slack(budget, slack), NOVELTY if listed is None else LISTED_NOVELTY
    without = ngrams.max_spurious_share * (tuned.SPURIOUS_WORDS if more else 1.0)
    terms = Terms(exact.epsilon, exact.delta, novelty=novelty, listed=listed, share_without_users=without)
    if more:
        share, *falling = words_shares(worths, tuned.WORDS_OF_FEW if listed is None else tuned.KNOWN_WORDS_OF_FEW)
        chosen = ngrams.max_phrases_per_user is None
        terms = replace(terms, share=share[1] if chosen else falling[-1][1], novelty=tuned.WORDS_NOVELTY)
        terms = replace(terms, falling=tuple(falling)) if chosen else terms
    first = planned_rounds(terms, ngrams.max_phrases_per_user)
    # The mu^2 of later lengths also pays for the histogram of a menu.
    histogram = first.sigma**-2 if isinstance(first, Menu) else 0.0
    later = nextafter(rest_after(first.square, terms.share) - histogram, 0.0) if more else 0.0
    # The release consists of rounds followed by Gaussian releases of mu^2 = M (docs/privacy/adaptive.md, "What
    # follows").
    _longer(
        ngrams, Charges(later, worths)
    )  # raises a BudgetError if the passes over phrases cannot run when words get the largest share
    plan = NGramsPlan(ngrams, budget, first, later, (), slack, schedule, worths)
    longer, second = _longer(ngrams, Charges(plan.later, worths))
    return certified(replace(plan, longer=longer, second_sigma=second))


def _longer(ngrams: Extraction, charges: Charges) -> tuple[tuple[LengthPlan, ...], float | None]:
    """Return the numbers of lengths from 2 on and the sigma of the second-chance pass, before any data is read.

    Every length gets its usual share, and each pass must be able to run on some grid.
    """

    def sigma_of(voting: Voting, square: float, rates: Rates | None) -> float:
        return voting.grid_and_charge(charges, square, rates, 1, CROWDED)[1].sigma

    lengths = []
    for length in range(2, ngrams.max_length + 1):
        voting = ngrams.voting(length)
        measurement, charges = charges.measurement(length)
        square, rates, charges = charges.vote(length)
        setting, charge = voting.grid_and_charge(charges, square, rates, 1, CROWDED)
        low, high = (voting.threshold(charge.sigma, 1, many) for many in (1, CROWDED))
        voting.charged(setting, charge.sigma, high, charge.square)
        screened = charges.screening(length)
        screening = None if screened is None else sigma_of(voting, screened, None)
        rule = allowance(ngrams.max_spurious_share, length)
        lengths.append(LengthPlan(length, charge.sigma, measurement.sigma, low, high, rule, screening))
    return tuple(lengths), sigma_of(ngrams.voting(2).second_chance, *charges.second_chance()) if lengths else None
