"""The numbers of public lists and of noisy keys in certificates."""

from dataclasses import dataclass
from fractions import Fraction
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
    """The levels that decide about items of a public list.

    The level of an item is the number of levels that its score has reached in any round.

    Attributes:
        listed: The list.
        share: The maximum expected share of listed items without users among the released items.
        drops: The drop threshold of a listed item in each later round except the last.
        lowest: The score of the lowest level in each later round, in standard deviations of the score's noise.
        step: The distance between two levels, in the same unit.
        tails: An upper bound on the probability that noise alone reaches each level, in increasing order of levels.
        enough: The value of `Round.enough` for listed items in each later round. The guarantee does not depend on it.
    """

    listed: KnownList
    share: float
    drops: tuple[float, ...]
    lowest: tuple[float, ...]
    step: float
    tails: tuple[float, ...]
    enough: tuple[float, ...]


@final
@dataclass(frozen=True, slots=True)
class NightLevels(Stated):
    """The levels that decide about items of a public list in a series (docs/privacy/series.md, "Public lists").

    Attributes:
        listed: The list.
        share: The maximum expected share, on each night, of listed items without users among the items released so far.
        lowest: The score of the lowest level, by night.
        steps: The distance between two levels, by night.
        tails: An upper bound on the probability that noise alone reaches each level on any night, in increasing order
            of levels.
    """

    listed: KnownList
    share: float
    lowest: tuple[int, ...]
    steps: tuple[int, ...]
    tails: tuple[float, ...]


@final
@dataclass(frozen=True, slots=True)
class KeyNoise(Stated):
    """Truncated geometric noise on the number of users of every key, which also selects the keys.

    Attributes:
        limit: The maximum number of keys per user.
        rate: The rate of the noise, per user.
        reach: The largest noise, j.
        end: The probability of -j, which is also the probability of j.
        coin: The probability that a key with the noisy number j is released.
    """

    limit: int
    rate: Fraction
    reach: int
    end: float
    coin: float


@final
@dataclass(frozen=True, slots=True)
class KeyParts(Stated):
    """The noise for users who are divided into parts by their own number of keys.

    Attributes:
        rate: The rate of the noise on y2. The noise on y1 has twice this rate, and every part spends twice this rate.
        threshold: The smallest 2 y1 + y2 of a released key.
        sizing: The rate of the noise on the number of users with three or more keys, in classes by their number of
            released keys.
    """

    rate: Fraction
    threshold: int
    sizing: Fraction

    def rate_of_more(self, limit: int) -> Fraction:
        """Return the rate of the noise on the counts of users with three or more keys, if each user has this limit."""
        return (2 * self.rate - self.sizing) / limit
