"""What can be voted for in a round: the children of the living prefixes, in an order that everybody knows.

The trie is public and so is the alphabet. So a node's sums can be a vector whose places mean the same to everybody,
which is what adding them up in secret needs. Where there are many places it is cut into parts, each added up alone.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping

import numpy as np

from voxpop.arrays import Uint32s
from voxpop.errors import InputError
from voxpop.hitters.limits import MOST_PARTS, MOST_SUMS
from voxpop.hitters.prefix import Prefix, Symbol
from voxpop.hitters.rules import Rules
from voxpop.hitters.trie import Trie

LETTERS = "abcdefghijklmnopqrstuvwxyz"

Sums = Uint32s


def public_symbols(alphabet: str, declared: str | None) -> tuple[Symbol, ...]:
    """Return the symbols of an alphabet, in order.

    Args:
        alphabet: see `HeavyHitters`.
        declared: for characters the letters, one after the other, small English ones if None; for tokens the phrases'
            words with spaces between.

    Raises:
        InputError: for tokens without a list, and for a symbol that comes twice.
    """
    if alphabet == "bytes":
        return tuple(range(256))
    if alphabet == "tokens" and not declared:
        raise InputError(
            'secure aggregation of tokens needs a public list of them: set `symbols` to "good morning how are you", '
            "for example to the words of an earlier release."
        )
    symbols = tuple(str(declared).split()) if alphabet == "tokens" else tuple(declared or LETTERS)
    if len(set(symbols)) < len(symbols):
        raise InputError("`symbols` must not repeat a symbol.")
    return tuple(sorted(symbols))


class Domain:
    """The prefixes that a round may grow, each with its place: computed, and never all in memory.

    Attributes:
        parts: how many vectors hold all places, at most `MOST_SUMS` each.
    """

    def __init__(self, trie: Trie, rules: Rules, symbols: tuple[Symbol, ...]):
        """Number the children of every living prefix.

        Args:
            trie: as it is before the round.
            rules: the public rules.
            symbols: the public alphabet.

        Raises:
            InputError: where there would be more than `MOST_PARTS` parts.
        """
        known, after = rules.size(trie.rounds), rules.size(trie.rounds + 1)
        self._known, self._symbols = known, symbols
        self._digit = {symbol: digit for digit, symbol in enumerate(symbols)}
        # An order that all nodes share, or their sums would be added up in different places.
        self._live = sorted(trie.live, key=lambda each: tuple(map(str, each.symbols)))
        self._rank = {prefix.symbols: rank for rank, prefix in enumerate(self._live)}
        # Of each living prefix: words that end within the round, by length, and then prefixes of its full length.
        self._start: dict[tuple[int, bool], int] = {}
        self._each = 0
        # a^(size - known) of each length: all ways in which a prefix of `known` symbols goes on to `size`.
        for size in range(max(known, 1), min(after, rules.longest) + 1):
            self._start[size, size < after] = self._each
            self._each += len(symbols) ** (size - known)
        self.parts = max(1, -(-len(self) // MOST_SUMS))
        if self.parts > MOST_PARTS:
            most = MOST_PARTS * MOST_SUMS
            raise InputError(
                f"round {trie.rounds + 1} has {len(self):,} prefixes that may grow, {self._each:,} for each that is "
                f"alive, and at most {most:,} can be added up in secret: {most // self._each:,} living prefixes. Use a "
                "smaller `unit`, fewer `symbols`, or a smaller epsilon."
            )

    def __len__(self) -> int:
        """Return how many places there are, in all parts."""
        return self._each * len(self._live)

    @property
    def digest(self) -> bytes:
        """What tells whether somebody else's places mean the same: a hash of all that they follow from."""
        told = (self._known, sorted(self._start.items()), self._symbols, [prefix.symbols for prefix in self._live])
        return hashlib.sha256(repr(told).encode()).digest()

    def length(self, part: int) -> int:
        """Return how many places a part has."""
        return min(MOST_SUMS, len(self) - part * MOST_SUMS)

    def place_of(self, prefix: Prefix) -> int | None:
        """Return the place of a prefix, from 0 over all parts; None where it cannot be voted for."""
        start = self._start.get((len(prefix.symbols), prefix.ended))
        rank = self._rank.get(prefix.symbols[: self._known])
        digits = [self._digit.get(symbol) for symbol in prefix.symbols[self._known :]]
        if start is None or rank is None or None in digits:
            return None
        number = 0
        # What goes on after the living prefix is a number whose digits are symbols, the first the most significant.
        for digit in digits:
            number = number * len(self._symbols) + int(digit or 0)
        # (living prefix, kind of continuation, continuation) as one number.
        return rank * self._each + start + number

    def prefix_at(self, place: int) -> Prefix:
        """Return the prefix at a place: the inverse of `place_of`."""
        rank, rest = divmod(place, self._each)
        # The last kind of prefix that starts at or before it: starts rise in this order.
        size, ended = max((kind for kind in self._start if self._start[kind] <= rest), key=self._start.__getitem__)
        number, digits = rest - self._start[size, ended], []
        for _ in range(size - self._known):
            number, digit = divmod(number, len(self._symbols))
            digits.append(self._symbols[digit])
        return Prefix((*self._live[rank].symbols, *reversed(digits)), ended)

    def vector(self, votes: Mapping[Prefix, int], part: int = 0) -> Sums:
        """Return the sums of a part as a vector; votes outside the public alphabet are left out.

        Args:
            votes: of a node, by prefix.
            part: which one, from 0.
        """
        # (places of the part,), added up modulo 2^32.
        sums = np.zeros(self.length(part), np.uint32)
        for prefix, count in votes.items():
            place = self.place_of(prefix)
            if place is not None and place // MOST_SUMS == part:
                sums[place % MOST_SUMS] = count
        return sums

    def votes(self, sums: Sums, part: int = 0) -> Counter[Prefix]:
        """Return what the vector of a part says, by prefix.

        Args:
            sums: of all nodes.
            part: which one, from 0.
        """
        first = part * MOST_SUMS
        return Counter({self.prefix_at(first + int(place)): int(sums[place]) for place in np.flatnonzero(sums)})
