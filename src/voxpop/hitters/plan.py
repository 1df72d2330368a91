"""Heavy hitters with sampling filled in: what will run, what it guarantees, and how many holders a word needs."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

from voxpop.errors import BudgetError
from voxpop.hitters.rules import Rules
from voxpop.hitters.trust import SEEN, TRUST, Aggregation
from voxpop.privacy.budget import Budget, budget_numbers
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.planned import Planned
from voxpop.privacy.trie.accountant import group_delta
from voxpop.privacy.trie.discovery import discovery_rate, holders_needed

if TYPE_CHECKING:
    from voxpop.corpus.engine import Engine
    from voxpop.hitters.heavy_hitters import HeavyHitters
    from voxpop.release import Release

PROBABILITIES = (0.5, 0.9, 0.99)
_CLAIM = (
    "batches of fixed size have no proof; the TrieHH paper claims ({epsilon:g}, {delta:g})-DP for them, with a user "
    "replaced by an empty one, and proves one direction only"
)


@final
@dataclass(frozen=True, slots=True, repr=False)
class HittersPlan(Planned["HeavyHitters"]):
    """What `HeavyHitters.plan` returns: every number that will run, before any data is read.

    Attributes:
        rules: what client and server follow.
        delta: what the rules cost at the budget's epsilon, at most the budget's delta; 1 where nothing is proved.
        aggregation: of a federation, how nodes' sums are added up, "open" or "secure"; what its server then sees
            stands in the guarantee, under which trust it stands in the plan's `trust` (`trust.py`).

    Example:
        >>> import voxpop as vp
        >>> plan = vp.HeavyHitters(max_length=10).plan(vp.Budget(epsilon=1, delta=1e-8))
        >>> plan.rounds, plan.theta > 10, plan.holders_90 < 70
        (4, True, True)
    """

    rules: Rules
    delta: float = field(kw_only=True)
    aggregation: Aggregation = field(default="", kw_only=True)

    def _guaranteed(self) -> Guarantee:
        epsilon, delta, seen = self.budget.epsilon, self.budget.delta, SEEN[self.aggregation]
        if self.mechanism.sampling == "fixed":
            return Guarantee(
                epsilon, 1.0, private=False, unproved=_CLAIM.format(epsilon=epsilon, delta=delta), seen=seen
            )
        # What a server sees before the threshold is no part of the claim, so it is said beside it.
        return Guarantee(epsilon, delta, seen=seen)

    def budget_of_users(self, users: int) -> Budget:
        """Return what holds for a person who counts as several users, such as one whose words are on several nodes.

        Args:
            users: how many; each may hold other words.

        Returns:
            Epsilon and delta: epsilon as often as there are users, and delta by the exact accountant.

        Raises:
            BudgetError: where nothing is left of the guarantee: batches of fixed size, or a delta of 1.

        Example:
            >>> import voxpop as vp
            >>> plan = vp.HeavyHitters(max_length=10).plan(vp.Budget(epsilon=1, delta=1e-8))
            >>> plan.budget_of_users(2).epsilon, plan.budget_of_users(2).delta < 4e-8
            (2.0, True)
        """
        # n users at once are n steps between neighbours: n epsilon, and delta by the chain of `group_delta`.
        epsilon, rules = self.budget.epsilon * users, self.rules
        proved = self.mechanism.sampling != "fixed"
        delta = group_delta(epsilon, rules.ballot, rules.rounds, rules.words, users) if proved else 1.0
        if delta >= 1.0:
            raise BudgetError(f"nothing is guaranteed to a person who counts as {users} users.")
        return Budget(epsilon, delta)

    @property
    def sampling_rate(self) -> float:
        """The probability that a user is asked in a round; of a fixed batch, its share of the users."""
        return self.rules.rate

    @property
    def theta(self) -> int:
        """Votes that a prefix needs to grow."""
        return self.rules.theta

    @property
    def rounds(self) -> int:
        """Most rounds."""
        return self.rules.rounds

    @property
    def holders_90(self) -> int:
        """How many users must vote for a word for it to be found with probability 0.9, in the worst case."""
        return self.holders(0.9)

    def holders(self, probability: float) -> int:
        """Return how many users must vote for a word whenever they are asked, for it to be found this likely.

        The worst case: a word of the greatest length that shares no prefix with others. A user who holds several words
        votes for this one only sometimes.

        Args:
            probability: of discovery, strictly between 0 and 1.

        Raises:
            InputError: where it is out of range.
        """
        # P(X_1 + ... + X_W >= theta)^L for a word that takes every round (TrieHH, Proposition 1).
        return holders_needed(probability, self.rules.ballot, self.rules.rounds)

    def discovery(self, holders: int) -> float:
        """Return the worst-case probability that a word of so many holders is found."""
        return discovery_rate(holders, self.rules.ballot, self.rules.rounds)

    def release(self, corpus: "Engine", seed: int | None = None) -> "Release":
        """Run the plan on all users of a corpus; see `HeavyHitters.release`."""
        from voxpop.hitters.releasing import release_hitters

        return release_hitters(self, corpus, seed)

    def to_dict(self) -> dict[str, Any]:
        """Return every public number, ready for JSON."""
        return {
            **self.mechanism.to_dict(),
            **budget_numbers(self.budget, self.delta),
            "unit": self.rules.unit,
            "first_unit": self.rules.size(1),
            "sampling_rate": self.sampling_rate,
            "again": self.rules.again,
            "further": self.rules.further,
            "theta": self.theta,
            "rounds": self.rounds,
            "holders_90": self.holders_90,
            "holders_needed": [
                {"probability": probability, "holders": self.holders(probability)} for probability in PROBABILITIES
            ],
            **({"trust": TRUST[self.aggregation]} if self.aggregation else {}),
        }

    def __str__(self) -> str:
        """Return the plan as a person reads it."""
        from voxpop.hitters.describe import describe

        try:
            two: Budget | None = self.budget_of_users(2)
        except BudgetError:
            two = None  # the line is left out where nothing holds
        return describe(self.to_dict(), str(self.guarantee), self.costs_of_units(), self.central_holders, two)

    def costs_of_units(self) -> list[dict[str, Any]]:
        """Return what each unit would cost within the same budget: rounds, holders, and sums about one prefix."""
        from voxpop.hitters.units import costs_of_units

        return costs_of_units(self.mechanism, self.budget)

    @property
    def central_holders(self) -> int:
        """How many holders the optimal selection needs for the same probability 0.9, where one party sees all words."""
        from voxpop.hitters.units import central_holders

        return central_holders(self.budget)
