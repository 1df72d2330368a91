"""Top: which of the released grams most users hold, in order."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from voxpop.arguments import check_budget, check_whole
from voxpop.privacy.budget import Budget

if TYPE_CHECKING:
    from voxpop.corpus.engine import Engine
    from voxpop.counts.top_plan import TopPlan
    from voxpop.privacy.charging import Account
    from voxpop.release.ranking import Ranking
    from voxpop.release.release import Release

MOST_PLACES = 10**6


@final
@dataclass(frozen=True, slots=True)
class Top:
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
        >>> held = {"who": range(3000), "what": ["tea", "tea", "milk"] * 1000}
        >>> corpus = vp.read(pl.DataFrame(held), user="who", items="what")
        >>> words = vp.SetUnion(limit=10).release(corpus, vp.Budget(epsilon=1, delta=1e-8))
        >>> words.top(1, corpus, vp.Budget(epsilon=1, delta=1e-8)).to_list()
        ['tea']
    """

    k: int = 10

    def __post_init__(self) -> None:
        """Check the number."""
        check_whole("k", self.k, MOST_PLACES, "how many grams are named")

    def plan(self, budget: Budget, release: "Release") -> "TopPlan":
        """Fill in the noise for a budget and the grams of a release: no private data needed.

        Args:
            budget: what the ranking may spend, apart from what the release has spent.
            release: whose grams are ranked.

        Returns:
            The plan: the noise, and what the ranking guarantees.

        Raises:
            BudgetError: where the budget is too small for so many places.
        """
        from voxpop.counts.top_plan import plan_top

        check_budget(budget)
        return plan_top(self, budget, release)

    def release(
        self,
        corpus: "Engine",
        budget: Budget,
        release: "Release",
        seed: int | None = None,
        ledger: "Account | None" = None,
    ) -> "Ranking":
        """Rank the grams of a release by how many users of a corpus hold them.

        Args:
            corpus: what `voxpop.read` or `voxpop.load_corpus` returned, cut as for the release.
            budget: what the ranking may spend, apart from what the release has spent.
            release: whose grams are ranked.
            seed: makes the ranking reproducible and NOT private, and marks it so; leave it out for real data.
            ledger: an account that is charged first; see `voxpop.Ledger`.

        Returns:
            The k grams of most users, in order.
        """
        from voxpop.privacy.charging import run

        return run(self.plan(budget, release), corpus, seed, ledger)

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""
        return {"mechanism": "top", "k": self.k}
