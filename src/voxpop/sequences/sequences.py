"""Sequences: a model of whole sequences, and synthetic ones from it (Chen, Acs and Castelluccia, CCS 2012)."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, final

from voxpop.arguments import check_budget, check_whole
from voxpop.errors import InputError
from voxpop.privacy.budget import Budget

if TYPE_CHECKING:
    from collections.abc import Iterable

    from voxpop.corpus.engine import Engine
    from voxpop.privacy.charging import Account
    from voxpop.release import Release
    from voxpop.sequences.finding import FindingPlan
    from voxpop.sequences.model import SequenceModel
    from voxpop.sequences.plan import SequencePlan

LONGEST = 10_000
LONGEST_GRAM = 16
MOST_KEPT = 10_000
MOST_AFTER_CONTEXTS = 1024
COMBINE = ("sample", "concatenate")
CONSISTENCY = ("balanced", "published")
LEAVES = ("auto", "all", "threshold")
FIND = "find"
TREES = ("auto", "contexts", "grams")


@final
@dataclass(frozen=True, slots=True)
class Sequences:
    """Release which grams are frequent in users' sequences, with noisy counts: a model that can be sampled from.

    Every user has one sequence, of which the first `max_length` symbols count. Grams are counted as a tree: the counts
    of a gram's continuations get noise, and only continuations above a threshold are continued further. The release is
    (epsilon, 0)-differentially private for one user, with everything that user holds, added or removed; counts are
    integers with integer noise, which is cut at 2^62, beyond which lies less than e^(-2^13) of it. The proof is in
    docs/privacy/sequences.md.

    Attributes:
        max_length: most symbols of one user's sequence (the paper's l_max): the noise is proportional to it. Public.
        max_gram: length of the longest gram counted, the end mark included (the paper's n_max).
        combine: which sequence is a user's own where it has several: "sample" draws one of those that hold a symbol,
            "concatenate" joins them in the order of the rows, on Spark in that of their contents.
        alphabet: all tokens that may occur: distinct strings, or a release of items. Public: what is not in it is left
            out of every sequence. See `voxpop.sequences.spent_together` where it was released from the same data. Or
            "find", which finds one with a quarter of epsilon and all of delta.
        consistency: how noisy counts are reconciled with those of shorter grams: "published" is the paper's rule;
            "balanced", ours, believes a count as far as it stands out from noise and shorter grams otherwise. Neither
            costs anything.
        leaves: "all" keeps every continuation at the root and where no deeper level follows, as the paper does;
            "threshold" keeps those above the threshold only, which a large alphabet needs; "auto" is "all" for
            "published" consistency up to 1,000 symbols.
        tree: what is counted. "contexts": what follows each context, which is longer where that is frequent; all counts
            are released, below 0 too. "grams": grams from their first symbol on, as in the paper, which is for large
            alphabets too, and to which `consistency` and `leaves` belong. "auto" is "contexts" for fewer than 1,024
            symbols where neither of these two is set.

    Raises:
        InputError: for a field out of range.

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
    combine: Literal["sample", "concatenate"] = "sample"
    alphabet: "Iterable[str] | Release | Literal['find'] | None" = field(default=None, repr=False)
    consistency: Literal["balanced", "published"] = "balanced"
    leaves: Literal["auto", "all", "threshold"] = "auto"
    tree: Literal["auto", "contexts", "grams"] = "auto"

    def __post_init__(self) -> None:
        """Check every field, and put the alphabet in order."""
        check_whole("max_length", self.max_length, LONGEST, "the most symbols of one user that count; 20 is usual")
        check_whole("max_gram", self.max_gram, LONGEST_GRAM, "the length of the longest gram counted; 5 is usual")
        if self.combine not in COMBINE:
            raise InputError(f'`combine` must be "sample" or "concatenate", got {self.combine!r}.')
        if self.consistency not in CONSISTENCY:
            raise InputError(f'`consistency` must be "balanced" or "published", got {self.consistency!r}.')
        if self.leaves not in LEAVES:
            raise InputError(f'`leaves` must be "auto", "all" or "threshold", got {self.leaves!r}.')
        if self.tree not in TREES:
            raise InputError(f'`tree` must be "auto", "contexts" or "grams", got {self.tree!r}.')
        if self.alphabet is None or self.alphabet == FIND:
            return
        from voxpop.sequences.alphabet import public_alphabet

        alphabet = public_alphabet(self.alphabet)
        object.__setattr__(self, "alphabet", alphabet)
        if self.tree == "contexts" and len(alphabet) >= MOST_AFTER_CONTEXTS:
            raise InputError(
                f'tree="contexts" releases a count of every symbol behind every context: fewer than '
                f'{MOST_AFTER_CONTEXTS:,} symbols, got {len(alphabet):,}. Use tree="grams".'
            )
        if self.leaves == "all" and len(alphabet) > MOST_KEPT:
            raise InputError(
                f'leaves="all" releases a count of every symbol at every last node: at most {MOST_KEPT:,} symbols, got '
                f'{len(alphabet):,}. Use leaves="threshold".'
            )

    def plan(self, budget: Budget) -> "SequencePlan | FindingPlan":
        """Fill in the noise for a budget: no data needed.

        Args:
            budget: what may be spent; its delta is used to find the alphabet only, and the guarantee's is 0 else.

        Returns:
            The plan: the numbers that will run and what they guarantee.

        Raises:
            InputError: where the alphabet is missing.
            BudgetError: where epsilon is too small for the length.
        """
        from voxpop.sequences.plan import plan_sequences

        check_budget(budget)
        if self.alphabet == FIND:
            from voxpop.sequences.finding import plan_finding

            return plan_finding(self, budget)
        return plan_sequences(self, budget)

    def release(
        self, corpus: "Engine", budget: Budget, seed: int | None = None, ledger: "Account | None" = None
    ) -> "SequenceModel":
        """Plan for the budget and release from the corpus.

        Args:
            corpus: what `voxpop.read` or `voxpop.load_corpus` returned, of anything but items.
            budget: epsilon; and delta where the alphabet is found.
            seed: makes the model reproducible and NOT private, and marks it so; leave it out for real data.
            ledger: an account that is charged first; see `voxpop.Ledger`.

        Returns:
            The model: released grams with noisy counts, plan and guarantee.
        """
        from voxpop.privacy.charging import run

        return run(self.plan(budget), corpus, seed, ledger)

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration; of the alphabet only its size."""
        return {
            "mechanism": "sequences",
            "max_length": self.max_length,
            "max_gram": self.max_gram,
            "combine": self.combine,
            "alphabet_size": None if self.alphabet is None or self.alphabet == FIND else len(tuple(self.alphabet)),
            "consistency": self.consistency,
            "leaves": self.leaves,
            "tree": self.tree,
        }
