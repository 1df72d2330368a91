"""Heavy hitters with sampling filled in: what will run, what it guarantees, and how many holders a word needs."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

from voxpop.hitters.rules import Rules
from voxpop.privacy.budget import Budget
from voxpop.privacy.guarantee import Guarantee
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
@dataclass(frozen=True, slots=True)
class HittersPlan:
    """What `HeavyHitters.plan` returns: every number that will run, before any data is read.

    Attributes:
        mechanism: the heavy hitters that were planned.
        budget: what may be spent.
        rules: what client and server follow.
        delta: what the rules cost at the budget's epsilon, at most the budget's delta; 1 where nothing is proved.

    Example:
        >>> import voxpop as vp
        >>> plan = vp.HeavyHitters(max_length=10).plan(vp.Budget(epsilon=1, delta=1e-8))
        >>> plan.sampling_rate < 0.3, plan.theta > 10, plan.holders_90 < 140
        (True, True, True)
    """

    mechanism: "HeavyHitters"
    budget: Budget
    rules: Rules
    delta: float = field(kw_only=True)

    @property
    def guarantee(self) -> Guarantee:
        """What a release of this plan guarantees; for batches of fixed size that is nothing, and it says so."""
        return self.promise(private=True)

    def promise(self, *, private: bool) -> Guarantee:
        """Return the guarantee of a release whose secret nobody knows, or of one made with a seed."""
        epsilon, delta = self.budget.epsilon, self.budget.delta
        if self.mechanism.sampling == "fixed":
            return Guarantee(epsilon, 1.0, private=False, unproved=_CLAIM.format(epsilon=epsilon, delta=delta))
        return Guarantee(epsilon, delta, private=private)

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
        return holders_needed(probability, self.rules.rate, self.rules.theta, self.rules.rounds)

    def discovery(self, holders: int) -> float:
        """Return the worst-case probability that a word of so many holders is found."""
        return discovery_rate(holders, self.rules.rate, self.rules.theta, self.rules.rounds)

    def release(self, corpus: "Engine", seed: int | None = None) -> "Release":
        """Run the plan on all users of a corpus; see `HeavyHitters.release`."""
        from voxpop.hitters.releasing import release_hitters

        return release_hitters(self, corpus, seed)

    def to_dict(self) -> dict[str, Any]:
        """Return every public number, ready for JSON."""
        return {
            **self.mechanism.to_dict(),
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "delta_spent": self.delta,
            "sampling_rate": self.sampling_rate,
            "theta": self.theta,
            "rounds": self.rounds,
            "holders_90": self.holders_90,
            "holders_needed": [
                {"probability": probability, "holders": self.holders(probability)} for probability in PROBABILITIES
            ],
        }

    def __str__(self) -> str:
        """Return the plan as a person reads it."""
        from voxpop.hitters.describe import describe

        return describe(self.to_dict(), str(self.guarantee))
