"""The numbers of a public list in a certificate: docs/privacy/known.md."""

from dataclasses import dataclass
from typing import final

from voxpop.privacy.stated import Stated


@final
@dataclass(frozen=True, slots=True)
class KnownList(Stated):
    """A public list of items: docs/privacy/known.md.

    Attributes:
        size: number of different items on it.
        fingerprint: SHA-256 of the items.
    """

    size: int
    fingerprint: str


@final
@dataclass(frozen=True, slots=True)
class KnownLevels(Stated):
    """How items of a public list are decided: all at the end, by levels of their largest score.

    Attributes:
        listed: the list.
        share: largest expected share of listed items without users among the released items.
        drops: by later round but the last, the drop threshold of a listed item.
        lowest: by later round, the score of the lowest level, in standard deviations of its noise.
        step: distance of two levels, likewise.
        tails: by level, rising, at least the probability that noise alone reaches it.
        enough: by later round, as in `Round`, for listed items. Nothing private depends on it.
    """

    listed: KnownList
    share: float
    drops: tuple[float, ...]
    lowest: tuple[float, ...]
    step: float
    tails: tuple[float, ...]
    enough: tuple[float, ...]
