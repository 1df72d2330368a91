"""The trie: public, and all that a client is told."""

from dataclasses import dataclass
from typing import final

from voxpop.hitters.prefix import ROOT, Prefix, Word


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
        """How many rounds have gone by."""
        return len(self.levels)

    @property
    def live(self) -> frozenset[Prefix]:
        """The prefixes that may still grow: those of the last round without an end mark."""
        if not self.levels:
            return frozenset((ROOT,))
        # Only of the last round: what did not grow then never grows again.
        return frozenset(prefix for prefix in self.levels[-1] if not prefix.ended)

    @property
    def words(self) -> frozenset[Word]:
        """The words that grew up to their end mark."""
        return frozenset(prefix.symbols for level in self.levels for prefix in level if prefix.ended)

    def grown(self, prefixes: frozenset[Prefix]) -> "Trie":
        """Return the trie one level higher."""
        return Trie((*self.levels, prefixes))
