"""Which items are released: one biased coin per item, with the bias right to 2^-128.

A release says which items passed, not by how much, so nobody needs the noisy weights. Each item passes with the
probability that its weight plus noise reaches the threshold, and that probability is compared with 128 uniform bits.
Doubles settle nearly all of them: only where the bits fall within a proved band around the double probability is it
computed again in eighty digits. So tails are right far beyond what drawing noise in doubles could give.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtr

from voxpop.arrays import Bools, Floats, Int64s, Uint64s
from voxpop.privacy import precise
from voxpop.privacy.optimal import exact_probability, selection_probability
from voxpop.privacy.release_table import ReleaseTable
from voxpop.privacy.threshold import Noise

# Relative error allowed to a double probability. The distance (threshold - weight) * unit / scale is off by at most
# 4 * 2^-53 of itself, which moves a tail at distance x by x^2 (Gaussian, x <= 39) or x (Laplace, x <= 745) times as
# much: 7e-13. ndtr and exp add less than 1e-12 (certified by a test). The band is ten times wider.
BAND = 2.0**-36
_WORD = 2.0**64
_CHUNK = 1 << 18


class Rule(Protocol):
    """How likely an item is released, given its weight."""

    def probability(self, weights: Int64s) -> tuple[Floats, Floats]:
        """The probabilities and their complements; the smaller of the two right to a relative 2^-36.

        Args:
            weights: In units of the grid.

        Returns:
            Two arrays of the same length.
        """
        ...

    def exact(self, weight: int) -> Any:
        """The probability in at least sixty digits.

        Args:
            weight: In units of the grid.

        Returns:
            A high-precision number.
        """
        ...


@dataclass(frozen=True, slots=True)
class ThresholdRule:
    """Release what reaches a threshold after noise.

    Args:
        noise: Which noise.
        scale: Sigma, or the scale of the Laplace distribution.
        threshold_units: The threshold in units of the grid.
        unit: The grid: what one unit of weight is worth.

    Example:
        >>> rule = ThresholdRule("gaussian", scale=1.0, threshold_units=8, unit=0.5)
        >>> released, missed = rule.probability(np.array([8], dtype=np.int64))
        >>> released.tolist(), float(rule.exact(8))
        ([0.5], 0.5)
    """

    noise: Noise
    scale: float
    threshold_units: int
    unit: float

    def probability(self, weights: Int64s) -> tuple[Floats, Floats]:
        """See `Rule`."""
        # (items,), how far weights lie below the threshold, in scales of the noise; the difference is exact.
        missing = (self.threshold_units - weights) * self.unit / self.scale
        # The smaller of both probabilities, so that it keeps its digits.
        tail = ndtr(-np.abs(missing)) if self.noise == "gaussian" else np.exp(-np.abs(missing)) / 2
        below = missing > 0
        return np.where(below, tail, 1 - tail), np.where(below, 1 - tail, tail)

    def exact(self, weight: int) -> Any:
        """See `Rule`."""
        units = precise.number(int(weight) - self.threshold_units)
        distance = units * precise.number(self.unit) / precise.number(self.scale)
        below = precise.normal_below if self.noise == "gaussian" else precise.laplace_below
        return below(distance)


@dataclass(frozen=True, slots=True)
class SelectionRule:
    """The optimal rule when each user holds one item.

    Args:
        epsilon: More than 0.
        delta: More than 0.
        unit_weight: The weight of one user.
        few: So many users do not count: an item of no more is never released.

    Example:
        >>> float(SelectionRule(1.0, 1e-5, unit_weight=4).exact(4))
        1e-05
        >>> [float(SelectionRule(1.0, 1e-5, unit_weight=4, few=9).exact(4 * users)) for users in (9, 10)]
        [0.0, 1e-05]
    """

    epsilon: float
    delta: float
    unit_weight: int
    few: int = 0

    def probability(self, weights: Int64s) -> tuple[Floats, Floats]:
        """See `Rule`."""
        # Weights are counts of users here: every user gives its one item 1.
        users = np.maximum(weights // self.unit_weight - self.few, 0)
        return selection_probability(self.epsilon, self.delta, users)

    def exact(self, weight: int) -> Any:
        """See `Rule`."""
        return exact_probability(self.epsilon, self.delta, max(int(weight) // self.unit_weight - self.few, 0))


@dataclass(frozen=True, slots=True)
class TableRule:
    """Release with the probabilities of a table: the stored doubles, or their complements, without rounding.

    Args:
        table: A certified table.

    Example:
        >>> table = ReleaseTable(2, np.array([0.25, 0.125]), turn=1)
        >>> TableRule(table).probability(np.array([0, 2, 3, 9]))[0].tolist()
        [0.0, 0.25, 0.875, 0.875]
        >>> float(TableRule(table).exact(9))
        0.875
    """

    table: ReleaseTable

    def probability(self, weights: Int64s) -> tuple[Floats, Floats]:
        """See `Rule`."""
        tails, likely = self.table.at(weights)
        return np.where(likely, 1.0 - tails, tails), np.where(likely, tails, 1.0 - tails)

    def exact(self, weight: int) -> Any:
        """See `Rule`."""
        tails, likely = self.table.at(np.array([weight], dtype=np.int64))
        tail = precise.number(float(tails[0]))
        return 1 - tail if likely[0] else tail


@dataclass(frozen=True, slots=True)
class FixedRule:
    """Release everything with one probability.

    Args:
        chance: A high-precision number from 0 to 1.

    Example:
        >>> FixedRule(precise.number(0.25)).probability(np.zeros(2, np.int64))[0].tolist()
        [0.25, 0.25]
    """

    chance: Any

    def probability(self, weights: Int64s) -> tuple[Floats, Floats]:
        """See `Rule`."""
        return np.full(len(weights), float(self.chance)), np.full(len(weights), float(1 - self.chance))

    def exact(self, weight: int) -> Any:
        """See `Rule`."""
        return self.chance


def decide(rule: Rule, weights: Int64s, draws: Uint64s, *, band: float = BAND) -> Bools:
    """Release each item with the probability its rule gives it.

    Args:
        rule: How likely an item is released, given its weight.
        weights: One per item, in units of the grid.
        draws: Two words per item, the more significant first: `Secret.draws`.
        band: How far doubles are trusted; only tests widen it.

    Returns:
        Which items are released.

    Example:
        >>> rule = ThresholdRule("gaussian", scale=1.0, threshold_units=0, unit=1.0)
        >>> decide(rule, np.array([9, -9]), np.full((2, 2), 2**63, dtype=np.uint64)).tolist()
        [True, False]
    """
    weights = np.asarray(weights, dtype=np.int64)
    released = np.empty(len(weights), dtype=np.bool_)
    for start in range(0, len(weights), _CHUNK):
        part = slice(start, start + _CHUNK)
        released[part] = _decide_chunk(rule, weights[part], draws[part], band)
    return released


def _decide_chunk(rule: Rule, weights: Int64s, draws: Uint64s, band: float) -> Bools:
    probability, complement = rule.probability(weights)
    # (items,): from the end of [0, 1] where the smaller probability is, so that doubles keep its digits.
    unlikely = probability <= complement
    # In units of the first word, as `drawn` below.
    tail = np.where(unlikely, probability, complement) * _WORD
    # For likely items count from the other end: ~u is 2^64 - 1 - u.
    drawn = np.where(unlikely, draws[:, 0], ~draws[:, 0]).astype(np.float64)
    margin = tail * band + 2.0  # two words for what the second word and the truncation can move
    inside = drawn < tail
    released: Bools = inside == unlikely
    for index in np.flatnonzero(np.abs(drawn - tail) <= margin):
        released[index] = _decide_exactly(rule, int(weights[index]), draws[index])
    return released


def _decide_exactly(rule: Rule, weight: int, words: Uint64s) -> bool:
    with precise.ALONE:
        uniform = precise.number((int(words[0]) << 64) | int(words[1])) / precise.number(1 << 128)
        # u < p for u a whole number of 2^-128: true with probability p rounded up to 2^-128
        # (docs/privacy/randomness.md).
        return bool(uniform < rule.exact(weight))
