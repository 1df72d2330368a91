"""The public side of the protocol: prefixes, the trie, the rules, and how the trie grows.

The end mark of a word counts as a symbol, which distinguishes a word from its start.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final

from voxpop.privacy.trie.ballot import Ballot

Symbol = Hashable
Word = tuple[Symbol, ...]
"""A word is a tuple of symbols: characters, bytes, or tokens of a phrase."""


@final
@dataclass(frozen=True, slots=True)
class Prefix:
    """The start of a word, or all of it.

    Attributes:
        symbols: the symbols, the end mark left out.
        ended: whether the end mark is in it: then it is a whole word.
    """

    symbols: Word
    ended: bool = False


ROOT = Prefix(())


def prefix_after(word: Word, size: int) -> Prefix:
    """Return the first symbols of a word, the end mark counted.

    Args:
        word: not empty.
        size: number of symbols; see `Rules.size`.

    Example:
        >>> prefix_after(tuple("sun"), 2)
        Prefix(symbols=('s', 'u'), ended=False)
        >>> prefix_after(tuple("sun"), 4)
        Prefix(symbols=('s', 'u', 'n'), ended=True)
    """
    # The end mark is the symbol behind the last one.
    return Prefix(word[:size], ended=size > len(word))


@final
@dataclass(frozen=True, slots=True)
class Trie:
    """Prefixes that got enough votes, by the round in which they grew.

    Attributes:
        levels: the prefixes of each round so far; before the first there is the root.
    """

    levels: tuple[frozenset[Prefix], ...] = ()

    @property
    def rounds(self) -> int:
        """Number of completed rounds."""
        return len(self.levels)

    @property
    def live(self) -> frozenset[Prefix]:
        """The prefixes that may still grow: those of the last round without an end mark."""
        if not self.levels:
            return frozenset((ROOT,))
        # Only of the last round: a prefix that did not grow then never grows again.
        return frozenset(prefix for prefix in self.levels[-1] if not prefix.ended)

    @property
    def words(self) -> frozenset[Word]:
        """The words that grew up to their end mark."""
        return frozenset(prefix.symbols for level in self.levels for prefix in level if prefix.ended)

    def grown(self, prefixes: frozenset[Prefix]) -> "Trie":
        """Return the trie one level higher."""
        return Trie((*self.levels, prefixes))


Words = Literal["one", "many"]
Sampling = Literal["bernoulli", "fixed"]
WHOLE = 1 << 128


@final
@dataclass(frozen=True, slots=True)
class Rules:
    """The public numbers before the first round.

    Attributes:
        rate: the probability that a user is sampled in a round; of a fixed batch, its share of the users.
        theta: votes that a prefix needs to grow on the trie; also the most votes of one user.
        rounds: most rounds.
        unit: symbols by which a prefix grows in a round.
        max_length: most symbols of a word, its end mark counted.
        words: "one" for a user's most frequent word in every round, "many" for any of its words, drawn in each round.
        sampling: "bernoulli" or "fixed".
        again: the probability that a sampled user votes a second time.
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
        """The ballot, as accounting uses it."""
        return Ballot(self.rate, self.theta, self.again, self.further)

    @property
    def bars(self) -> tuple[int, ...]:
        """Below the first of these 128 uniform bits mean at least one vote, below the second at least two, and so on.

        Each is exactly its probability's share of all 128 bits.
        """
        # P(X >= x) 2^128, rounded down: no user votes more often than accounting assumes.
        return tuple(int(Fraction(tail) * WHOLE) for tail in self.ballot.tails)

    def size(self, rounds: int) -> int:
        """Return the number of symbols that this number of rounds spells."""
        # first + (rounds - 1) unit; nothing before the first round.
        return (self.first or self.unit) + (rounds - 1) * self.unit if rounds else 0


def is_valid(vote: object, trie: Trie, rules: Rules) -> bool:
    """Return whether a client could cast a vote after this trie.

    Args:
        vote: any received value.
        trie: state before the round.
        rules: the public rules.
    """
    if not isinstance(vote, Prefix) or not isinstance(vote.symbols, tuple):
        return False
    known, after, size = rules.size(trie.rounds), rules.size(trie.rounds + 1), len(vote.symbols)
    if not 0 < size <= rules.longest or Prefix(vote.symbols[:known]) not in trie.live:
        return False
    # An ended word may be shorter than the round's prefixes, an unfinished one has exactly their length.
    return known <= size < after if vote.ended else size == after


def grow(trie: Trie, votes: Mapping[Prefix, int], rules: Rules) -> Trie:
    """Return the trie with the prefixes that got at least theta votes.

    Args:
        trie: state before the round.
        votes: result of `count_votes`, or the sum of several results.
        rules: the public rules.
    """
    # No noise: words without users get no votes, and a user's own number of votes is secret.
    return trie.grown(frozenset(prefix for prefix, count in votes.items() if count >= rules.theta))


def is_over(trie: Trie, rules: Rules) -> bool:
    """Return whether no prefix can grow or no round is left: a function of public values."""
    # A function of the public trie only, so stopping early reveals nothing more.
    return trie.rounds >= rules.rounds or not trie.live
