"""Sequences: a model of whole sequences that can be queried and sampled from."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, final

from voxpop.mechanisms.sequences.alphabet import public_alphabet
from voxpop.mechanisms.sequences.constants import FIND
from voxpop.privacy.budget import Budget, check_budget, check_whole
from voxpop.privacy.planned import Mechanism

if TYPE_CHECKING:
    from voxpop.engine.data import Corpus  # noqa: F401
    from voxpop.mechanisms.sequences.model import SequenceModel  # noqa: F401
    from voxpop.mechanisms.sequences.plan import SequencePlan
    from voxpop.release.release import Release

LONGEST = 10_000
LONGEST_GRAM = 16


@final
@dataclass(frozen=True, slots=True)
class Sequences(Mechanism["Corpus", "SequenceModel"]):
    """Release how often each symbol follows the symbols before it, with noise: a model that can be sampled from.

    Each user contributes one sequence, of which the first `max_length` symbols count. If a user has several sequences,
    one of them is drawn at random. The mechanism counts the symbols that follow each context (the symbols before a
    place). Contexts become longer where they are frequent, and all counts are released with noise.

    The release is (epsilon, 0)-differentially private for one user, with all their data, added or removed. Counts are
    integers with integer noise, which is cut at 2^62; the probability of more noise is less than e^(-2^13). The proof
    is in docs/privacy/sequences.md.

    Attributes:
        max_length: The number of symbols of each user that count. The noise is proportional to it. Choose it without
            looking at the data.
        max_gram: The length of the longest gram that is counted: a context and the symbol after it.
        alphabet: All tokens that may occur: distinct strings, or a release of single items. The alphabet is public;
            other tokens are removed from every sequence. If it was released from the same data, both releases spend
            budget; `voxpop.privacy.composition.compose` returns their total. "find" finds the alphabet with a quarter
            of epsilon and all of delta.

    Raises:
        InputError: if a field is out of range.

    Example:
        >>> import polars as pl
        >>> import voxpop as vp
        >>> visits = pl.DataFrame({"who": range(3000), "pages": [["home", "news"], ["home"], ["news", "home"]] * 1000})
        >>> corpus = vp.read(visits, user="who", sequence="pages")
        >>> sequences = vp.Sequences(max_length=4, max_gram=3, alphabet=["home", "news", "sport"])
        >>> model = sequences.release(corpus, vp.Budget(epsilon=2))
        >>> print(model.guarantee)
        (2, 0)-DP, one user added or removed
        >>> model.sample(2).columns
        ['user', 'sequence']
    """

    max_length: int = 20
    max_gram: int = 5
    alphabet: "Iterable[str] | Release | Literal['find'] | None" = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Check every field, and sort the alphabet."""
        check_whole("max_length", self.max_length, LONGEST, "the most symbols of one user that count; 20 is usual")
        check_whole("max_gram", self.max_gram, LONGEST_GRAM, "the length of the longest gram counted; 5 is usual")
        if self.alphabet is not None and self.alphabet != FIND:
            object.__setattr__(self, "alphabet", public_alphabet(self.alphabet))

    def plan(self, budget: Budget) -> "SequencePlan":
        """Compute the noise for a budget, without data.

        Args:
            budget: epsilon, and delta if the alphabet is to be found. Otherwise delta is not used.

        Returns:
            The plan: all numbers that a release uses, and its guarantee.

        Raises:
            InputError: if the alphabet is missing.
            BudgetError: if epsilon is too small for the length, or delta is missing for finding the alphabet.
        """
        from voxpop.mechanisms.sequences.plan import plan_sequences

        check_budget(budget)
        return plan_sequences(self, budget)

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration; of the alphabet only its size."""
        given = self.alphabet is not None and self.alphabet != FIND
        return {
            "mechanism": "sequences",
            "max_length": self.max_length,
            "max_gram": self.max_gram,
            "alphabet_size": len(tuple(self.alphabet or ())) if given else None,
        }
