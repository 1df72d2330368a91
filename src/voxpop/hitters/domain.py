"""What can be voted for in a round: the children of the living prefixes, in an order that everybody knows.

The trie is public and so is the alphabet. So a node's sums can be a vector whose places mean the same to everybody,
which is what adding them up in secret needs.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np

from voxpop.arrays import Uint32s
from voxpop.errors import InputError
from voxpop.hitters.prefix import Prefix, Symbol
from voxpop.hitters.rules import Rules
from voxpop.hitters.trie import Trie

LETTERS = "abcdefghijklmnopqrstuvwxyz"
MOST_SUMS = 1 << 22
"""Most places of a vector: 16 MB a node a round."""

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
    """The prefixes that a round may grow, each with its place in a vector."""

    def __init__(self, trie: Trie, rules: Rules, symbols: tuple[Symbol, ...]):
        """Number the children of every living prefix.

        Args:
            trie: as it is before the round.
            rules: the public rules.
            symbols: the public alphabet.

        Raises:
            InputError: where there would be more than `MOST_SUMS`.
        """
        count = _count(trie, rules, len(symbols))
        if count > MOST_SUMS:
            raise InputError(
                f"round {trie.rounds + 1} has {count:,} prefixes that may grow, and at most {MOST_SUMS:,} can be added "
                "up in secret. Use a smaller `unit`, fewer `symbols`, or a smaller epsilon."
            )
        self.prefixes = list(_children(trie, rules, symbols))
        self.place = {prefix: place for place, prefix in enumerate(self.prefixes)}

    def __len__(self) -> int:
        """Return how many places a vector has."""
        return len(self.prefixes)

    def vector(self, votes: Mapping[Prefix, int]) -> Sums:
        """Return sums of votes as a vector; votes outside the public alphabet are left out.

        Args:
            votes: of a node, by prefix.
        """
        # (places,), added up modulo 2^32.
        sums = np.zeros(len(self), np.uint32)
        for prefix, count in votes.items():
            if prefix in self.place:
                sums[self.place[prefix]] = count
        return sums

    def votes(self, sums: Sums) -> Counter[Prefix]:
        """Return what a vector says, by prefix.

        Args:
            sums: of all nodes.
        """
        return Counter({self.prefixes[place]: int(sums[place]) for place in np.flatnonzero(sums)})


def _sizes(trie: Trie, rules: Rules) -> tuple[int, int]:
    known = rules.size(trie.rounds)
    return known, rules.size(trie.rounds + 1)


def _count(trie: Trie, rules: Rules, symbols: int) -> int:
    known, after = _sizes(trie, rules)
    # For each living prefix: words that end within the round, and prefixes of its full length.
    each: int = sum(symbols ** (size - known) for size in range(known, after) if 0 < size <= rules.longest)
    each += symbols ** (after - known) if after <= rules.longest else 0
    return each * len(trie.live)


def _children(trie: Trie, rules: Rules, symbols: tuple[Symbol, ...]) -> Iterator[Prefix]:
    known, after = _sizes(trie, rules)
    # An order that all nodes share, or their sums would be added up in different places.
    for prefix in sorted(trie.live, key=lambda each: tuple(map(str, each.symbols))):
        for size in range(known, min(after, rules.longest) + 1):
            if size:
                for more in product(symbols, repeat=size - known):
                    yield Prefix((*prefix.symbols, *more), ended=size < after)
