"""Set union: the items that many people share (DPSU, ICML 2020)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, final, overload

from voxpop.arguments import LARGEST_LIMIT, check_budget, check_choice, check_whole, check_within
from voxpop.errors import BudgetError, InputError, UnsoundError
from voxpop.privacy.budget import Budget
from voxpop.rounds.adaptive.schedule import USUAL_LIMIT
from voxpop.rounds.at_least import AtLeast
from voxpop.weighting.own import Weighting
from voxpop.weighting.soundness import sound_rule

if TYPE_CHECKING:
    from voxpop.corpus.engine import Engine
    from voxpop.privacy.charging import Account
    from voxpop.release import Release
    from voxpop.union.adaptive.plan import AdaptivePlan
    from voxpop.union.plan import UnionPlan

ADAPTIVE: Final = "adaptive"
USUAL_ALPHA: Final = {"gaussian": 5.0, "laplace": 14.0}
"""An item at the cutoff is missing with probability 2.9e-7 and 4.2e-7; with 3 it was 1 in 740."""
MOST_ROUNDS = 16
MOST_SET_ONLY = 1000
MOST_FEW = 10**7
USUAL_BETA: Final = 1e-6
LEAST_BETA: Final = 1e-15


@final
@dataclass(frozen=True, slots=True)
class SetUnion:
    """Release the items that many users share: words, keys, products.

    Every user shares one unit of weight over at most `limit` of its distinct items; noise is added to the weight of
    every item, and the items above a threshold are released, without their weights. The release is (epsilon,
    delta)-differentially private for one user, with everything that user holds, added or removed.

    By default it does so in adaptive rounds: what is sure is released, what is hopeless is dropped, and users spend
    on the rest; noisy weights add up over the rounds (docs/privacy/adaptive.md). That releases most at every limit and
    budget. Naming a `weighting` gives a classic mechanism instead; its proof, the paper's errors and what we do
    instead are in docs/privacy/set-union.md.

    Attributes:
        limit: most items of one user in a round (the paper's Delta_0); None leaves it to us: 100, which is right for
            nearly everybody. Public: do not choose it by looking at the data.
        weighting: "adaptive", or a classic one: "count", "weighted", "l1-descent", "l2-descent", or an object of your
            own derived from `Weighting`.
        noise: "laplace" or "gaussian". l1-descent is sound with Laplace only, l2-descent and adaptive rounds with
            Gaussian only.
        alpha: weight stops rising at threshold + alpha * scale of the noise (descent weightings); None is 5 with
            Gaussian noise, 14 with Laplace noise: what stands there is missing less than once in a million releases.
        rounds: items released in one round are left out of the next, so users spend on the rest (DP-SIPS).
        accounting: "joint" computes delta exactly for noise and novel items together; "published" is the paper's
            delta/2 + delta/2. With limit=1, a classic weighting and one round, "joint" is the optimal mechanism for
            users who hold one item each. "set-only" (docs/privacy/set-only.md) counts only what a set gives away, so
            it adds no noise to weights and costs less; for the weightings count and weighted.
        cap: most weight a user gives one item, from 0.01 to 1, under set-only accounting; None is 0.5.
        pool: adaptive rounds draw a user's items anew from a pool of at most so many, which is drawn once; None is the
            limit, but at least 60.
        at_least: an item of fewer users than this is released with probability at most `beta`, whatever else is in the
            data; None promises nothing beyond the budget. The plan says how many more users items need then. Where
            users hold many items, their shares are small, so items need more: by how much says `plan.holders`.
        beta: of `at_least`; None is one in a million. Optimal selection (see `accounting`) keeps it at 0.

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

    limit: int | None = None
    weighting: Literal["adaptive", "count", "weighted", "l1-descent", "l2-descent"] | Weighting = ADAPTIVE
    noise: Literal["gaussian", "laplace"] = "gaussian"
    alpha: float | None = None
    rounds: int = 1
    accounting: Literal["joint", "published", "set-only"] = "joint"
    cap: float | None = None
    pool: int | None = None
    at_least: int | None = None
    beta: float | None = None

    def __post_init__(self) -> None:
        """Check every field."""
        if self.limit is not None:
            check_whole(
                "limit", self.limit, LARGEST_LIMIT, "the most items one user may contribute; 100 is a common start"
            )
        check_whole("rounds", self.rounds, MOST_ROUNDS, "how often the remaining items are tried; 1 or 3 are usual")
        if self.alpha is not None:
            check_within("alpha", self.alpha, 0.0, 1000.0, "how far above the threshold weight rises; leave it out")
        self._check_promise()
        check_choice("noise", self.noise, ("gaussian", "laplace"))
        check_choice("accounting", self.accounting, ("joint", "published", "set-only"))
        if self.adaptive:
            self._check_adaptive()
        else:
            self._check_classic()

    @property
    def adaptive(self) -> bool:
        """Whether adaptive rounds run, and not a classic weighting."""
        return isinstance(self.weighting, str) and self.weighting == ADAPTIVE

    @property
    def limit_used(self) -> int:
        """The most items of one user in a round: the limit, or the usual one."""
        return USUAL_LIMIT if self.limit is None else self.limit

    @property
    def alpha_used(self) -> float:
        """How far above the threshold weight rises in a classic mechanism: alpha, or the usual one."""
        return USUAL_ALPHA[self.noise] if self.alpha is None else self.alpha

    @property
    def promise(self) -> AtLeast | None:
        """What is promised about items of few users, None where nothing is."""
        if self.at_least is None:
            return None
        return AtLeast(self.at_least, USUAL_BETA if self.beta is None else self.beta)

    @property
    def one_item_each(self) -> bool:
        """Whether the optimal mechanism for users of one item each runs."""
        # One item a user, one round: weights are numbers of users, for which the best rule is known
        # (docs/privacy/optimal-selection.md).
        one = self.limit_used == 1 and self.rounds == 1 and self.accounting == "joint"
        return one and isinstance(self.weighting, str) and not self.adaptive

    def _check_promise(self) -> None:
        """Refuse a number of users or a probability out of range."""
        if self.at_least is not None:
            check_whole("at_least", self.at_least, MOST_FEW, "how many users an item needs at least; 50 is an example")
        elif self.beta is not None:
            raise InputError("`beta` goes with `at_least`: leave it out, or say how many users an item needs at least.")
        if self.beta is not None:
            check_within("beta", self.beta, LEAST_BETA, 0.5, "how likely an item of fewer is released; 1e-6 is usual")

    def _check_adaptive(self) -> None:
        """Refuse what adaptive rounds replace or have no proof for."""
        if self.noise != "gaussian":
            raise UnsoundError(
                f"adaptive rounds are proved for Gaussian noise, got {self.noise} noise: leave `noise` out, or name a "
                'weighting, such as weighting="l1-descent".'
            )
        if self.rounds != 1 or self.accounting != "joint" or self.alpha is not None or self.cap is not None:
            raise InputError(
                "adaptive rounds bring their own rounds, accounting, alpha and cap: leave these out, or name a "
                f'weighting, such as weighting="weighted"; got rounds {self.rounds}, accounting {self.accounting}, '
                f"alpha {self.alpha}, cap {self.cap}."
            )
        if self.pool is not None:
            check_whole("pool", self.pool, LARGEST_LIMIT, "the items of one user that rounds draw from; leave it out")
            if self.limit is not None and self.pool < self.limit:
                raise InputError(
                    f"`pool` must be at least the limit of {self.limit:,}, got {self.pool:,}: leave it out."
                )

    def _check_classic(self) -> None:
        """Refuse what a weighting has no proof for."""
        if self.pool is not None:
            raise InputError("`pool` belongs to adaptive rounds: leave it out, or leave `weighting` out.")
        sound_rule(self.weighting, self.noise)
        if self.accounting == "set-only" or self.cap is not None:
            self._check_set_only()

    def _check_set_only(self) -> None:
        """Refuse what set-only accounting has no proof for."""
        if self.accounting != "set-only":
            raise InputError(f'`cap` goes with accounting="set-only", got accounting {self.accounting}: leave it out.')
        if self.cap is not None:
            check_within("cap", self.cap, 0.01, 1.0, "the most weight a user gives one item; 0.5 is usual")
        if self.at_least is not None:
            raise UnsoundError(
                "`at_least` raises thresholds, and set-only accounting has none: its tables are proved from the least "
                'weight on. Leave out one of the two, or use accounting="joint".'
            )
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
        check_whole("limit", self.limit_used, MOST_SET_ONLY, "the most items one user may contribute under set-only")

    def plan(self, budget: Budget, data_sets: "Sequence[str]" = ()) -> "UnionPlan | AdaptivePlan":
        """Fill in noise and threshold for a budget: no data needed.

        Args:
            budget: what may be spent.
            data_sets: where several share the budget, their names; see `release`.

        Returns:
            The plan: the numbers that will run, what they guarantee, and how many users an item needs.

        Raises:
            BudgetError: where no threshold can meet the budget.
        """
        check_budget(budget)
        if budget.delta <= 0.0:
            raise BudgetError(
                "set union needs a delta above 0, got 0: without it nothing unknown beforehand may be released. Choose "
                "it far below 1 / (number of users you expect), such as 1e-7; it must not be computed from the data."
            )
        if self.adaptive:
            from voxpop.union.adaptive.planning import plan_adaptive

            return plan_adaptive(self, budget, data_sets=checked_names(data_sets))
        if data_sets:
            raise InputError(
                "several data sets share a budget under adaptive rounds alone: leave `weighting` out, or release from "
                "each with a budget of its own."
            )
        from voxpop.union.planning import plan_union

        return plan_union(self, budget)

    @overload
    def release(
        self, corpus: "Engine", budget: Budget, seed: int | None = None, ledger: "Account | None" = None
    ) -> "Release": ...

    @overload
    def release(
        self, corpus: "Mapping[str, Engine]", budget: Budget, seed: int | None = None, ledger: "Account | None" = None
    ) -> "dict[str, Release]": ...

    def release(
        self,
        corpus: "Engine | Mapping[str, Engine]",
        budget: Budget,
        seed: int | None = None,
        ledger: "Account | None" = None,
    ) -> "Release | dict[str, Release]":
        """Plan for the budget and release from the corpus, or from several that share the budget.

        Several data sets about the same people, such as words and tags, are given as a dictionary. One guarantee then
        covers all that one user holds in any of them; the noise in each grows with the root of their number.

        Args:
            corpus: what `voxpop.read` or `voxpop.load_corpus` returned, or a dictionary of such by name.
            budget: what may be spent.
            seed: makes the release reproducible and NOT private, and marks it so; leave it out for real data.
            ledger: an account that is charged first; see `voxpop.Ledger`.

        Returns:
            The items, in order of their bytes, with plan and guarantee; of several data sets a dictionary of releases,
            each of which states what all of them guarantee together.
        """
        from voxpop.privacy.charging import run

        names = tuple(corpus) if isinstance(corpus, Mapping) else ()
        if isinstance(corpus, Mapping) and not names:
            raise InputError("a dictionary of data sets must not be empty: give a corpus for each name.")
        planned: Any = self.plan(budget, names)
        result: Release | dict[str, Release] = run(planned, corpus, seed, ledger)
        return result

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""
        if self.adaptive:
            return {
                "mechanism": "set union",
                "weighting": ADAPTIVE,
                "noise": self.noise,
                "accounting": self.accounting,
                **self._promised(),
            }
        return {
            "mechanism": "set union",
            "limit": self.limit_used,
            "weighting": self.weighting if isinstance(self.weighting, str) else type(self.weighting).__name__,
            "noise": self.noise,
            "alpha": self.alpha_used,
            "rounds": self.rounds,
            "accounting": self.accounting,
            **({} if self.cap is None else {"cap": self.cap}),
            **self._promised(),
        }

    def _promised(self) -> dict[str, Any]:
        promise = self.promise
        return {} if promise is None else {"at_least": promise.users, "beta": promise.beta}


def checked_names(data_sets: Sequence[str]) -> tuple[str, ...]:
    """Return the names of data sets that share a budget.

    Raises:
        InputError: where one is no string, is empty or comes twice.
    """
    names = tuple(data_sets) if not isinstance(data_sets, str) else ("",)
    if not all(isinstance(name, str) and name.strip() for name in names) or len(set(names)) < len(names):
        raise InputError("`data_sets` are different names, each a string that is not empty, such as words and tags.")
    return names
