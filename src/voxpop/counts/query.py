"""What counts and rankings share: they ask about the grams of a release, with a budget of their own."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

from voxpop.privacy.budget import Budget

if TYPE_CHECKING:
    from voxpop.corpus.engine import Engine
    from voxpop.privacy.charging import Account, Releasing
    from voxpop.release.release import Release

Answer = TypeVar("Answer")


class GramQuery(ABC, Generic[Answer]):
    """A query about the grams of a release, which a corpus answers with noise."""

    __slots__ = ()

    @abstractmethod
    def plan(self, budget: Budget, release: "Release") -> "Releasing[Engine, Answer]":
        """Fill in the noise for a budget and the grams of a release: no private data needed.

        Args:
            budget: what the query may spend, apart from what the release has spent.
            release: whose grams it is about.

        Returns:
            The plan: the noise, and what the answer guarantees.
        """

    def release(
        self,
        corpus: "Engine",
        budget: Budget,
        release: "Release",
        seed: int | None = None,
        ledger: "Account | None" = None,
    ) -> Answer:
        """Plan for the budget, and ask a corpus about the grams of a release.

        Args:
            corpus: what `voxpop.read` or `voxpop.load_corpus` returned, cut as for the release.
            budget: what the query may spend, apart from what the release has spent.
            release: whose grams it is about.
            seed: makes the answer reproducible and NOT private, and marks it so; leave it out for real data.
            ledger: an account that is charged first; see `voxpop.Ledger`.

        Returns:
            The noisy answer: numbers of users from `Counts`, an order from `Top`.
        """
        from voxpop.privacy.charging import run

        return run(self.plan(budget, release), corpus, seed, ledger)
