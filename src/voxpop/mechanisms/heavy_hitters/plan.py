"""The plan of heavy hitters, with the sampling rate, the threshold, the guarantee, and the users that a word needs."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

from voxpop.errors import BudgetError
from voxpop.mechanisms.heavy_hitters.exclude import NO_WORDS, PublicList
from voxpop.mechanisms.heavy_hitters.protocol import Rules
from voxpop.mechanisms.heavy_hitters.releasing import release_hitters
from voxpop.privacy.budget import Budget, budget_numbers, check_whole
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.passes import VotesProof
from voxpop.privacy.planned import Configured, DiscoveryPlan, certified
from voxpop.privacy.trie.accountant import group_delta, trie_delta
from voxpop.privacy.trie.ballot import voters_needed

if TYPE_CHECKING:
    from voxpop.engine.data import Corpus
    from voxpop.release.release import Release


Aggregation = Literal["", "open", "secure"]
"""The aggregation of votes. With "open", the server saw the sums of each node. With "secure", it saw only their total.
The empty string means that there was no server.
"""

SERVER_VIEW: dict[Aggregation, str] = {
    "": "",
    "open": "In each round the server saw the sums of votes of every node, before the threshold.",
    "secure": "In each round the server saw the total of all nodes' sums of votes, before the threshold, but "
    "not the sums of any single node.",
}
"""The view of the server, which the guarantee does not cover."""
_TRUST = (
    "The guarantee protects against readers of the release, not against the server. It requires that the server "
    "applies the threshold and keeps the {kept} private, that nodes draw votes by the protocol, add no votes and "
    "disclose nothing, and that each user is on one node only."
)
TRUST: dict[Aggregation, str] = {
    "": "",
    "open": _TRUST.format(kept="sums"),
    "secure": _TRUST.format(kept="total") + " The sums of single nodes are hidden only if the server forwards the "
    "keys of the nodes unchanged, and fewer than a third of the nodes cooperate with it.",
}
"""The assumptions about the server and the nodes. The plan of a run includes them."""


_VOTER_PROBABILITIES = (0.5, 0.9, 0.99)
_LETTERS = 26
_MOST_SYMBOLS = 1 << 20


@final
@dataclass(frozen=True, slots=True, repr=False)
class HittersPlan(DiscoveryPlan[Configured, "Corpus", "Release"]):
    """A plan of heavy hitters, which `HeavyHitters.plan` computes before any data is read.

    Attributes:
        rules: The public rules that the clients and the server follow.
        aggregation: The aggregation in a federation, "open" or "secure". In a federation, the guarantee describes the
            sums that the server sees, and the plan contains the assumptions about the server and the nodes.

    Example:
        >>> import voxpop as vp
        >>> plan = vp.HeavyHitters(max_length=10).plan(vp.Budget(epsilon=1, delta=1e-8))
        >>> plan.rounds, plan.theta > 10, plan.users_needed(0.9) < 70
        (4, True, True)
    """

    _recorded: ClassVar = frozenset({"aggregation"})

    rules: Rules
    aggregation: Aggregation = field(default="", kw_only=True)

    def _guaranteed(self) -> Guarantee:
        # The guarantee does not cover the server's view before the threshold, so this view is described separately.
        return Guarantee(self.budget.epsilon, self.budget.delta, server_view=SERVER_VIEW[self.aggregation])

    def _proof(self) -> VotesProof:
        ballot = self.rules.ballot
        return VotesProof(ballot.rate, ballot.again, ballot.further, ballot.theta, self.rules.rounds, self.rules.words)

    def budget_of_users(self, users: int) -> Budget:
        """Return the guarantee for a person who counts as several users, such as a person with data on several nodes.

        Args:
            users: The number of users that the person counts as. These users can have different words.

        Returns:
            A budget with epsilon multiplied by the number of users, and with the delta that follows from the chain of
            neighbours between the two data sets.

        Raises:
            BudgetError: The delta would be 1 or more, so there would be no guarantee.

        Example:
            >>> import voxpop as vp
            >>> plan = vp.HeavyHitters(max_length=10).plan(vp.Budget(epsilon=1, delta=1e-8))
            >>> plan.budget_of_users(2).epsilon, plan.budget_of_users(2).delta < 4e-8
            (2.0, True)
        """
        delta = group_delta(self.budget.epsilon, self.delta_spent, users)
        if delta >= 1.0:
            raise BudgetError(f"there is no guarantee for a person who counts as {users} users. Give a smaller number.")
        return Budget(self.budget.epsilon * users, delta)

    @property
    def sampling_rate(self) -> float:
        """The probability that a user is sampled in a round."""
        return self.rules.ballot.rate

    @property
    def theta(self) -> int:
        """The threshold, which is the minimum number of votes that a prefix needs to grow."""
        return self.rules.ballot.theta

    @property
    def rounds(self) -> int:
        """The maximum number of rounds."""
        return self.rules.rounds

    @property
    def exclude(self) -> PublicList:
        """The public words that no user votes for."""
        listed: PublicList = getattr(self.mechanism, "excluded", NO_WORDS)
        return listed

    def sums(self, symbols: int = _LETTERS) -> tuple[int, int]:
        """Return the number of sums that secure aggregation computes per round.

        Args:
            symbols: The number of symbols in the public alphabet.

        Returns:
            The number of sums in the first round, and the number of sums in a later round for each prefix that can
            grow.

        Example:
            >>> import voxpop as vp
            >>> vp.HeavyHitters(max_length=10).plan(vp.Budget(epsilon=1, delta=1e-8)).sums()
            (475254, 703)
        """
        check_whole("symbols", symbols, _MOST_SYMBOLS, "the number of symbols of the public alphabet")
        first = min(self.rules.size(1), self.rules.longest)
        later = min(self.rules.unit, self.rules.longest - first)
        return (
            sum(symbols**size for size in range(1, first + 1)),
            sum(symbols**size for size in range(later + 1)) if self.rounds > 1 else 0,
        )

    def _users_needed(self, probability: float, length: int, per_user: int) -> int:
        # The worst case is a word of the maximum length that shares no prefix with other words and needs every round.
        # Such a word is found with probability P(X_1 + ... + X_W >= theta)^L (TrieHH, Proposition 1).
        return voters_needed(probability, self.rules.ballot, self.rules.rounds)

    def _run(self, data: "Corpus", seed: int | None) -> "Release":
        return release_hitters(self, data, seed)

    def to_dict(self) -> dict[str, Any]:
        """Return every public number, ready for JSON."""
        return {
            **self.mechanism.to_dict(),
            **budget_numbers(self.budget, self.delta_spent),
            "passes": [
                {"pass": "votes", **self._proof().to_dict(), "first_unit": self.rules.size(1), "unit": self.rules.unit}
            ],
            "users_needed": [
                {"probability": probability, "users": self.users_needed(probability)}
                for probability in _VOTER_PROBABILITIES
            ],
            **({"trust": TRUST[self.aggregation]} if self.aggregation else {}),
        }


def check_delta(budget: Budget) -> None:
    """Raise an error if delta is 0."""
    if budget.delta <= 0.0:
        raise BudgetError(
            "Heavy hitters need a delta above 0, got 0. Without noise, a released word can always reveal that one more "
            "user has it. Choose a delta far below 1 / (expected number of users), such as 1e-8, without looking at "
            "the data."
        )


def certified_plan(mechanism: Configured, rules: Rules, budget: Budget) -> HittersPlan:
    """Check proposed rules against the budget, as a node does before it votes, and return the plan.

    Args:
        mechanism: The mechanism of the run.
        rules: The rules, with the ballot that the server proposes.
        budget: The budget of the run.

    Raises:
        BudgetError: The ballot exceeds the budget.
    """
    # The exact accountant computes delta from the received numbers, so the node does not rely on any claim of the
    # server.
    delta = trie_delta(budget.epsilon, rules.ballot, rules.rounds)
    if delta > budget.delta:
        raise BudgetError(
            f"The votes requested by the server cost a delta of {delta:.3g} at epsilon {budget.epsilon:g}, more than "
            f"{budget.delta:g}, so this node sends no votes. Start a run whose server and nodes have the same budget."
        )
    return certified(HittersPlan(mechanism, budget, rules))
