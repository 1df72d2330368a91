"""The noise of keys with counts, as certificates contain it (docs/privacy/keys.md)."""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from voxpop.privacy.stated import Stated


@final
@dataclass(frozen=True, slots=True)
class KeyNoise(Stated):
    """Truncated geometric noise on the number of users of every key, which also selects the keys.

    Attributes:
        limit: the maximum number of keys per user.
        rate: The rate of the noise, per user.
        reach: The largest noise, j.
        end: The probability of -j, which is also that of j.
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
    """The noise of users in parts by their own number of keys.

    Attributes:
        rate: The rate of the noise on y2. The noise on y1 has twice this rate, and every part spends twice this rate.
        threshold: The smallest 2 y1 + y2 of a released key.
        sizing: The rate of the noise on the number of users of more keys, in classes by their number of released keys.
    """

    rate: Fraction
    threshold: int
    sizing: Fraction

    def rate_of_more(self, limit: int) -> Fraction:
        """Return the rate of the noise on the counts of users of more keys, for a number of keys of each."""
        return (2 * self.rate - self.sizing) / limit
