"""Truncated geometric noise on numbers of users, which selects and counts a key with one draw.

Noise on -j .. j has the probabilities p(z) = C e^(-rate |z|) in the interior, and p(-j) = p(j) = `end`. A key with n >
0 users gets the number y = n + z. If y > j, the key is released with this number. If y = j, it is released with
probability `coin`. Therefore a key with one user is released with probability end + coin p(j - 1). The proof is in
docs/privacy/keys.md.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import nextafter
from typing import Any, Final

import numpy as np

from voxpop.errors import InternalError
from voxpop.kernels.arrays import Int64s, Texts, Uint64s
from voxpop.kernels.proved import proved
from voxpop.privacy import precise
from voxpop.privacy.decisions import draws_of
from voxpop.privacy.numerics import walk_slack
from voxpop.privacy.opening import Opening
from voxpop.privacy.parameters import KeyNoise, KeyParts
from voxpop.privacy.parts import LEAST_THRESHOLD, parts_delta
from voxpop.privacy.passes import Claim, KeysProof
from voxpop.privacy.precise import context, number
from voxpop.privacy.sampling import MORE_ROUNDS, laplace_noise
from voxpop.privacy.secret import TEXT, Source

MOST_REACH: Final = 1 << 12
"""The largest j. A table of the noise has 2 j entries."""
_DRAW_BITS: Final = 128


@proved("keys.md#one-number-per-key")
def _scale_inside(noise: KeyNoise) -> Any:
    """Return C, the factor that makes all probabilities add up to 1, with eighty digits.

    Proof: "Every key with n > 0 gets separate noise z on -j, ..., j with p(z) = C e^(-rate |z|) for |z| < j and p(-j) =
    p(j) = end."
    """
    ratio = context.exp(-number(noise.rate.numerator) / noise.rate.denominator)
    # This is the sum of e^(-rate |z|) over |z| < j.
    weight = 2 * (1 - ratio**noise.reach) / (1 - ratio) - 1
    return (1 - 2 * number(noise.end)) / weight


@proved("keys.md#one-number-per-key")
def key_delta(noise: KeyNoise) -> Any:
    """Return the delta of one key at an epsilon of `rate`, with eighty digits.

    Proof: "end + max(0, p(j-1) - e^rate end) + max(0, end - e^rate p(j-1))"
    """
    with precise.ALONE:
        rate, end = number(noise.rate.numerator) / noise.rate.denominator, number(noise.end)
        last, growth = _scale_inside(noise) * context.exp(-rate * (noise.reach - 1)), context.exp(rate)
        shared = end + max(0, last - growth * end) + max(0, end - growth * last)
        # This is the release probability of a key that only the additional user has.
        novel = end + number(noise.coin) * last
        return max(shared, novel)


def least_noise(limit: int, rate: Fraction, delta: float) -> KeyNoise:
    """Return noise that costs this delta per key. A key of only one user is released with probability at most `delta`.

    Args:
        limit: The maximum number of keys per user.
        rate: The epsilon of one key.
        delta: The delta of one key.
    """
    with precise.ALONE:
        target = number(delta) * (1 - number(2) ** -40)
        exact = number(rate.numerator) / rate.denominator
        ratio, growth = context.exp(-exact), context.expm1(exact)
        # Find the smallest j at which the probability of untruncated geometric noise, (1 - a) / (1 + a) a^j, is at most
        # delta.
        first = context.log((1 - ratio) / (1 + ratio) / target) / exact
        reach = max(1, int(context.ceil(first)))
        end = _end_of(reach, ratio, growth, target)
        # Truncation increases the other probabilities, so a slightly larger j can be necessary. `end` decreases as j
        # increases.
        while end > target and reach <= MOST_REACH:
            reach += 1
            end = _end_of(reach, ratio, growth, target)
        noise = KeyNoise(limit, rate, reach, float(end), 0.0)
        coin = (target - number(noise.end)) / (_scale_inside(noise) * ratio ** (reach - 1))
    return replace(noise, coin=float(min(number(1), max(number(0), coin))))


@proved("keys.md#charges")
def keys_delta(proof: KeysProof, claim: Claim, of_rounds: Callable[[Any, Claim], float]) -> float:
    """Return the delta of the most expensive entry.

    Proof: "Given the noisy numbers of users in classes, both collections run the same entry"

    Args:
        proof: The numbers of a release of keys with counts.
        claim: The claim of the whole release.
        of_rounds: A function that returns the delta of the certificate of rounds at the epsilon of a claim.

    Raises:
        InternalError: A number is out of range, or the parts of epsilon add up to more than epsilon.
    """
    entries = len(proof.menu) + (proof.parts is not None) + (proof.rounds is not None)
    chosen = proof.chosen is None or 0 <= proof.chosen < entries
    single = entries == 1 and not proof.edges and proof.choosing == 0
    choice = proof.edges == tuple(sorted(set(proof.edges))) and proof.edges[:1] >= (1,) and proof.choosing > 0
    rounds = proof.rounds
    if not (chosen and entries >= 1 and (single or choice) and proof.rest >= 0 and proof.sets >= 1):
        raise InternalError("a certificate of keys has numbers to which its proof does not apply")
    if rounds is not None and rounds.data_sets:
        raise InternalError("a certificate of keys has rounds of several data sets")
    spends = [_of_numbers(proof, noise, claim) for noise in proof.menu]
    if proof.parts is not None:
        spends.append(_of_parts(proof, proof.parts, claim))
    if rounds is not None:
        # Compute E[delta(epsilon - L)] over the losses L of randomised responses, which dominate pure releases.
        losses = [float(each) for each in (proof.choosing, proof.rest) if each > 0]
        if sum(losses) >= claim.epsilon:
            raise InternalError("the choice and the other rows leave no epsilon for the rounds")
        mean = 0.0
        for signs in product((1.0, -1.0), repeat=len(losses)):
            chance, epsilon = 1.0, claim.epsilon
            for loss, sign in zip(losses, signs, strict=True):
                chance, epsilon = chance / (1.0 + float(np.exp(-sign * loss))), epsilon - sign * loss
            # Round down by more than the rounding error of doubles.
            mean += chance * of_rounds(rounds, Claim(epsilon * (1 - 2.0**-45), claim.delta))
        spends.append(mean * (1 + 2.0**-40))
    return max(spends) + walk_slack(claim.epsilon, 1)


@proved("keys.md#charges")
def _of_numbers(proof: KeysProof, noise: KeyNoise, claim: Claim) -> float:
    """Return the delta of an entry with one noisy number per key.

    Proof: "epsilons add up to choosing + rest + L rate, and deltas to L times that of one key"
    """
    in_range = noise.limit >= 1 and noise.rate > 0 and 1 <= noise.reach <= MOST_REACH
    if not (in_range and 0.0 <= noise.end < 0.5 and 0.0 <= noise.coin <= 1.0):
        raise InternalError("a certificate of keys has noise to which its proof does not apply")
    if proof.choosing + proof.rest + noise.limit * noise.rate > Fraction(claim.epsilon):
        raise InternalError("the parts of epsilon add up to more than epsilon")
    delta = nextafter(float(noise.limit * key_delta(noise)), 1.0)
    # `walk_slack` assumes fewer than 2^7 comparisons with thresholds per pass, but a table has 4 j thresholds.
    return delta + walk_slack(claim.epsilon, 1 + noise.reach // 16)


@proved("keys.md#charges")
def _of_parts(proof: KeysProof, parts: KeyParts, claim: Claim) -> float:
    """Return the delta of the entry for users in parts.

    Proof: "every part may spend all of 2 r"
    """
    if not (parts.rate > 0 and parts.threshold >= LEAST_THRESHOLD and 0 < parts.sizing < 2 * parts.rate):
        raise InternalError("a certificate of keys has parts to which its proof does not apply")
    if proof.choosing + proof.rest + 2 * parts.rate > Fraction(claim.epsilon):
        raise InternalError("the parts of epsilon add up to more than epsilon")
    return nextafter(float(parts_delta(parts)), 1.0)


def _end_of(reach: int, ratio: Any, growth: Any, target: Any) -> Any:
    """Return the value of `end` for which end + p(j-1) - e^rate end equals the target delta."""
    weight, last = 2 * (1 - ratio**reach) / (1 - ratio) - 1, ratio ** (reach - 1)
    # This uses C (weight) + 2 end = 1.
    scale = (1 + 2 * target / growth) / (weight + 2 * last / growth)
    return max(number(0), (scale * last - target) / growth)


@dataclass(frozen=True, slots=True, eq=False)
class _NoiseTable:
    """The probabilities of the noise, as integer multiples of 2^-128.

    Attributes:
        tails: The tail probabilities, in increasing order. The noise is the number of tails above a uniform number,
            minus j.
        coins: A bound for each value of the noise from -j to j - 1. A key with the number j is released if the uniform
            number is below the bound.
    """

    tails: tuple[int, ...]
    coins: tuple[int, ...]


@lru_cache(maxsize=64)
@proved("keys.md#what-integers-change")
def _noise_table(noise: KeyNoise) -> _NoiseTable:
    """Return the probabilities that the noise is at least z, for z from j down to 1 - j, and the bounds of the coin.

    Proof: "The probabilities of the truncated noise are computed with eighty digits, and rounded to whole multiples of
    2^-128."
    """
    with precise.ALONE:
        whole, reach = number(2) ** _DRAW_BITS, noise.reach
        ratio = context.exp(-number(noise.rate.numerator) / noise.rate.denominator)
        scale, end, coin = _scale_inside(noise), number(noise.end), number(noise.coin)
        powers = [scale]
        for _ in range(reach - 1):
            powers.append(powers[-1] * ratio)
        tail, tails, coins = end, [end], []
        for z in range(reach - 1, -reach, -1):
            coins.append(tail + coin * powers[abs(z)])
            tail += powers[abs(z)]
            tails.append(tail)
        coins.append(tail + coin * end)
        # The tails are rounded and remain below 2^128. The last of the 2 j tails is the probability of noise above -j.
        kept = [min(int(context.nint(each * whole)), (1 << _DRAW_BITS) - 1) for each in tails]
        upto = [min(int(context.nint(each * whole)), (1 << _DRAW_BITS) - 1) for each in coins]
    return _NoiseTable(tuple(kept), tuple(reversed(upto)))


def _halves_of(values: tuple[int, ...]) -> tuple[Uint64s, Uint64s]:
    """Return the upper and the lower 64 bits of each value."""
    upper = np.array([value >> 64 for value in values], np.uint64)
    return upper, np.array([value & ((1 << 64) - 1) for value in values], np.uint64)


@proved("keys.md#what-integers-change")
def key_levels(noise: KeyNoise, users: Int64s, draws: Uint64s) -> Int64s:
    """Return y - j + 1 for released keys and 0 for all other keys.

    Proof: "One draw of 128 bits determines z and the coin. A key with n users is released if the draw is below P(z >
    j - n) + coin p(j - n)."

    Args:
        noise: The noise of one key.
        users: int64, the number of users of each key, at least 1.
        draws: uint64 (keys, 2), uniform bits from `Secret.draws`.

    Example:
        >>> noise = least_noise(1, Fraction(1), 1e-5)
        >>> noise.reach
        11
        >>> key_levels(noise, np.array([1, 40]), np.full((2, 2), 2**63, np.uint64)).tolist()
        [0, 30]
    """
    table, reach = _noise_table(noise), noise.reach
    high, low = draws[:, 0], draws[:, 1]
    upper, _ = _halves_of(table.tails)
    # All tails from this position on are above the uniform number, unless the upper 64 bits are equal.
    places = np.searchsorted(upper, high, side="left")
    above = len(table.tails) - places
    tied = np.flatnonzero((places < len(upper)) & (upper[np.minimum(places, len(upper) - 1)] == high))
    for row in tied.tolist():
        value = (int(high[row]) << 64) | int(low[row])
        above[row] = sum(tail > value for tail in table.tails)
    drawn = above.astype(np.int64) - reach
    y = users + drawn
    # Shape (keys,), indexed by noise from -j. A key with y = j has noise below j, because it has at least one user.
    first, second = _halves_of(table.coins)
    place = np.clip(drawn + reach, 0, len(table.coins) - 1)
    won = (high < first[place]) | ((high == first[place]) & (low < second[place]))
    return np.where((y > reach) | ((y == reach) & won), y - reach + 1, 0)


def released_with(noise: KeyNoise, users: int) -> float:
    """Return the probability that a key with this number of users is released."""
    place = noise.reach - users
    if users <= 0 or place < -noise.reach:
        return float(users > 0)
    return float(_noise_table(noise).coins[place + noise.reach] / 2**_DRAW_BITS) if place < noise.reach else 0.0


def noise_spread(noise: KeyNoise) -> float:
    """Return the standard deviation of the noise."""
    chances = noise_probabilities(noise)
    return float(np.sqrt((chances * np.arange(-noise.reach, noise.reach + 1) ** 2.0).sum()))


def noise_bound(noise: KeyNoise, probability: float) -> int:
    """Return the smallest r such that the absolute noise is at most r with at least this probability."""
    chances = noise_probabilities(noise)
    both = chances[noise.reach :] * 2.0
    both[0] /= 2.0
    return int(np.searchsorted(np.cumsum(both), probability))


def noise_probabilities(noise: KeyNoise) -> Any:
    """Return the probabilities of the noise from -j to j, in doubles."""
    with precise.ALONE:
        scale = float(_scale_inside(noise))
    size = np.abs(np.arange(-noise.reach, noise.reach + 1))
    return np.where(size == noise.reach, noise.end, scale * np.exp(-float(noise.rate) * size))


@dataclass(frozen=True, slots=True)
class KeyNumbers(Opening):
    """The selection of keys and the noisy number of users of each key. One draw per key decides both.

    Attributes:
        noise: The noise of one key.
        unit: The number of units of the grid for one user.
        secret: The source of the bits.
        purpose: The purpose of the draws.
    """

    noise: KeyNoise
    unit: int
    secret: Source
    purpose: str

    @proved("keys.md#what-integers-change")
    def __call__(self, weights: Int64s, names: Int64s, texts: Texts | None = None) -> Int64s:
        """Return y - j + 1 for released keys and 0 for all other keys.

        Proof: "Weights are whole numbers of users"

        Args:
            weights: The weights of the keys, in units of the grid.
            names: The numbers that identify the keys in draws. They do not depend on the engine.
            texts: The bytes of the keys and the start of each key, if draws identify keys by their bytes instead.
        """
        return key_levels(self.noise, weights // self.unit, draws_of(self.secret, self.purpose, names, texts))

    def restricted(self) -> "KeyNumbers":
        """Return a copy that can be sent to workers and is restricted to its purpose."""
        return replace(self, secret=self.secret.restrict(self.purpose, f"{self.purpose}{TEXT}"))


@dataclass(frozen=True, slots=True)
class WholeNoise(Opening):
    """Integers plus integer Laplace noise. P(noise = k) is proportional to e^(-rate |k|).

    Attributes:
        rate: The rate of the noise, per unit of the numbers.
        secret: The source of the bits.
        purpose: The purpose of the draws.
    """

    rate: Fraction
    secret: Source
    purpose: str

    @proved("keys.md#the-mechanism")
    def __call__(self, weights: Int64s, names: Int64s) -> Int64s:
        """Return the noisy number for each name.

        Proof: "Integer Laplace noise of rate choosing is added to every class: P(k) is proportional to e^(-choosing
        |k|)."
        """
        return weights + laplace_noise(self.rate, self.secret, self.purpose, names, np.zeros_like(names))

    def restricted(self) -> "WholeNoise":
        """Return a copy that can be sent to workers and is restricted to its purpose."""
        more = (f"{self.purpose}/more {turn}" for turn in range(1, MORE_ROUNDS + 1))
        return replace(self, secret=self.secret.restrict(self.purpose, *more))
