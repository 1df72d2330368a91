"""Users who are divided into parts by their own number of keys.

Each part spends all of epsilon. The proof is in docs/privacy/keys.md.

For each key, y1 and y2 are the noisy numbers of its users with one key and of its users with two keys. The key is
released if 2 y1 + y2 reaches a threshold. Users with three or more keys contribute only to the counts of released keys.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from voxpop.errors import InputError, InternalError
from voxpop.kernels.arrays import Floats, Int64s, Texts
from voxpop.kernels.proved import proved
from voxpop.privacy import precise
from voxpop.privacy.opening import Opening
from voxpop.privacy.parameters import KeyParts
from voxpop.privacy.precise import context, number
from voxpop.privacy.sampling import MORE_ROUNDS, laplace_of
from voxpop.privacy.secret import TEXT, Source

FEW_KEYS: Final = 2
"""The maximum number of keys with which a user takes part in the selection of keys."""
PART_BITS: Final = 31
"""A weight is n1 2^31 + n2, so it contains both numbers of a key. No machine has 2^31 users. Weights are sums over
machines and must be below 2^61.
"""
PART_WEIGHTS: Final = (0, 1 << PART_BITS, 1, 0)
"""The weight that a user adds to each key, by the user's number of keys. The last entry applies to all users with three
or more keys.
"""
LEAST_THRESHOLD: Final = 3
"""The formula for keys with a single user assumes that such a key does not reach the threshold without noise."""
_MOST_WEIGHT: Final = 1 << 61


@proved("keys.md#users-in-parts")
def _reached(rate: Fraction, least: int) -> Any:
    """Return the probability, with eighty digits, that 2 z1 + z2 is at least `least`, which must be above 0.

    Proof: "W(t) = c q^t / (1 + q) (1 / (1 - q^4) + m)"
    """
    q = context.exp(-number(rate.numerator) / rate.denominator)
    # P(z1 = k) = c q^(2 |k|), and P(z2 >= n) = q^n / (1 + q) for n >= 1.
    c, m = (1 - q**2) / (1 + q**2), (least - 1) // 2
    few = c * q**least / (1 + q) * (1 / (1 - q**4) + m)
    # This is the part with z1 > m, for which z2 can be 0 or less.
    tail = q ** (2 * (m + 1))
    return few + tail / (1 + q**2) - c * q ** (1 - least) * tail**2 / ((1 + q) * (1 - q**4))


@proved("keys.md#users-in-parts")
def parts_delta(parts: KeyParts) -> Any:
    """Return the largest probability, with eighty digits, of releasing keys that only one user has.

    Proof: "d = max(W(T - 2), 2 W(T - 1))"
    """
    with precise.ALONE:
        return max(_reached(parts.rate, parts.threshold - 2), 2 * _reached(parts.rate, parts.threshold - 1))


def planned_parts(whole: Fraction, sizing: Fraction, delta: float) -> KeyParts:
    """Return the noise of the parts with the smallest threshold that costs at most delta.

    Args:
        whole: The epsilon of every part.
        sizing: The part of epsilon that users with three or more keys spend on the choice of their limit.
        delta: The delta for keys that only one user has.
    """

    def keeps(threshold: int) -> bool:
        return bool(parts_delta(KeyParts(whole / 2, threshold, sizing)) <= number(delta))

    high = 4
    while not keeps(high):
        high *= 2
    low = max(LEAST_THRESHOLD, high // 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if keeps(middle) else (middle + 1, high)
    return KeyParts(whole / 2, high, sizing)


def parts_probabilities(parts: KeyParts, limit: int, reach: int) -> Floats:
    """Return the probabilities of the total noise on a count, from -reach to reach.

    Args:
        parts: The noise of the parts.
        limit: The maximum number of released keys that count per user with three or more keys.
        reach: The largest absolute value of the noise.
    """
    place, found = np.abs(np.arange(-reach, reach + 1)), np.ones(1)
    for rate in (2 * parts.rate, parts.rate, parts.rate_of_more(limit)):
        q = np.exp(-float(rate))
        found = np.convolve(found, (1 - q) / (1 + q) * q**place)
    middle = found.size // 2
    return found[middle - reach : middle + reach + 1]


def parts_spread(parts: KeyParts, limit: int) -> float:
    """Return the standard deviation of the noise on a count."""
    rates = [float(each) for each in (2 * parts.rate, parts.rate, parts.rate_of_more(limit))]
    # The variance of integer Laplace noise is 2 q / (1 - q)^2.
    return float(np.sqrt(sum(2 * np.exp(-rate) / np.expm1(-rate) ** 2 for rate in rates)))


def parts_bound(parts: KeyParts, limit: int, probability: float) -> int:
    """Return the smallest r for which the absolute noise is at most r with at least this probability."""
    reach = int(20 * parts_spread(parts, limit)) + 1
    chances = parts_probabilities(parts, limit, reach)
    both = chances[reach:] * 2.0
    both[0] /= 2.0
    return int(np.searchsorted(np.cumsum(both), probability))


def released_in_parts(parts: KeyParts, users: int, held: int) -> float:
    """Return the probability that a key with this number of users is released if each user has this number of keys."""
    if held > FEW_KEYS or users < 1:
        return 0.0
    least = parts.threshold - users * FEW_KEYS // held
    with precise.ALONE:
        # The distribution of 2 z1 + z2 is symmetric.
        return float(_reached(parts.rate, least) if least > 0 else 1 - _reached(parts.rate, 1 - least))


@dataclass(frozen=True, slots=True)
class PartNumbers(Opening):
    """The selection of keys, and a noisy number of users per key, from the users with one or two keys.

    Attributes:
        parts: The noise and the threshold.
        secret: The source of the bits.
        purpose: The purpose of the draws. The number of keys per user is appended to it.
    """

    parts: KeyParts
    secret: Source
    purpose: str

    @proved("keys.md#users-in-parts")
    def __call__(self, weights: Int64s, names: Int64s, texts: Texts | None = None) -> Int64s:
        """Return y1 + y2 for released keys, at least 1, and 0 for all other keys.

        Proof: "Every key with n1 + n2 > 0 gets independent integer Laplace noise z1 of rate 2 r and z2 of rate r"

        Args:
            weights: The weights of the keys. Each weight contains both numbers.
            names: Unused, because draws identify keys by their bytes.
            texts: The bytes of the keys, and the start of each key.
        """
        if texts is None:
            raise InternalError("keys would be drawn without their bytes")
        if weights.max(initial=0) >= _MOST_WEIGHT:
            raise InputError(
                "more than a billion users have the same key and no other key, which is too many to count. Give "
                "`max_keys_per_user`."
            )
        one = self._noisy(weights >> PART_BITS, 1, texts)
        two = self._noisy(weights & ((1 << PART_BITS) - 1), FEW_KEYS, texts)
        return np.where(2 * one + two >= self.parts.threshold, np.maximum(one + two, 1), 0)

    @proved("keys.md#users-in-parts")
    def _noisy(self, users: Int64s, held: int, texts: Texts) -> Int64s:
        """Return the noisy number of users with this number of keys.

        Proof: "Every key with n1 + n2 > 0 gets independent integer Laplace noise z1 of rate 2 r and z2 of rate r."
        """
        purpose, (content, starts) = f"{self.purpose} of {held}", texts

        def more(row: int, turn: int) -> int:
            words = self.secret.text_draws(f"{purpose}/more {turn}", content, starts[row : row + 2])[0]
            return (int(words[0]) << 64) | int(words[1])

        return users + laplace_of(self.parts.rate * 2 / held, self.secret.text_draws(purpose, *texts), more)

    def restricted(self) -> "PartNumbers":
        """Return a copy that can be sent to workers and is restricted to its purposes."""
        turns = ("", *(f"/more {turn}" for turn in range(1, MORE_ROUNDS + 1)))
        every = [f"{self.purpose} of {held}{turn}{TEXT}" for held in (1, FEW_KEYS) for turn in turns]
        return replace(self, secret=self.secret.restrict(*every))
