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


def prefix_after(word: Word, size: int) -> Prefix:
    """Return the first so many symbols of a word, the end mark counted.

    Args:
        word: not empty.
        size: how many; see `Rules.size`.

    Example:
        >>> prefix_after(tuple("sun"), 2)
        Prefix(symbols=('s', 'u'), ended=False)
        >>> prefix_after(tuple("sun"), 4)
        Prefix(symbols=('s', 'u', 'n'), ended=True)
    """
    # The end mark is the symbol behind the last one.
    return Prefix(word[:size], ended=size > len(word))
