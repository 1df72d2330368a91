"""The public configurations of counts and rankings of released grams."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast, final

from voxpop.mechanisms.counts.constants import COUNT_LIMITS, MOST_PLACES
from voxpop.privacy.budget import LARGEST_LIMIT, Budget, check_budget, check_whole

if TYPE_CHECKING:
    from voxpop.mechanisms.counts.plan import CountsPlan, TopPlan
    from voxpop.release.known import Known, KnownItems
    from voxpop.release.release import Release


@final
@dataclass(frozen=True, slots=True)
class CountsMechanism:
    """Count the users of each released gram, with noise and a separate budget.

    The grams were released, so they are public. Each count receives Gaussian noise, including the counts of grams
    without users. A user who has at most `counted_in_full` released grams of a length counts as one user for each gram.
    A user who has n > `counted_in_full` released grams of a length counts as sqrt(counted_in_full / n) of a user for
    each gram. Therefore a user's contribution can be too small, but is never too large. The proof is in
    docs/privacy/counts.md.

    Attributes:
        counted_in_full: The maximum number of released words per user at full weight. The limit is halved with each
            additional token, and the noise increases with the square root of the sum of the limits of all lengths. By
            default, the limit with the smallest mean error is chosen privately.
        known: Public items that are counted even if they were not released; see `Items` for the format. By default,
            only released grams are counted.

    Raises:
        InputError: If the limit is out of range, or `known` is not a list.

    Example:
        >>> import polars as pl
        >>> import voxpop as vp
        >>> held = {"who": range(3000), "what": ["tea", "tea", "milk"] * 1000}
        >>> corpus = vp.read(pl.DataFrame(held), user="who", items="what")
        >>> words = vp.Items(max_items_per_user=10).release(corpus, vp.Budget(epsilon=1, delta=1e-8))
        >>> counts = words.count(corpus, vp.Budget(epsilon=1, delta=1e-8), counted_in_full=1)
        >>> [gram for gram, users in counts]
        ['tea', 'milk']
    """

    counted_in_full: int | None = None
    known: "Known | None" = None

    def __post_init__(self) -> None:
        """Check the limit and the list."""
        if self.counted_in_full is not None:
            check_whole(
                "counted_in_full",
                self.counted_in_full,
                LARGEST_LIMIT,
                "the number of words for which a user counts in full",
            )
        if self.known is not None:
            from voxpop.release.known import KnownItems

            object.__setattr__(self, "known", KnownItems.of(self.known))

    @property
    def known_items(self) -> "KnownItems | None":
        """The public list, if there is one."""
        return cast("KnownItems | None", self.known)

    def plan(self, budget: Budget, release: "Release") -> "CountsPlan":
        """Compute the noise for a budget and the grams of a release, without private data.

        Raises:
            BudgetError: If the budget is outside the range of Gaussian noise.
        """
        check_budget(budget)
        return self.plan_within(None, budget, release)

    def plan_within(self, square: float | None, budget: Budget, release: "Release") -> "CountsPlan":
        """Compute the noise for counts that spend part of the mu^2 of another release.

        The guarantee of that release also covers the counts.

        Args:
            square: The mu^2 that the counts spend, or None if the counts have a separate budget.
            budget: The budget of the whole release.
            release: The release with the grams to count.
        """
        from voxpop.mechanisms.counts.plan import plan_counts
        from voxpop.mechanisms.counts.releasing import sizes_of

        sizes = sizes_of(release)
        if self.known_items is not None:
            # Listed items can be among the released words, so this sum is only an upper bound. Computing it requires
            # only the size of the list.
            sizes = [sum(sizes[:1]) + self.known_items.size, *sizes[1:]]
        return plan_counts(self, self.menu(sizes), budget, release, square)

    def menu(self, sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Return the possible limits for each length, which are at most the number of grams of that length.

        The result has several entries if the limit is chosen privately.

        Args:
            sizes: The number of grams of each length, or an upper bound.
        """
        chosen = COUNT_LIMITS if self.counted_in_full is None else (self.counted_in_full,)
        # The limit for grams of k + 1 tokens is limit / 2^k, rounded up. All limits above the number of grams have the
        # same effect.
        cut = (tuple(min(-(-limit // 2**k), size) for k, size in enumerate(sizes)) for limit in chosen)
        return tuple(dict.fromkeys(cut))

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""
        known = {} if self.known_items is None else {"known": self.known_items.to_dict()}
        return {"mechanism": "counts", "counted_in_full": self.counted_in_full, **known}


@final
@dataclass(frozen=True, slots=True)
class TopMechanism:
    """Rank the k released grams with the most users, with a separate budget.

    The grams were released, so they are public. Gumbel noise is added to the number of users of each gram, and the k
    grams with the highest noisy numbers are released in order. This is the exponential mechanism, applied once per pick
    ("peeling"). Each user counts in full for any number of grams, so there is no limit to choose. The noise increases
    with the square root of k. If k is at most about twice the limit of `CountsMechanism`, a ranking has less noise than
    counts. However, a ranking does not release the counts themselves. The proof is in docs/privacy/top.md.

    Attributes:
        k: The number of grams to rank.

    Raises:
        InputError: If k is out of range.

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
        """Check that k is in range."""
        check_whole("k", self.k, MOST_PLACES, "the number of grams in the ranking")

    def plan(self, budget: Budget, release: "Release") -> "TopPlan":
        """Compute the noise for a budget and the grams of a release, without private data.

        Raises:
            BudgetError: If the budget is too small for a ranking of k grams.
        """
        from voxpop.mechanisms.counts.plan import plan_top

        check_budget(budget)
        return plan_top(self, self.k, budget, release)

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""
        return {"mechanism": "top", "k": self.k}
