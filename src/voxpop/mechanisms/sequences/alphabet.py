"""The alphabet of a model: public, checked and in one order."""

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from voxpop.errors import InputError

if TYPE_CHECKING:
    from voxpop.release.release import Release

MOST_SYMBOLS = 10**7


def public_alphabet(given: Any) -> tuple[str, ...]:
    """Return the symbols in order of their bytes, so that their numbers do not depend on the order in which they came.

    Args:
        given: distinct strings, or a release of single items.

    Raises:
        InputError: if it is not a collection of distinct strings.
    """
    from voxpop.release.release import Release

    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InputError(f"`alphabet` must be a list of strings or a release, got a value of type {_kind(given)}.")
    symbols = list(_items(given) if isinstance(given, Release) else given)
    for symbol in symbols:
        if not isinstance(symbol, str):
            raise InputError(
                f"`alphabet` must contain strings, got a value of type {_kind(symbol)}. voxpop.read turns whole "
                'numbers into their decimal strings, so write "17" for 17.'
            )
    if not 1 <= len(symbols) <= MOST_SYMBOLS:
        raise InputError(f"`alphabet` must have from 1 to {MOST_SYMBOLS:,} symbols, got {len(symbols):,}.")
    ordered = tuple(sorted(symbols))
    if any(one == other for one, other in pairwise(ordered)):
        raise InputError("`alphabet` contains a symbol twice; every symbol must be distinct. Use dict.fromkeys first.")
    return ordered


def _items(release: "Release") -> list[str]:
    grams = list(release.each_gram())
    if any(len(gram) != 1 for gram in grams):
        raise InputError("a release used as alphabet must contain single items; this one contains longer grams.")
    return [gram[0] for gram in grams]


def _kind(value: object) -> str:
    return type(value).__name__
