"""Set union: the items that many people share (DPSU, ICML 2020)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, final

from voxpop.arguments import check_budget, check_choice, check_whole, check_within
from voxpop.errors import InputError, UnsoundError
from voxpop.privacy.budget import Budget
from voxpop.union.cells import sound_sharing
from voxpop.union.weighting import Weighting

if TYPE_CHECKING:
    from voxpop.corpus import Corpus
    from voxpop.privacy.charging import Account
    from voxpop.release import Release
    from voxpop.union.focus.plan import FocusPlan
    from voxpop.union.plan import UnionPlan

MOST_ROUNDS = 16
LARGEST_LIMIT = 10**7
MOST_SET_ONLY = 1000


@final
@dataclass(frozen=True, slots=True)
class SetUnion:
    """Release the items that many users share: words, keys, products.

    Every user picks at most `limit` of its distinct items and shares one unit of weight over them; noise is added to
    the weight of every item picked, and the items above a threshold are released, without their weights. The release is
    (epsilon, delta)-differentially private for one user, with everything that user holds, added or removed. The proof,
    the paper's errors and what we do instead are in docs/privacy/set-union.md.

    Attributes:
        limit: most items of one user (the paper's Delta_0). Public: do not choose it by looking at the data.
        weighting: "count", "weighted", "l1-descent", "l2-descent", or an object of your own derived from `Weighting`.
        noise: "laplace" or "gaussian". l1-descent is sound with Laplace only, l2-descent with Gaussian only.
        alpha: weight stops rising at threshold + alpha * scale of the noise (descent weightings).
        rounds: items released in one round are left out of the next, so users spend on the rest (DP-SIPS).
        accounting: "joint" computes delta exactly for noise and novel items together; "published" is the paper's
            delta/2 + delta/2. With limit=1 and one round, "joint" is the optimal mechanism for one item per user.
            "set-only" (docs/privacy/set-only.md) counts only what a set gives away, so it adds no noise to weights
            and costs less; for the weightings count and weighted.
        cap: most weight a user gives one item, from 0.01 to 1, under set-only accounting; None is 0.5.
        focus: run eight rounds of our own instead: what is sure is released, what is hopeless is dropped, and users
            spend on the rest; noisy weights add up over the rounds (docs/privacy/focus.md). It releases most, takes
            about three times as long, and brings its own rounds, alpha and accounting.

    Raises:
        InputError: for a field out of range.
        UnsoundError: for a weighting and a noise that together have no proof.

    Example:
        >>> import polars as pl
        >>> import voxpop as vp
        >>> table = pl.DataFrame({"who": range(1000), "what": ["tea", "milk"] * 500})
        >>> corpus = vp.read(table, user="who", items="what")
        >>> words = vp.SetUnion(limit=10).release(corpus, vp.Budget(epsilon=1, delta=1e-8))
        >>> words.to_list()
        ['milk', 'tea']
        >>> print(words.guarantee)
        (1, 1e-08)-DP, one user added or removed
    """

    limit: int = 100
    weighting: str | Weighting = "l2-descent"
    noise: Literal["gaussian", "laplace"] = "gaussian"
    alpha: float = 3.0
    rounds: int = 1
    accounting: Literal["joint", "published", "set-only"] = "joint"
    focus: bool = False
    cap: float | None = None

    def __post_init__(self) -> None:
        """Check every field."""
        check_whole("limit", self.limit, LARGEST_LIMIT, "the most items one user may contribute; 100 is a common start")
        check_whole("rounds", self.rounds, MOST_ROUNDS, "how often the remaining items are tried; 1 or 3 are usual")
        check_within("alpha", self.alpha, 0.0, 1000.0, "how far above the threshold weight rises; 3 is usual")
        check_choice("accounting", self.accounting, ("joint", "published", "set-only"))
        sound_sharing(self.weighting, self.noise)
        if self.accounting == "set-only" or self.cap is not None:
            self._check_set_only()
        if self.focus:
            self._check_focus()

    def _check_set_only(self) -> None:
        """Refuse what set-only accounting has no proof for."""
        if self.accounting != "set-only":
            raise InputError(f'`cap` goes with accounting="set-only", got accounting {self.accounting}: leave it out.')
        if self.cap is not None:
            check_within("cap", self.cap, 0.01, 1.0, "the most weight a user gives one item; 0.5 is usual")
        if self.noise != "gaussian":
            raise UnsoundError(
                f"set-only accounting adds no noise to weights and is proved in l2 alone, got {self.noise} noise: "
                "leave `noise` out."
            )
        if self.weighting not in ("count", "weighted"):
            raise UnsoundError(
                "set-only accounting is proved where a user's shares depend on the number of its items alone (count, "
                f"weighted); got {self.to_dict()['weighting']} weighting, under which one user moves weights that it "
                'does not hold, by any amount. Use weighting="weighted" or accounting="joint".'
            )
        if self.focus:
            raise UnsoundError(
                "`focus` adds up noisy weights over its rounds, and set-only accounting may say nothing but the set: "
                "leave one of them out."
            )
        check_whole("limit", self.limit, MOST_SET_ONLY, "the most items one user may contribute under set-only")

    def _check_focus(self) -> None:
        """Refuse what focused rounds replace or have no proof for."""
        if self.noise != "gaussian" or not isinstance(self.weighting, str):
            raise UnsoundError(
                "`focus` is proved for Gaussian noise with count, weighted or l2-descent weighting; "
                f"got {self.noise} noise with {self.to_dict()['weighting']} weighting."
            )
        if self.rounds != 1 or self.accounting != "joint" or self.limit < 2:
            raise InputError(
                "`focus` brings its own rounds and accounting and needs a limit of at least 2: leave `rounds` at 1 and "
                f"`accounting` at joint; got rounds {self.rounds}, accounting {self.accounting}, limit {self.limit}."
            )

    def plan(self, budget: Budget) -> "UnionPlan | FocusPlan":
        """Fill in noise and threshold for a budget: no data needed.

        Args:
            budget: what may be spent.

        Returns:
            The plan: the numbers that will run, what they guarantee, and how many users an item needs.

        Raises:
            BudgetError: where no threshold can meet the budget.
        """
        if self.focus:
            from voxpop.union.focus.planning import plan_focused

            return plan_focused(self, budget)
        from voxpop.union.planning import plan_union

        check_budget(budget)
        return plan_union(self, budget)

    def release(
        self, corpus: "Corpus", budget: Budget, seed: int | None = None, ledger: "Account | None" = None
    ) -> "Release":
        """Plan for the budget and release from the corpus.

        Args:
            corpus: what `voxpop.read` or `voxpop.load_corpus` returned.
            budget: what may be spent.
            seed: makes the release reproducible and NOT private, and marks it so; leave it out for real data.
            ledger: an account that is charged first; see `voxpop.Ledger`.

        Returns:
            The items, in order of their bytes, with plan and guarantee.
        """
        plan = self.plan(budget)
        return plan.release(corpus, seed) if ledger is None else ledger.release(plan, corpus, seed)

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""
        weighting = self.weighting if isinstance(self.weighting, str) else type(self.weighting).__name__
        return {
            "mechanism": "set union",
            "limit": self.limit,
            "weighting": weighting,
            "noise": self.noise,
            "alpha": self.alpha,
            "rounds": self.rounds,
            "accounting": self.accounting,
            "focus": self.focus,
            **({} if self.cap is None else {"cap": self.cap}),
        }
