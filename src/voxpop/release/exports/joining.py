"""Grams as single strings, where no two grams become one."""

from typing import TYPE_CHECKING

from voxpop.errors import InputError

if TYPE_CHECKING:
    from voxpop.release.released import Released


def joined(release: "Released", between: str, where: str) -> list[str]:
    """Return every gram as one string, in canonical order.

    Args:
        release: what was released.
        between: what stands between tokens.
        where: what the strings are for, in words.

    Raises:
        InputError: where two grams give the same string, such as ("new york",) and ("new", "york").
    """
    strings = [between.join(gram) for gram in release.each_gram()]
    if len(set(strings)) < len(strings):
        raise InputError(
            f"{where} joins tokens by {between!r}, and some tokens of this release hold that themselves, so that two "
            "grams become one. Choose another delimiter where there is one, or write JSON, Arrow or Parquet."
        )
    return strings


def longest(release: "Released") -> int:
    """Return the length of the longest gram, at least 1."""
    return int(release.grams["length"][-1].as_py()) if len(release) else 1


def missing(library: str, package: str) -> InputError:
    """Return the refusal where a library is not installed."""
    return InputError(f"this export needs {library}, which is not installed: pip install {package}.")
