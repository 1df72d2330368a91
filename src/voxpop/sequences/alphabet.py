"""The alphabet: public, given by the caller, never taken from the data in passing."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from voxpop.errors import InputError
from voxpop.release import Release

MOST_SYMBOLS = 2**31 - 2
MISSING = (
    "`alphabet` is missing: Sequences needs the list of all tokens that may occur, and it must be public, for the "
    "noise hides how often a token occurs and not which tokens there are. Give what is known without the data "
    '(alphabet=["home", "news", "sport"]), or spend part of the budget on finding it: '
    "words = voxpop.SetUnion().release(corpus, voxpop.Budget(1, 1e-7)), then alphabet=words; "
    "voxpop.sequences.spent_together(words, model) states what both cost."
)


def public_alphabet(given: Any) -> tuple[str, ...]:
    """Return the symbols in order of their bytes.

    Args:
        given: distinct strings, or a release of single items.

    Returns:
        The sorted tuple: ids do not depend on the order in which symbols were given.

    Raises:
        InputError: where it is no collection of distinct strings.
    """
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InputError(f"`alphabet` must be a list of strings or a release, got a value of type {_kind(given)}.")
    symbols = list(_items(given) if isinstance(given, Release) else given)
    for symbol in symbols:
        if not isinstance(symbol, str):
            raise InputError(
                f"`alphabet` must hold strings, got a value of type {_kind(symbol)}. voxpop.read turns whole numbers "
                'into their decimal strings, so write "17" for 17.'
            )
    if not 1 <= len(symbols) <= MOST_SYMBOLS:
        raise InputError(f"`alphabet` must hold from 1 to {MOST_SYMBOLS:,} symbols, got {len(symbols):,}.")
    ordered = tuple(sorted(symbols))
    if any(one == other for one, other in pairwise(ordered)):
        raise InputError("`alphabet` must hold each symbol once; pass it through dict.fromkeys first.")
    return ordered


def _items(release: Release) -> list[str]:
    grams = list(release.each_gram())
    if any(len(gram) != 1 for gram in grams):
        raise InputError("a release used as alphabet must hold single items; this one holds longer grams.")
    return [gram[0] for gram in grams]


def _kind(value: object) -> str:
    return type(value).__name__
