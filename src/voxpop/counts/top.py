"""Top: which of the released grams most users hold, in order."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from voxpop.arguments import check_budget, check_whole
from voxpop.counts.query import GramQuery
from voxpop.privacy.budget import Budget
from voxpop.release.ranking import Ranking

if TYPE_CHECKING:
    from voxpop.counts.top_plan import TopPlan
    from voxpop.release.release import Release

MOST_PLACES = 10**6


@final
@dataclass(frozen=True, slots=True)
class Top(GramQuery[Ranking]):
    """Name the k released grams that most users hold, in order, with a budget of its own.

    The grams are those of a release, so they are public. Gumbel noise is added to the number of users of each, and the
    k highest are named: the exponential mechanism, one pick after the other ("peeling"). Everybody counts in full,
    however many grams they hold, so there is no limit to choose. The noise grows with the root of k. For up to about
    twice as many places as `Counts` has for a limit, that is less noise than counting; counts themselves stay unknown.
    The proof is in docs/privacy/top.md.

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
        """Fill in the noise for a budget and the grams of a release; see `GramQuery.plan`.

        Raises:
            BudgetError: where the budget is too small for so many places.
        """
        from voxpop.counts.top_plan import plan_top

        check_budget(budget)
        return plan_top(self, budget, release)

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""
        return {"mechanism": "top", "k": self.k}
