"""Counts and rankings of released grams: public configurations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from voxpop.errors import InputError
from voxpop.mechanisms.counts.constants import LIMITS, MOST_PLACES
from voxpop.privacy.budget import LARGEST_LIMIT, Budget, check_budget, check_whole

if TYPE_CHECKING:
    from voxpop.mechanisms.counts.plan import CountsPlan, TopPlan
    from voxpop.release.release import Release


@final
@dataclass(frozen=True, slots=True)
class Counts:
    """Count the users who hold each released gram, with noise and a separate budget.

    The grams are those of a release, so they are public, and each gets Gaussian noise, including grams without users. A
    user who holds at most `limit` released grams of a length counts as one for each of them; a user who holds n, more
    than that, counts as sqrt(limit / n) for each. So such users count too little, never too much. The proof is in
    docs/privacy/counts.md.

    Attributes:
        limit: most released grams of one length for which a user counts in full: a number for words, which halves from
            length to length, or a list with one number for each length. Noise grows with the root of their sum. By
            default it is chosen privately, for the least mean error.

    Raises:
        InputError: for a limit out of range.

    Example:
        >>> import polars as pl
        >>> import voxpop as vp
        >>> held = {"who": range(3000), "what": ["tea", "tea", "milk"] * 1000}
        >>> corpus = vp.read(pl.DataFrame(held), user="who", items="what")
        >>> words = vp.SetUnion(limit=10).release(corpus, vp.Budget(epsilon=1, delta=1e-8))
        >>> tally = words.count(corpus, vp.Budget(epsilon=1, delta=1e-8), limit=1)
        >>> [gram for gram, users in tally]
        ['tea', 'milk']
    """

    limit: int | Sequence[int] | None = None

    def __post_init__(self) -> None:
        """Check the limit, and keep a list as a tuple."""
        if self.limit is None:
            return
        limits = self.limit if isinstance(self.limit, Sequence) and not isinstance(self.limit, str) else [self.limit]
        if not len(limits):
            raise InputError("`limit` must be a number or a list with one for each length, got an empty list.")
        for each in limits:
            check_whole("limit", each, LARGEST_LIMIT, "the most grams of one length for which a user counts in full")
        if isinstance(self.limit, Sequence):
            object.__setattr__(self, "limit", tuple(self.limit))

    def plan(self, budget: Budget, release: "Release") -> "CountsPlan":
        """Fill in the noise for a budget and the grams of a release; no private data is needed.

        Raises:
            BudgetError: where the budget is out of range for Gaussian noise.
            InputError: where there are not as many limits as lengths.
        """
        from voxpop.mechanisms.counts.plan import plan_counts

        check_budget(budget)
        return plan_counts(self, budget, release)

    def menu(self, sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Return the limits of each length, at most the number of grams; several where a release chooses.

        Args:
            sizes: number of grams of each length.

        Raises:
            InputError: where a list has another number of entries.
        """
        chosen = LIMITS if self.limit is None else [self.limit]
        every = [_by_length(limit, len(sizes)) if isinstance(limit, int) else tuple(limit) for limit in chosen]
        if len(every[0]) < len(sizes):
            raise InputError(
                f"`limit` has {len(every[0])} entries and the release has grams of up to {len(sizes)} tokens; give one "
                "limit for each length, or one number."
            )
        # Limits above the number of grams are the same.
        cut = (tuple(min(limit, size) for limit, size in zip(limits, sizes, strict=False)) for limits in every)
        return tuple(dict.fromkeys(cut))

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""
        return {"mechanism": "counts", "limit": list(self.limit) if isinstance(self.limit, Sequence) else self.limit}


def _by_length(limit: int, lengths: int) -> tuple[int, ...]:
    """Return limit / 2^k, rounded up, for grams of k + 1 tokens."""
    return tuple(max(1, -(-limit // 2**length)) for length in range(lengths))


@final
@dataclass(frozen=True, slots=True)
class Top:
    """Name the k released grams that most users hold, in order, with a separate budget.

    The grams are those of a release, so they are public. Gumbel noise is added to the number of users of each, and the
    k highest are named: the exponential mechanism, one pick after the other ("peeling"). Each user counts in full for
    any number of grams, so there is no limit to choose. The noise grows with the root of k. For up to about twice as
    many places as `Counts` has for a limit, that is less noise than counting; counts themselves stay unknown. The proof
    is in docs/privacy/top.md.

    Attributes:
        k: how many grams.

    Raises:
        InputError: for a number out of range.

    Example:
        >>> import polars as pl
        >>> import voxpop as vp
        >>> table = pl.DataFrame({"who": range(3000), "what": ["tea", "tea", "milk"] * 1000})
        >>> corpus, budget = vp.read(table, user="who", items="what"), vp.Budget(epsilon=1, delta=1e-8)
        >>> vp.SetUnion(limit=10).release(corpus, budget).top(1, corpus, budget).to_list()
        ['tea']
    """

    k: int = 10

    def __post_init__(self) -> None:
        """Check the number."""
        check_whole("k", self.k, MOST_PLACES, "how many grams are named")

    def plan(self, budget: Budget, release: "Release") -> "TopPlan":
        """Fill in the noise for a budget and the grams of a release; no private data is needed.

        Raises:
            BudgetError: where the budget is too small for so many places.
        """
        from voxpop.mechanisms.counts.plan import plan_top

        check_budget(budget)
        return plan_top(self, budget, release)

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""
        return {"mechanism": "top", "k": self.k}
