"""Set union, which releases the items that many users share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast, final

from voxpop.errors import InputError
from voxpop.mechanisms.set_union.constants import MOST_MIN_USERS, MOST_NIGHTS
from voxpop.privacy.budget import LARGEST_LIMIT, Budget, check_budget, check_choice, check_whole
from voxpop.privacy.planned import Mechanism

if TYPE_CHECKING:
    from os import PathLike

    from voxpop.engine.data import Corpus
    from voxpop.ledger.ledger import LedgerAccount
    from voxpop.mechanisms.rounds.users_needed import MinUsersBound
    from voxpop.mechanisms.series.plan import SeriesPlan, Spending
    from voxpop.mechanisms.series.series import Series
    from voxpop.mechanisms.set_union.plan import EachPlan, OnePlan
    from voxpop.privacy.planned import Account
    from voxpop.release.known import Known, KnownItems
    from voxpop.release.release import Release

ADAPTIVE: Final = "adaptive"


@final
@dataclass(frozen=True, slots=True)
class Items(Mechanism["Corpus", "Release"]):
    """Release the items that many users share, such as words, keys or products.

    Each user divides one unit of weight among at most `max_items_per_user` of their distinct items. The mechanism adds
    noise to the weight of each item and releases the items above a threshold, without their weights. The release is
    (epsilon, delta)-differentially private for adding or removing one user with all their data.

    The mechanism runs in adaptive rounds. Each round releases items with a high cumulative score and drops items with a
    low cumulative score, so users spend their weight on the remaining items (docs/privacy/adaptive.md). If every user
    has one item, `vp.profile(table, user=..., joint=[...])` releases more items in a single release, with counts.
    Published algorithms with one round are in `vp.papers`. They release more items in some cases
    (docs/design/0027-weightings.md).

    Attributes:
        max_items_per_user: The maximum number of items per user in a round (the paper's Delta_0). By default, the
            release chooses the limit privately, from noisy counts of users by their number of items. A limit that you
            pass must not depend on the data.
        min_users: The number of users below which an item is released with probability at most 1e-6, for all possible
            data. By default, the release makes no such promise. The method `users_needed` of a plan returns the number
            of users that an item needs. If the minimum is several times this number, `count` of `vp.papers.SetUnion`
            releases more items (docs/design/0027-weightings.md).
        known: Public items, such as the words of a dictionary, a catalogue, or an earlier release. Pass a list of
            items, a table, a release, or the path of a file or of a saved release. Listed items need fewer users than
            unknown items. The expected share of released items that no user has is at most 1 %. The list must not be
            made from the data (docs/guides/known.md).

    Raises:
        InputError: A field is out of range.

    Example:
        >>> import polars as pl
        >>> import voxpop as vp
        >>> table = pl.DataFrame({"who": range(1000), "what": ["tea", "milk"] * 500})
        >>> corpus = vp.read(table, user="who", items="what")
        >>> words = vp.Items().release(corpus, vp.Budget(epsilon=1, delta=1e-8))
        >>> words.to_list()
        ['milk', 'tea']
        >>> print(words.guarantee)
        (1, 1e-08)-DP, one user added or removed
    """

    max_items_per_user: int | None = None
    min_users: int | None = None
    known: "Known | None" = None

    def __post_init__(self) -> None:
        """Check every field."""
        if self.max_items_per_user is not None:
            check_whole(
                "max_items_per_user",
                self.max_items_per_user,
                LARGEST_LIMIT,
                "the maximum number of items that one user may contribute; 100 is a common start",
            )
        check_min_users(self.min_users)
        if self.known is not None:
            from voxpop.release.known import KnownItems

            object.__setattr__(self, "known", KnownItems.of(self.known))

    @property
    def known_items(self) -> "KnownItems | None":
        """The public list, or None if there is no list."""
        return cast("KnownItems | None", self.known)

    @property
    def promise(self) -> "MinUsersBound | None":
        """The promise about items with few users, or None if there is no promise."""
        from voxpop.mechanisms.rounds.users_needed import promise_of

        return promise_of(self.min_users)

    def plan(self, budget: Budget) -> "OnePlan":
        """Compute the noise and the thresholds for a budget, without data.

        Args:
            budget: The budget of the release.

        Returns:
            The plan, with the numbers that will be used, the guarantee, and the number of users that an item needs.

        Raises:
            BudgetError: No threshold can satisfy the budget.
        """
        from voxpop.mechanisms.set_union.plan import plan_adaptive

        check_budget(budget)
        return plan_adaptive(self, budget)

    def plan_each(self, data_sets: Sequence[str], budget: Budget) -> "EachPlan":
        """Compute the noise and the thresholds for several data sets that share a budget; see `release_each`.

        Args:
            data_sets: The names of the data sets.
            budget: The budget of all data sets together.

        Returns:
            The plan. Its numbers apply to each data set, and its guarantee covers all data sets.

        Raises:
            InputError: A name is missing or duplicated.
            BudgetError: No threshold can satisfy the budget.
        """
        from voxpop.mechanisms.set_union.plan import plan_adaptive

        check_budget(budget)
        return plan_adaptive(self, budget, _checked_names(data_sets))

    def release_each(
        self,
        data_sets: "Mapping[str, Corpus]",
        budget: Budget,
        *,
        ledger: "Account | None" = None,
        seed: int | None = None,
    ) -> "dict[str, Release]":
        """Release items from several data sets about the same people, such as words and tags, under one budget.

        One guarantee covers all data of a user in all data sets. The noise in each data set increases with the square
        root of the number of data sets.

        Args:
            data_sets: The corpus of each data set, by name.
            budget: The budget of all data sets together.
            ledger: An account that is charged first; see `voxpop.Ledger`.
            seed: A seed, which makes the releases reproducible and NOT private. The releases are marked as not private.
                Omit the seed for real data.

        Returns:
            The release of each data set, by name. The guarantee of each release covers all releases together.

        Raises:
            InputError: There is no data set.
        """
        return self.plan_each(tuple(data_sets), budget).release(data_sets, ledger=ledger, seed=seed)

    def plan_series(self, budget: Budget, nights: int, *, spending: "Spending" = "growing") -> "SeriesPlan":
        """Compute the numbers of a series, without data; see `series`.

        Raises:
            InputError: `min_users` was given, or the number of nights is out of range.
        """
        from voxpop.mechanisms.series.plan import SeriesSettings, plan_series

        check_budget(budget)
        check_whole("nights", nights, MOST_NIGHTS, "the number of nights that share the budget")
        check_choice("spending", spending, ("growing", "equal"))
        if self.min_users is not None:
            raise InputError("a series has no `min_users`. Remove it, or release once with `release`.")
        return plan_series(SeriesSettings(nights, spending, self.max_items_per_user, self.known_items), budget)

    def series(
        self,
        folder: "str | PathLike[str]",
        budget: Budget | None = None,
        *,
        nights: int | None = None,
        spending: "Spending" = "growing",
        ledger: "LedgerAccount | None" = None,
        seed: int | None = None,
        key: bytes | None = None,
    ) -> "Series":
        """Start a series of releases, one every night, under one budget, or open a series that was started earlier.

        With a budget, the series is charged once and its private state is written to the folder. Without a budget, the
        series in the folder is opened. In this case, only `key` may be passed in addition. `max_items_per_user` is the
        maximum number of items per user over all nights, 1,000 by default (docs/guides/every-night.md). The list
        `known` is stored in the state when the series is started.

        Args:
            folder: A new folder, which only its owner can read. The folder contains private data.
            budget: The budget of all nights together.
            nights: The number of nights, which cannot be changed later.
            spending: "growing" spends more on later nights and releases more items in total. "equal" releases more
                items on early nights.
            ledger: An account that is charged first. The account also records the last night, so an older state is
                rejected.
            seed: A seed, which makes the series reproducible and NOT private. The series is marked as not private. Omit
                the seed for real data.
            key: The 32 bytes that encrypt the state. Pass the same key whenever the series is opened.

        Raises:
            ReleaseError: The new folder already contains a series, or the folder to open contains no series.
            BudgetError: The ledger has too little budget left. Nothing was charged.
        """
        from voxpop.mechanisms.series.series import Series

        if budget is None:
            if nights is not None or ledger is not None or seed is not None:
                raise InputError(
                    "a series is started with a budget. Give a budget, or give only the folder of a started series."
                )
            return Series(folder, key)
        if nights is None:
            raise InputError(
                "`nights` must be given with a budget. It is the number of nights that share it, such as nights=365."
            )
        return Series.start(folder, self.plan_series(budget, nights, spending=spending), ledger, seed, key)

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""
        known = {} if self.known_items is None else {"known": self.known_items.to_dict()}
        return {"mechanism": "items", "weighting": ADAPTIVE, "noise": "gaussian", **known}


def check_min_users(users: int | None) -> None:
    """Check the minimum number of users of an item, if there is one."""
    if users is not None:
        check_whole("min_users", users, MOST_MIN_USERS, "the minimum number of users of an item; try 50")


def _checked_names(data_sets: Sequence[str]) -> tuple[str, ...]:
    names = tuple(data_sets) if not isinstance(data_sets, str) else ("",)
    if not names or not all(isinstance(name, str) and name.strip() for name in names) or len(set(names)) < len(names):
        raise InputError(
            "the names of `data_sets` must be different strings that are not empty, such as words and tags."
        )
    return names
