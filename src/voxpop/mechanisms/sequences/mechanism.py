"""The mechanism `Sequences`, which releases a model of whole sequences for queries and samples."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, final

from voxpop.errors import InputError
from voxpop.mechanisms.sequences.constants import FIND, LONGEST_FOUND, USUAL_LENGTH
from voxpop.privacy.budget import Budget, check_budget, check_whole
from voxpop.privacy.planned import Mechanism

if TYPE_CHECKING:
    from voxpop.engine.data import Corpus  # noqa: F401
    from voxpop.mechanisms.sequences.model import SequenceModel  # noqa: F401
    from voxpop.mechanisms.sequences.plan import SequencePlan
    from voxpop.release.release import Release

LONGEST_SEQUENCE = 10_000
LONGEST_GRAM = 16
_MOST_SYMBOLS = 10**7


@final
@dataclass(frozen=True, slots=True)
class Sequences(Mechanism["Corpus", "SequenceModel"]):
    """Release a model of sequences from noisy counts of symbols that follow other symbols. The model can draw samples.

    Each user contributes the first symbols of one sequence. If a user has several sequences, one of them is drawn at
    random. The mechanism counts sequences by length, the distinct symbols in them, and the symbols that follow each
    context (the preceding symbols). Frequent contexts are extended, and all counts are released with noise.

    Nothing else needs to be chosen. The released lengths determine the maximum length of drawn sequences, and the
    number of steps that are counted from the start of each sequence (the noise is proportional to this number). The
    noise of these counts determines whether contexts are counted at all.

    The release is (epsilon, 0)-differentially private if one user, with all their data, is added or removed. Counts are
    integers with integer noise. The noise is cut at 2^62, and the probability of more noise is less than e^(-2^13). The
    proof is in docs/privacy/sequences.md.

    Attributes:
        max_length: The maximum number of symbols that count per user, which is also the maximum length of drawn
            sequences. By default, the released lengths determine the maximum, which costs no additional epsilon. This
            maximum is usually 20 symbols. The maximum is lower if noise explains the longer sequences, and higher (at
            most 1,000) if a fifth of the users have longer sequences. Choose a number without looking at the data.
        max_gram: The length of the longest counted gram, which consists of a context and the symbol after it.
        alphabet: The tokens of the model, as distinct strings or a release of single items. The alphabet is public.
            Other tokens are removed from every sequence, unless `other` is given. If the alphabet was released from the
            same data, both releases spend budget, and `voxpop.privacy.composition.compose` returns their total. "find"
            finds the alphabet with a quarter of epsilon and all of delta.
        other: An additional symbol that represents every token outside the alphabet, such as "other", so that sequences
            keep their lengths.

    Raises:
        InputError: A field is out of range.

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

    max_length: int | None = None
    max_gram: int = 5
    alphabet: "Iterable[str] | Release | Literal['find'] | None" = field(default=None, repr=False)
    other: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Check every field, and sort the alphabet."""
        if self.max_length is not None:
            meaning = "the maximum number of symbols of one user that count; by default the released lengths decide"
            check_whole("max_length", self.max_length, LONGEST_SEQUENCE, meaning)
        check_whole("max_gram", self.max_gram, LONGEST_GRAM, "the length of the longest gram counted; 5 is usual")
        if self.alphabet is not None and self.alphabet != FIND:
            object.__setattr__(self, "alphabet", public_alphabet(self.alphabet))
        if self.other is not None and (not isinstance(self.other, str) or not self.other):
            raise InputError(
                f"`other` must be a string that is not empty, got a value of type {type(self.other).__name__}."
            )
        if self.other is not None and self.alphabet != FIND and self.other in (self.alphabet or ()):
            raise InputError("`other` is in the alphabet; it must be another symbol, which stands for all others.")

    @property
    def most(self) -> int:
        """The maximum number of symbols that count per user, which is `max_length` or, by default, 1,000."""
        return LONGEST_FOUND if self.max_length is None else self.max_length

    @property
    def usual(self) -> int:
        """The number of symbols that determines the noise in a plan, which is `max_length` or, by default, 20."""
        return USUAL_LENGTH if self.max_length is None else self.max_length

    def plan(self, budget: Budget) -> "SequencePlan":
        """Compute the noise for a budget, without data.

        Args:
            budget: The budget. Delta is used only to find the alphabet.

        Returns:
            The plan, which contains the guarantee and all numbers that a release uses.

        Raises:
            InputError: The alphabet is missing.
            BudgetError: Epsilon is too small for the length, or delta is 0 although the alphabet must be found.
        """
        from voxpop.mechanisms.sequences.plan import plan_sequences

        check_budget(budget)
        return plan_sequences(self, budget)

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration, with only the size of the alphabet."""
        given = self.alphabet is not None and self.alphabet != FIND
        return {
            "mechanism": "sequences",
            "max_length": self.max_length,
            "max_gram": self.max_gram,
            "alphabet_size": len(tuple(self.alphabet or ())) + (self.other is not None) if given else None,
            **({} if self.other is None else {"other": self.other}),
        }


def public_alphabet(given: Any) -> tuple[str, ...]:
    """Return the symbols in the order of their bytes, so that their numbers do not depend on the given order.

    Args:
        given: Distinct strings, or a release of single items.

    Raises:
        InputError: The argument is not a collection of distinct strings.
    """
    from voxpop.release.release import Release

    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InputError(
            f"`alphabet` must be a list of strings or a release, got a value of type {type(given).__name__}."
        )
    symbols = list(given)
    if isinstance(given, Release):
        grams = list(given.each_gram())
        if any(len(gram) != 1 for gram in grams):
            raise InputError(
                "a release that serves as the alphabet must contain only single items; this one contains longer grams."
            )
        symbols = [gram[0] for gram in grams]
    for symbol in symbols:
        if not isinstance(symbol, str):
            raise InputError(
                f"`alphabet` must contain strings, got a value of type {type(symbol).__name__}. voxpop.read turns "
                'whole numbers into their decimal strings, so write "17" for 17.'
            )
    if not 1 <= len(symbols) <= _MOST_SYMBOLS:
        raise InputError(f"`alphabet` must have from 1 to {_MOST_SYMBOLS:,} symbols, got {len(symbols):,}.")
    ordered = tuple(sorted(symbols))
    if any(one == other for one, other in pairwise(ordered)):
        raise InputError("`alphabet` contains a symbol twice; every symbol must be distinct. Use dict.fromkeys first.")
    return ordered
