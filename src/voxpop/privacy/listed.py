"""The numbers of a public list in a certificate (docs/privacy/known.md)."""

from dataclasses import dataclass
from typing import final

from voxpop.privacy.stated import Stated


@final
@dataclass(frozen=True, slots=True)
class KnownList(Stated):
    """A public list of items (docs/privacy/known.md).

    Attributes:
        size: The number of distinct items on the list.
        fingerprint: The SHA-256 digest of the items.
    """

    size: int
    fingerprint: str


@final
@dataclass(frozen=True, slots=True)
class KnownLevels(Stated):
    """The levels that decide items of a public list, all at the end, by their largest score.

    Attributes:
        listed: The list.
        share: The largest expected share of listed items without users among the released items.
        drops: The drop threshold of a listed item in each later round except the last.
        lowest: The score of the lowest level in each later round, in standard deviations of its noise.
        step: The distance between two levels, in the same unit.
        tails: An upper bound on the probability that noise alone reaches each level, in increasing order of levels.
        enough: The `enough` of `Round` for listed items, by later round. The guarantee does not depend on it.
    """

    listed: KnownList
    share: float
    drops: tuple[float, ...]
    lowest: tuple[float, ...]
    step: float
    tails: tuple[float, ...]
    enough: tuple[float, ...]
