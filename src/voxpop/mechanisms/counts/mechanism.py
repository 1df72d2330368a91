"""Counts and rankings of released grams: public configurations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from voxpop.mechanisms.counts.constants import COUNT_LIMITS, MOST_PLACES
from voxpop.privacy.budget import LARGEST_LIMIT, Budget, check_budget, check_whole

if TYPE_CHECKING:
    from voxpop.mechanisms.counts.plan import CountsPlan, TopPlan
    from voxpop.release.release import Release


@final
@dataclass(frozen=True, slots=True)
class CountsMechanism:
    """Count the users who hold each released gram, with noise and a separate budget.

    The grams are those of a release, so they are public, and each gets Gaussian noise, including grams without users. A
    user who holds at most `counted_in_full` released grams of a length counts as one for each of them; a user who holds
    n, more than that, counts as sqrt(counted_in_full / n) for each. So such users count too little, never too much. The
    proof is in docs/privacy/counts.md.

    Attributes:
        counted_in_full: The number of released words up to which a user counts in full; it halves from length to
            length. Noise grows with the root of the sum over lengths. By default it is chosen privately, for the least
            mean error.

    Raises:
        InputError: for a limit out of range.

    Example:
        >>> import polars as pl
        >>> import voxpop as vp
        >>> held = {"who": range(3000), "what": ["tea", "tea", "milk"] * 1000}
        >>> corpus = vp.read(pl.DataFrame(held), user="who", items="what")
        >>> words = vp.Items(max_items_per_user=10).release(corpus, vp.Budget(epsilon=1, delta=1e-8))
        >>> tally = words.count(corpus, vp.Budget(epsilon=1, delta=1e-8), counted_in_full=1)
        >>> [gram for gram, users in tally]
        ['tea', 'milk']
    """

    counted_in_full: int | None = None

    def __post_init__(self) -> None:
        """Check the limit."""
        if self.counted_in_full is not None:
            check_whole(
                "counted_in_full", self.counted_in_full, LARGEST_LIMIT, "the most words for which a user counts in full"
            )

    def plan(self, budget: Budget, release: "Release") -> "CountsPlan":
        """Fill in the noise for a budget and the grams of a release; no private data is needed.

        Raises:
            BudgetError: where the budget is out of range for Gaussian noise.
        """
        check_budget(budget)
        return self.plan_within(None, budget, release)

    def plan_within(self, square: float | None, budget: Budget, release: "Release") -> "CountsPlan":
        """Fill in the noise for a part of the mu^2 of another release, whose guarantee covers the counts.

        Args:
            square: that part of mu^2; None if the counts have a separate budget.
            budget: of the whole.
            release: whose grams are counted.
        """
        from voxpop.mechanisms.counts.plan import plan_counts
        from voxpop.mechanisms.counts.releasing import sizes_of

        return plan_counts(self, self.menu(sizes_of(release)), budget, release, square)

    def menu(self, sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Return the limits of each length, at most the number of grams; several where a release chooses.

        Args:
            sizes: number of grams of each length.
        """
        chosen = COUNT_LIMITS if self.counted_in_full is None else (self.counted_in_full,)
        # limit / 2^k, rounded up, for grams of k + 1 tokens. Limits above the number of grams are the same.
        cut = (tuple(min(-(-limit // 2**k), size) for k, size in enumerate(sizes)) for limit in chosen)
        return tuple(dict.fromkeys(cut))

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""
        return {"mechanism": "counts", "counted_in_full": self.counted_in_full}


@final
@dataclass(frozen=True, slots=True)
class TopMechanism:
    """Name the k released grams that most users hold, in order, with a separate budget.

    The grams are those of a release, so they are public. Gumbel noise is added to the number of users of each, and the
    k highest are named: the exponential mechanism, one pick after the other ("peeling"). Each user counts in full for
    any number of grams, so there is no limit to choose. The noise grows with the root of k. For up to about twice as
    many places as `CountsMechanism` has for a limit, that is less noise than counting; counts themselves stay unknown.
    The proof is in docs/privacy/top.md.

    Attributes:
        k: number of grams.

    Raises:
        InputError: for a number out of range.

    Example:
        >>> import polars as pl
        >>> import voxpop as vp
        >>> table = pl.DataFrame({"who": range(3000), "what": ["tea", "tea", "milk"] * 1000})
        >>> corpus, budget = vp.read(table, user="who", items="what"), vp.Budget(epsilon=1, delta=1e-8)
        >>> vp.Items(max_items_per_user=10).release(corpus, budget).top(corpus, budget, k=1).to_list()
        ['tea']
    """

    k: int = 10

    def __post_init__(self) -> None:
        """Check the number."""
        check_whole("k", self.k, MOST_PLACES, "the number of grams that are named")

    def plan(self, budget: Budget, release: "Release") -> "TopPlan":
        """Fill in the noise for a budget and the grams of a release; no private data is needed.

        Raises:
            BudgetError: if the budget is too small for the number of places.
        """
        from voxpop.mechanisms.counts.plan import plan_top

        check_budget(budget)
        return plan_top(self, self.k, budget, release)

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""
        return {"mechanism": "top", "k": self.k}
