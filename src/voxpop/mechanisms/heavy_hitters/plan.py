"""The plan of heavy hitters: sampling rate, threshold, guarantee, and the number of users that a word needs."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, final

from voxpop.errors import BudgetError
from voxpop.mechanisms.heavy_hitters.protocol import Rules
from voxpop.privacy.budget import Budget, budget_numbers
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.planned import Configured, DiscoveryPlan, Planned, sealed
from voxpop.privacy.trie.accountant import group_delta, trie_delta
from voxpop.privacy.trie.ballot import Ballot, discovery_rate, holders_needed
from voxpop.privacy.trie.calibrate import best_sampling

if TYPE_CHECKING:
    from voxpop.engine.data import Corpus
    from voxpop.release.release import Release


Aggregation = Literal["", "open", "secure"]
"""How sums of votes were added: the server saw the sums of each node, or only their total; "" without a server."""

SEEN: dict[Aggregation, str] = {
    "": "",
    "open": "In each round the server saw the sums of votes of every node, before the threshold.",
    "secure": "In each round the server saw the total of all nodes' sums of votes, before the threshold, and of no "
    "node its own sums.",
}
"""The part of a run that its guarantee does not cover."""
TRUST: dict[Aggregation, str] = {
    "": "",
    "open": "The guarantee is about what is released, not against the server. It stands if the server applies the "
    "threshold and keeps the sums to itself, if nodes draw votes as they should, add none and tell nobody, and if each "
    "user lives on one node.",
    "secure": "The guarantee is about what is released, not against the server. It stands if the server applies the "
    "threshold and keeps the total to itself, if nodes draw votes as they should, add none and tell nobody, and if "
    "each user lives on one node. That a node's own sums stay hidden needs a server that hands on the nodes' keys "
    "unchanged, and fewer than a third of the nodes working with it.",
}
"""Assumptions about server and nodes, stated in the plan of a run."""


PROBABILITIES = (0.5, 0.9, 0.99)
_CLAIM = (
    "batches of fixed size have no proof; the TrieHH paper claims ({epsilon:g}, {delta:g})-DP for them, with a user "
    "replaced by an empty one, and proves one direction only"
)


class Voting(Configured, Protocol):
    """A mechanism that plans votes: `HeavyHitters`, or the algorithm of the paper."""

    @property
    def alphabet(self) -> str:
        """The kind of symbol."""

    def plan(self, budget: Budget) -> Planned[Any, Any, Any]:
        """Compute sampling rate and threshold."""


class Hitters(Voting, Protocol):
    """The fields of `HeavyHitters` that the plan reads."""

    @property
    def max_length(self) -> int:
        """Most symbols of a word with its end mark."""

    @property
    def rounds(self) -> int:
        """The number of rounds that the longest word takes."""

    @property
    def units(self) -> tuple[int, int]:
        """Symbols of the first round, and of each later round."""

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""


@final
@dataclass(frozen=True, slots=True, repr=False)
class HittersPlan(DiscoveryPlan[Voting, "Corpus", "Release"]):
    """A plan of heavy hitters, made by `HeavyHitters.plan` before any data is read.

    Attributes:
        rules: The public rules of client and server.
        delta: The delta of the rules at the epsilon of the budget; 1 for batches of fixed size.
        aggregation: How the sums of a federation are added, "open" or "secure". The guarantee then states which sums
            the server sees, and the plan states the assumptions.

    Example:
        >>> import voxpop as vp
        >>> plan = vp.HeavyHitters(max_length=10).plan(vp.Budget(epsilon=1, delta=1e-8))
        >>> plan.rounds, plan.theta > 10, plan.users_needed(0.9) < 70
        (4, True, True)
    """

    _recorded: ClassVar = frozenset({"aggregation"})

    rules: Rules
    delta: float = field(kw_only=True)
    aggregation: Aggregation = field(default="", kw_only=True)

    def _guaranteed(self) -> Guarantee:
        epsilon, delta, seen = self.budget.epsilon, self.budget.delta, SEEN[self.aggregation]
        if self.rules.sampling == "fixed":
            return Guarantee(
                epsilon, 1.0, private=False, unproved=_CLAIM.format(epsilon=epsilon, delta=delta), seen=seen
            )
        # The claim excludes the server's view before the threshold, so the plan states that view separately.
        return Guarantee(epsilon, delta, seen=seen)

    def budget_of_users(self, users: int) -> Budget:
        """Return the guarantee of a person who counts as several users, such as one whose words are on several nodes.

        Args:
            users: The number of users; each may hold different words.

        Returns:
            Epsilon multiplied by the number of users, and delta by the exact accountant.

        Raises:
            BudgetError: The guarantee is void: batches of fixed size, or a delta of 1.

        Example:
            >>> import voxpop as vp
            >>> plan = vp.HeavyHitters(max_length=10).plan(vp.Budget(epsilon=1, delta=1e-8))
            >>> plan.budget_of_users(2).epsilon, plan.budget_of_users(2).delta < 4e-8
            (2.0, True)
        """
        # n users at once are n steps between neighbours: n epsilon, and delta by the chain of `group_delta`.
        epsilon, rules = self.budget.epsilon * users, self.rules
        proved = self.rules.sampling != "fixed"
        delta = group_delta(epsilon, rules.ballot, rules.rounds, rules.words, users) if proved else 1.0
        if delta >= 1.0:
            raise BudgetError(f"there is no guarantee for a person who counts as {users} users. Give a smaller number.")
        return Budget(epsilon, delta)

    @property
    def sampling_rate(self) -> float:
        """The probability that a user is sampled in a round, or the share of users in a batch of fixed size."""
        return self.rules.rate

    @property
    def theta(self) -> int:
        """The threshold: the number of votes that a prefix needs."""
        return self.rules.theta

    @property
    def rounds(self) -> int:
        """The maximum number of rounds."""
        return self.rules.rounds

    def _users_needed(self, probability: float, length: int, per_user: int) -> int:
        # The worst case is a word of the greatest length that shares no prefix with others and takes every round:
        # P(X_1 + ... + X_W >= theta)^L (TrieHH, Proposition 1).
        return holders_needed(probability, self.rules.ballot, self.rules.rounds)

    def discovery(self, holders: int) -> float:
        """Return the probability that a word of this number of users is found, in the worst case."""
        return discovery_rate(holders, self.rules.ballot, self.rules.rounds)

    def _run(self, data: "Corpus", seed: int | None) -> "Release":
        from voxpop.mechanisms.heavy_hitters.releasing import release_hitters

        return release_hitters(self, data, seed)

    def to_dict(self) -> dict[str, Any]:
        """Return every public number, ready for JSON."""
        return {
            **self.mechanism.to_dict(),
            **budget_numbers(self.budget, self.delta),
            "words": self.rules.words,
            "sampling": self.rules.sampling,
            "unit": self.rules.unit,
            "first_unit": self.rules.size(1),
            "sampling_rate": self.sampling_rate,
            "again": self.rules.again,
            "further": self.rules.further,
            "theta": self.theta,
            "rounds": self.rounds,
            "holders_90": self.users_needed(0.9),
            "holders_needed": [
                {"probability": probability, "holders": self.users_needed(probability)} for probability in PROBABILITIES
            ],
            **({"trust": TRUST[self.aggregation]} if self.aggregation else {}),
        }

    def __str__(self) -> str:
        """Return the plan as text."""
        from voxpop.mechanisms.heavy_hitters.describe import cost_lines, describe

        try:
            two: Budget | None = self.budget_of_users(2)
        except BudgetError:
            two = None  # the line is left out where nothing holds
        costs = cost_lines(self.costs_of_units(), self.central_holders)
        return describe(self.to_dict(), str(self.guarantee), two, costs)

    def costs_of_units(self) -> list[dict[str, Any]]:
        """Return the cost of each unit within the same budget: rounds, holders, and sums for each prefix."""
        from voxpop.mechanisms.heavy_hitters.describe import costs_of_units

        return costs_of_units(self.mechanism, self.mechanism.alphabet, self.budget)

    @property
    def central_holders(self) -> int:
        """Users needed by optimal selection for the same probability 0.9, if one party sees all words."""
        from voxpop.mechanisms.heavy_hitters.describe import central_holders

        return central_holders(self.budget)


def plan_hitters(hitters: Hitters, budget: Budget) -> HittersPlan:
    """Compute rate and threshold; see `HeavyHitters.plan`."""
    check_delta(budget)
    best = best_sampling(budget, hitters.rounds, "one", "several")
    return sealed(HittersPlan(hitters, budget, _rules(hitters, best.ballot), delta=best.delta), best.delta)


def check_delta(budget: Budget) -> None:
    """Raise an error if delta is 0."""
    if budget.delta <= 0.0:
        raise BudgetError(
            "Heavy hitters need a delta above 0, got 0: without noise, a released word can always reveal that one more "
            "user holds it. Choose a delta far below 1 / (expected number of users), such as 1e-8, without looking at "
            "the data."
        )


def certified_plan(hitters: Hitters, budget: Budget, ballot: Ballot) -> HittersPlan:
    """Return the plan of a proposed ballot after checking it against the budget, as a node does before it votes.

    Args:
        hitters: The mechanism.
        budget: The budget of the run.
        ballot: The ballot that the server proposes.

    Raises:
        BudgetError: The ballot exceeds the budget.
    """
    # The exact accountant computes delta from the received numbers. No claim of the server is trusted.
    delta = trie_delta(budget.epsilon, ballot, hitters.rounds)
    if delta > budget.delta:
        raise BudgetError(
            f"The votes requested by the server cost a delta of {delta:.3g} at epsilon {budget.epsilon:g}, more than "
            f"{budget.delta:g}, so this node sends no votes. Start a run whose server and nodes have the same budget."
        )
    return sealed(HittersPlan(hitters, budget, _rules(hitters, ballot), delta=delta), delta)


def _rules(hitters: Hitters, ballot: Ballot) -> Rules:
    first, unit = hitters.units
    return Rules(
        ballot.rate,
        ballot.theta,
        hitters.rounds,
        unit,
        hitters.max_length,
        again=ballot.again,
        further=ballot.further,
        first=first,
    )
