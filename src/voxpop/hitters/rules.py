"""The public numbers that client and server both follow."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final

Words = Literal["one", "many"]
Sampling = Literal["bernoulli", "fixed"]
WHOLE = 1 << 128


@final
@dataclass(frozen=True, slots=True)
class Rules:
    """What every party knows before the first round.

    Attributes:
        rate: the probability that a user is sampled in a round; of a fixed batch, its share of the users.
        theta: votes that a prefix needs to grow on the trie.
        rounds: most rounds.
        unit: symbols by which a prefix grows in a round.
        max_length: most symbols of a word, its end mark counted.
        words: "one" for a user's most frequent word in every round, "many" for any of its words, drawn in each round.
        sampling: "bernoulli" or "fixed".
    """

    rate: float
    theta: int
    rounds: int
    unit: int = 1
    max_length: int = 10
    words: Words = "one"
    sampling: Sampling = "bernoulli"

    @property
    def longest(self) -> int:
        """Most symbols of a word, its end mark left out."""
        return self.max_length - 1

    @property
    def bar(self) -> int:
        """The number below which 128 uniform bits mean "sampled": exactly `rate` of all of them."""
        return int(Fraction(self.rate) * WHOLE)
