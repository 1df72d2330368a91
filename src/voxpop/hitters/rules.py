"""The public numbers that client and server both follow."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final

from voxpop.privacy.trie.ballot import Ballot

Words = Literal["one", "many"]
Sampling = Literal["bernoulli", "fixed"]
WHOLE = 1 << 128


@final
@dataclass(frozen=True, slots=True)
class Rules:
    """What every party knows before the first round.

    Attributes:
        rate: the probability that a user is sampled in a round; of a fixed batch, its share of the users.
        theta: votes that a prefix needs to grow on the trie; also the most votes of one user.
        rounds: most rounds.
        unit: symbols by which a prefix grows in a round.
        max_length: most symbols of a word, its end mark counted.
        words: "one" for a user's most frequent word in every round, "many" for any of its words, drawn in each round.
        sampling: "bernoulli" or "fixed".
        again: the probability that a user who is asked votes a second time.
        further: the probability of one more vote after the second and every later one.
        first: symbols of the first round, where that is not `unit`; 0 where it is.
    """

    rate: float
    theta: int
    rounds: int
    unit: int = 1
    max_length: int = 10
    words: Words = "one"
    sampling: Sampling = "bernoulli"
    again: float = 0.0
    further: float = 0.0
    first: int = 0

    @property
    def longest(self) -> int:
        """Most symbols of a word, its end mark left out."""
        return self.max_length - 1

    @property
    def ballot(self) -> Ballot:
        """How users vote, as accounting knows it."""
        return Ballot(self.rate, self.theta, self.again, self.further)

    @property
    def bars(self) -> tuple[int, ...]:
        """Below the first of these 128 uniform bits mean at least one vote, below the second at least two, and so on.

        Each is exactly its probability's share of all 128 bits.
        """
        # P(X >= x) 2^128, rounded down: nobody votes more often than accounting knows.
        return tuple(int(Fraction(tail) * WHOLE) for tail in self.ballot.tails)

    def size(self, rounds: int) -> int:
        """Return how many symbols so many rounds spell."""
        # first + (rounds - 1) unit; nothing before the first round.
        return (self.first or self.unit) + (rounds - 1) * self.unit if rounds else 0
