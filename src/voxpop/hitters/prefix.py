"""Prefixes of words: what a vote names. The end mark counts as a symbol, which tells a word from its start."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import final

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


def prefix_after(word: Word, rounds: int, unit: int) -> Prefix:
    """Return the part of a word that rounds of so many symbols spell.

    Args:
        word: not empty.
        rounds: how many rounds have gone by.
        unit: symbols per round.

    Example:
        >>> prefix_after(tuple("sun"), 2, 1)
        Prefix(symbols=('s', 'u'), ended=False)
        >>> prefix_after(tuple("sun"), 4, 1)
        Prefix(symbols=('s', 'u', 'n'), ended=True)
    """
    size = rounds * unit
    return Prefix(word[:size], ended=size > len(word))
