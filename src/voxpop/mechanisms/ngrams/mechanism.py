"""The mechanism of n-grams, which finds the phrases of every length that many users share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast, final

from voxpop.errors import InputError
from voxpop.mechanisms.ngrams import constants as tuned
from voxpop.privacy.budget import Budget, check_budget, check_whole, check_within, is_real
from voxpop.privacy.planned import Mechanism

if TYPE_CHECKING:
    from voxpop.engine.data import Corpus  # noqa: F401
    from voxpop.mechanisms.ngrams.charges import Voting
    from voxpop.mechanisms.ngrams.plan import NGramsPlan
    from voxpop.release.known import Known, KnownItems
    from voxpop.release.release import Release  # noqa: F401

_LONGEST = 32
_LARGEST_LIMIT = 10**7
MOST_VALUE = 1e6


@final
@dataclass(frozen=True, slots=True)
class NGrams(Mechanism["Corpus", "Release"]):
    """Release the phrases of length 1 to `max_length` that many users share.

    Words are released in adaptive rounds, as in `Items`. Then, for each greater length, every user selects at most
    `max_phrases_per_user` candidates (phrases whose parts are released) and distributes one unit of weight among them.
    Gaussian noise is added to the weight of every candidate, including candidates without users, and candidates above a
    threshold are released. Users pay only for passes in which they have a candidate, and a second-chance pass spends
    the remaining budget. The release is (epsilon, delta)-differentially private for one user with all their data. Every
    part of a released phrase is also released. The proofs are in docs/privacy/ngrams.md and docs/privacy/individual.md.
    The algorithm extends `voxpop.papers.DPNE`.

    Attributes:
        max_length: The maximum number of tokens of a phrase, at most 32.
        max_phrases_per_user: The maximum number of phrases per user at each length. If a user has more phrases, this
            number of them is sampled at random. By default, the limit of words is chosen privately, and the limit of
            longer phrases is 100,000, because their noise does not depend on the limit. A limit that you give must not
            depend on the data.
        max_spurious_share: The maximum expected share of released phrases that no user wrote, strictly between 0 and
            1/2.
        length_weights: The values of released phrases, one number for each length. Lengths with a higher value receive
            more of the budget. By default, all lengths have equal values. Choose the numbers without looking at the
            data.
        known: A public list of words, in any form that `Items(known=...)` accepts. These words need fewer users, so
            phrases get more of the budget. A listed word can be released even if no user has it. `max_spurious_share`
            includes such words.

    Raises:
        InputError: A field is out of range.

    Example:
        >>> import polars as pl
        >>> import voxpop as vp
        >>> table = pl.DataFrame({"who": range(2000), "what": ["thank you very much", "see you soon"] * 1000})
        >>> corpus = vp.read(table, user="who", text="what")
        >>> phrases = vp.NGrams(max_length=3, max_phrases_per_user=10).release(corpus, vp.Budget(epsilon=4, delta=1e-8))
        >>> phrases.guarantee == vp.Guarantee(4, 1e-8), [run.length for run in phrases.plan.ran]
        (True, [1, 2, 3])
    """

    max_length: int = 9
    max_phrases_per_user: int | None = None
    max_spurious_share: float = 0.01
    length_weights: Sequence[float] | None = None
    known: "Known | None" = None

    def __post_init__(self) -> None:
        """Check every field, and convert lists to tuples."""
        check_lengths(self.max_length)
        if self.max_phrases_per_user is not None:
            check_limit(self.max_phrases_per_user)
        check_spurious_share(self.max_spurious_share)
        object.__setattr__(self, "length_weights", _checked_weights(self.length_weights, self.max_length))
        if self.known is not None:
            from voxpop.release.known import KnownItems

            object.__setattr__(self, "known", KnownItems.of(self.known))

    @property
    def known_items(self) -> "KnownItems | None":
        """The public list of words, or None if there is no list."""
        return cast("KnownItems | None", self.known)

    @property
    def bound(self) -> int:
        """The maximum number of phrases per user at each length.

        If no limit is given, this maximum applies only from length 2 on.
        """
        return tuned.PHRASES_PER_USER if self.max_phrases_per_user is None else self.max_phrases_per_user

    def voting(self, length: int) -> "Voting":
        """Return the parameters of the vote on one length, which are the same for all lengths."""
        from voxpop.mechanisms.ngrams.charges import Voting
        from voxpop.privacy.individual import MOST_BOUND
        from voxpop.privacy.weightings.builtin import PolicyGaussian

        return Voting(PolicyGaussian(), self.bound, self.max_spurious_share, tuned.VOTE_ALPHA, MOST_BOUND)

    def plan(self, budget: Budget) -> "NGramsPlan":
        """Compute the noise and the thresholds for a budget, without data.

        Args:
            budget: The privacy budget.

        Returns:
            The plan, which contains the guarantee and, for each length, the noise scale, the range of thresholds and
            the number of users needed.

        Raises:
            BudgetError: No threshold can satisfy the budget.
        """
        from voxpop.mechanisms.ngrams.charges import worths_of
        from voxpop.mechanisms.ngrams.plan import plan_ngrams
        from voxpop.mechanisms.ngrams.schedule import schedule

        check_budget(budget)
        return plan_ngrams(self, budget, worths_of(self.length_weights or (1.0,) * self.max_length), schedule)

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""
        known = {} if self.known_items is None else {"known": self.known_items.to_dict()}
        return {
            "mechanism": "n-grams",
            "max_length": self.max_length,
            "max_phrases_per_user": self.bound,
            "max_spurious_share": self.max_spurious_share,
            "length_weights": None if self.length_weights is None else list(self.length_weights),
            **{"weighting": "policy-gaussian", "noise": "gaussian", "alpha": tuned.VOTE_ALPHA},
            **known,
        }


def check_lengths(max_length: object) -> None:
    """Raise an error if the maximum length is out of range."""
    check_whole("max_length", max_length, _LONGEST, "the maximum number of tokens in a phrase; 5 to 9 are usual")


def check_limit(limit: object) -> None:
    """Raise an error if the contribution bound is out of range."""
    check_whole(
        "max_phrases_per_user",
        limit,
        _LARGEST_LIMIT,
        "the maximum number of grams per user and length; omit it if unsure",
    )


def check_spurious_share(share: object) -> None:
    """Raise an error if the share of spurious phrases is out of range."""
    check_within(
        "max_spurious_share", share, 1e-9, 0.5, "the share of released phrases that may be spurious; 0.01 is usual"
    )


def _checked_weights(values: object, lengths: int) -> tuple[float, ...] | None:
    if values is None:
        return None
    numbers = list(values) if isinstance(values, Sequence) and not isinstance(values, str) else []
    if len(numbers) != lengths or not all(is_real(value) and 0 <= value <= MOST_VALUE for value in numbers):
        raise InputError(
            f"`length_weights` must be {lengths} numbers from 0 to {MOST_VALUE:g}, one value for each length; "
            f"got {values!r}."
        )
    if not numbers[-1] > 0:
        raise InputError(
            "the last of `length_weights` must be above 0; lower `max_length` to the last length that counts."
        )
    return tuple(map(float, numbers))
