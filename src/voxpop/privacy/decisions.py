"""Randomised decisions about weights. Engines make the decisions on the machines that store the weights.

One biased coin decides whether an item is released, and the error of its bias is at most 2^-128. A release contains
items but no noisy weights, so noisy weights are never computed. Each item is released with the probability that its
weight plus noise reaches the threshold. The code compares this probability with 128 uniform bits. A computation in
doubles decides almost all items. The probability is computed again with eighty digits only if the bits are within a
proved band around the double value. Therefore tails are accurate far beyond the range of noise that is drawn in
doubles.

If each user has one item, the optimal rule is known (Desfontaines, Voss, Gipson and Mandayam, 2022). An item that c
users have is released with probability pi(c), with pi(0) = 0 and

    pi(c + 1) = min(e^epsilon pi(c) + delta, 1 - e^-epsilon (1 - pi(c) - delta), 1).

No mechanism releases any item with a higher probability. The first branch is the minimum for counts up to a count
called the turn. The second branch is the minimum for larger counts up to a count called the top. For counts above the
top, the probability is 1. Each branch has a closed form, which is computed with eighty digits for every distinct count.
Therefore small probabilities of a release and small probabilities of a miss both have a high relative accuracy.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtr

from voxpop.errors import BudgetError
from voxpop.kernels.arrays import Bools, Floats, Int64s, Texts, Uint64s
from voxpop.kernels.proved import proved
from voxpop.privacy import precise
from voxpop.privacy.budget import Budget
from voxpop.privacy.gaussian import Noise
from voxpop.privacy.opening import Opening
from voxpop.privacy.precise import context, number
from voxpop.privacy.sampling import gumbel_cells, noisy_cells
from voxpop.privacy.secret import TEXT, Source


@proved("optimal-selection.md#what-integers-and-doubles-change")
def selection_probability(epsilon: float, delta: float, counts: Int64s) -> tuple[Floats, Floats]:
    """Return the probability that an item is released, and the probability that it is not, for each count.

    Proof: "Both branches have a closed form, which is computed with eighty digits for every distinct count"

    Args:
        epsilon: The epsilon of the release, more than 0.
        delta: The delta of the release, more than 0 and less than 1.
        counts: The number of users of each item, at least 0.

    Returns:
        The probabilities and their complements. Each value is rounded once.

    Raises:
        BudgetError: Epsilon or delta is out of range.

    Example:
        >>> released, missed = selection_probability(1.0, 1e-5, np.array([0, 1, 11, 12, 40]))
        >>> released.round(6).tolist(), missed.tolist()[-1]
        ([0.0, 1e-05, 0.348448, 0.760311, 1.0], 0.0)
    """
    with precise.ALONE:
        _, top = _branches(epsilon, delta)
        distinct, place = np.unique(np.minimum(counts, top + 1), return_inverse=True)
        exact = [exact_probability(epsilon, delta, count) for count in distinct.tolist()]
        both = np.array([(float(each), max(0.0, float(1 - each))) for each in exact]).reshape(-1, 2)
    return both[place, 0], both[place, 1]


@lru_cache(maxsize=4096)
@proved("optimal-selection.md#proof")
def exact_probability(epsilon: float, delta: float, count: int) -> Any:
    """Return the probability that an item is released, with eighty digits.

    Proof: "For that item, both outcomes must be (epsilon, delta)-close"

    Args:
        epsilon: The epsilon of the release, more than 0.
        delta: The delta of the release, more than 0 and less than 1.
        count: The number of users of the item.

    Returns:
        A high-precision number.

    Raises:
        BudgetError: Epsilon or delta is out of range.

    Example:
        >>> float(exact_probability(1.0, 1e-5, 1))
        1e-05
    """
    turn, top = _branches(epsilon, delta)
    if count > top:
        return number(1)
    exact, base = number(epsilon), number(delta) / context.expm1(number(epsilon))
    # Up to the turn, pi(c) = base (e^(c epsilon) - 1) with base = delta / (e^epsilon - 1).
    lower = base * context.expm1(exact * max(min(count, turn), 0))
    if count <= turn:
        return lower
    # The solution of the second branch is 1 - pi(turn + m) + base = e^(-m epsilon) (1 - pi(turn) + base).
    return 1 + base - context.exp(-exact * (count - turn)) * (1 - lower + base)


@lru_cache(maxsize=64)
@proved("optimal-selection.md#proof")
def _branches(epsilon: float, delta: float) -> tuple[int, int]:
    """Return the last count on the first branch, and the last count with a release probability below 1.

    Proof: "The recursion is the largest solution, by induction."
    """
    Budget(epsilon, delta)
    if delta <= 0:
        raise BudgetError(
            "`delta` must be more than 0. With delta 0, no item of an unknown list can be released. "
            "Choose a small delta such as 1e-7."
        )
    exact, mass = number(epsilon), number(delta)
    growth = context.exp(exact)
    base = mass / (growth - 1)
    # Compute the last count at which the first branch is smaller, and the number of further counts at which the second
    # branch is below 1 (by the closed form of the paper).
    turn = 1 + int(context.floor(context.log((growth + 2 * mass - 1) / ((growth + 1) * mass)) / exact))
    span = context.log(1 + (1 - base * context.expm1(exact * turn)) / base)
    return turn, turn + int(context.floor(span / exact))


# This is the permitted relative error of a probability in doubles. The distance (threshold - weight) * unit / scale has
# a relative error of at most 4 * 2^-53. In a tail at distance x, this error is multiplied by x^2 (Gaussian, x <= 39) or
# by x (Laplace, x <= 745). The result is at most 7e-13. ndtr and exp add less than 1e-12 (certified by a test). The
# band is more than eight times wider.
DECISION_BAND = 2.0**-36
_WORD_RANGE = 2.0**64
_CHUNK = 1 << 18


class Rule(Protocol):
    """The probability that an item is released, given its weight."""

    def probability(self, weights: Int64s) -> tuple[Floats, Floats]:
        """Return the probabilities and their complements. The smaller of the two has a relative error below 2^-36.

        Args:
            weights: The weights in units of the grid.

        Returns:
            Two arrays of the same length.
        """
        ...

    def exact(self, weight: int) -> Any:
        """Return the probability with at least sixty digits.

        Args:
            weight: The weight in units of the grid.

        Returns:
            A high-precision number.
        """
        ...


@dataclass(frozen=True, slots=True)
class ThresholdRule:
    """The rule that releases items if their noisy weight reaches a threshold.

    Args:
        noise: The kind of noise.
        scale: The sigma of Gaussian noise, or the scale of the Laplace distribution.
        threshold_units: The threshold, in units of the grid.
        unit: The weight of one unit of the grid.

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

    @proved("randomness.md#exact-decisions")
    def probability(self, weights: Int64s) -> tuple[Floats, Floats]:
        """See `Rule`.

        Proof: "Item u is released with probability p = Phi((weight - threshold)/sigma), or its Laplace or optimal
        counterpart."
        """
        # Shape (items,), the distance of each weight below the threshold, in noise scales. The difference is exact.
        missing = (self.threshold_units - weights) * self.unit / self.scale
        # Compute the smaller of the two probabilities directly, so that it keeps its precision.
        tail = ndtr(-np.abs(missing)) if self.noise == "gaussian" else np.exp(-np.abs(missing)) / 2
        below = missing > 0
        return np.where(below, tail, 1 - tail), np.where(below, 1 - tail, tail)

    @proved("randomness.md#exact-decisions")
    def exact(self, weight: int) -> Any:
        """See `Rule`.

        Proof: "Item u is released with probability p = Phi((weight - threshold)/sigma), or its Laplace or optimal
        counterpart."
        """
        units = precise.number(int(weight) - self.threshold_units)
        distance = units * precise.number(self.unit) / precise.number(self.scale)
        below = precise.normal_below if self.noise == "gaussian" else precise.laplace_below
        return below(distance)


@dataclass(frozen=True, slots=True)
class SelectionRule:
    """The rule that is optimal if each user has one item.

    Args:
        epsilon: The epsilon of the release, more than 0.
        delta: The delta of the release, more than 0.
        unit_weight: The weight of one user.
        few: The number of users up to which an item is never released.

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
        # Weights divided by `unit_weight` are numbers of users, because every user adds a weight of 1 to their only
        # item.
        users = np.maximum(weights // self.unit_weight - self.few, 0)
        return selection_probability(self.epsilon, self.delta, users)

    def exact(self, weight: int) -> Any:
        """See `Rule`."""
        return exact_probability(self.epsilon, self.delta, max(int(weight) // self.unit_weight - self.few, 0))


@dataclass(frozen=True, slots=True)
class FixedRule:
    """The rule that releases every item with the same probability.

    Args:
        chance: The probability, a high-precision number from 0 to 1.

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


@proved("randomness.md#exact-decisions")
def decide(rule: Rule, weights: Int64s, draws: Uint64s, *, band: float = DECISION_BAND) -> Bools:
    """Release each item with the probability of its rule.

    Proof: "The item is released if a uniform 128-bit number U is below p 2^128."

    Args:
        rule: The probability that an item is released, given its weight.
        weights: The weight of each item, in units of the grid.
        draws: Two words per item from `Secret.draws`, the more significant word first.
        band: The error bound of the computation in doubles. Only tests increase it.

    Returns:
        Whether each item is released.

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


@proved("randomness.md#what-integers-and-doubles-change")
def _decide_chunk(rule: Rule, weights: Int64s, draws: Uint64s, band: float) -> Bools:
    """Return whether each item is released, computed in doubles if they are accurate enough.

    Proof: "Doubles decide unless U is within a proved band around the double value of p"
    """
    probability, complement = rule.probability(weights)
    # Shape (items,). Measure from the end of [0, 1] that has the smaller probability, so that this probability keeps
    # its precision in doubles.
    unlikely = probability <= complement
    # The tail has the same unit as `drawn` below, which is the first 64-bit word.
    tail = np.where(unlikely, probability, complement) * _WORD_RANGE
    # For likely items, measure from the other end, where ~u is 2^64 - 1 - u.
    drawn = np.where(unlikely, draws[:, 0], ~draws[:, 0]).astype(np.float64)
    margin = tail * band + 2.0  # two units cover the effect of the second word and the truncation
    inside = drawn < tail
    released: Bools = inside == unlikely
    for index in np.flatnonzero(np.abs(drawn - tail) <= margin):
        released[index] = _decide_exactly(rule, int(weights[index]), draws[index])
    return released


@proved("randomness.md#exact-decisions")
def _decide_exactly(rule: Rule, weight: int, words: Uint64s) -> bool:
    """Return whether one item is released, computed with eighty digits.

    Proof: "The error of each probability is at most 2^-128"
    """
    with precise.ALONE:
        uniform = precise.number((int(words[0]) << 64) | int(words[1])) / precise.number(1 << 128)
        # Because u is a multiple of 2^-128, the probability of u < p is p rounded up to a multiple of 2^-128
        # (docs/privacy/randomness.md).
        return bool(uniform < rule.exact(weight))


@dataclass(frozen=True, slots=True)
class ReleaseDecisions(Opening):
    """One biased coin per item, which determines whether the item is released.

    Attributes:
        rule: The probability that an item is released, given its weight.
        secret: The source of the bits.
        purpose: The purpose of the draws.
    """

    rule: Rule
    secret: Source
    purpose: str

    @proved("randomness.md#exact-decisions")
    def __call__(self, weights: Int64s, names: Int64s, texts: Texts | None) -> Bools:
        """Return whether each item is released.

        Proof: "The item is released if a uniform 128-bit number U is below p 2^128."

        Args:
            weights: The weights in units of the grid.
            names: The numbers that identify the items in draws. They do not depend on the engine.
            texts: The bytes of the items and the start of each item, if draws identify items by their bytes.
        """
        return decide(self.rule, weights, draws_of(self.secret, self.purpose, names, texts))

    def restricted(self) -> "ReleaseDecisions":
        """Return a copy that can be sent to workers and is restricted to the purposes of its draws."""
        return replace(self, secret=self.secret.restrict(self.purpose, f"{self.purpose}{TEXT}"))


@dataclass(frozen=True, slots=True)
class NoisyLevels(Opening):
    """The number of coins that an item wins with one draw. Their probabilities must not increase from coin to coin.

    If all rules have the same noise and their thresholds increase, this is the number of thresholds that a noisy weight
    reaches.

    Attributes:
        rules: The probability of each coin, given the weight of the item.
        secret: The source of the bits.
        purpose: The purpose of the draws.
    """

    rules: tuple[Rule, ...]
    secret: Source
    purpose: str

    @proved("ngrams.md#what-integers-and-doubles-change")
    def __call__(self, weights: Int64s, names: Int64s, texts: Texts | None = None) -> Int64s:
        """Return the level of each item, from 0 to the number of rules.

        Proof: "Fewer than 2^7 cutpoints cost 2^-128 each for each candidate with a level, and walk_slack covers this
        cost."

        Args:
            weights: The weights in units of the grid.
            names: The numbers that identify the items in draws. They do not depend on the engine.
            texts: The bytes of the items and the start of each item, if draws identify items by their bytes.
        """
        draws = draws_of(self.secret, self.purpose, names, texts)
        # All cutpoints share one draw of 128 bits per item. Thresholds increase, so an item that misses one threshold
        # misses all later thresholds. Therefore levels have the distribution of one noisy weight
        # (docs/privacy/ngrams.md, "Levels").
        levels = np.zeros(weights.size, np.int64)
        if not self.rules:
            return levels
        # Most items win no coin. An item that loses a coin also loses all later coins, so bisect the coins.
        first = np.flatnonzero(decide(self.rules[0], weights, draws))
        spans = [(first, 1, len(self.rules))]
        while spans:
            still, low, high = spans.pop()
            if low == high or not still.size:
                levels[still] = low
                continue
            middle = (low + high + 1) // 2
            won = decide(self.rules[middle - 1], weights[still], draws[still])
            spans += [(still[~won], low, middle - 1), (still[won], middle, high)]
        return levels

    def restricted(self) -> "NoisyLevels":
        """Return a copy that can be sent to workers and is restricted to the purposes of its draws."""
        return replace(self, secret=self.secret.restrict(self.purpose, f"{self.purpose}{TEXT}"))


@dataclass(frozen=True, slots=True)
class CellNoise(Opening):
    """Weights with Gaussian noise, in whole cells, computed by `noisy_cells`.

    Attributes:
        sigma: The standard deviation, in units of weight.
        unit: The number of units of the grid in a weight of 1.
        cell: The number of units of the grid in a cell.
        secret: The source of the bits.
        purpose: The purpose of the draws.
    """

    sigma: float
    unit: int
    cell: int
    secret: Source
    purpose: str

    @proved("randomness.md#what-integers-and-doubles-change")
    def __call__(self, weights: Int64s, names: Int64s) -> Int64s:
        """Return the noisy weight for each name, in cells.

        Proof: "are whole numbers or cells of a public grid, drawn by exact inversion of the same bits"
        """
        draws: Any = self.secret.draws(self.purpose, names.astype(np.uint64), 0)
        return noisy_cells(weights, self.sigma, self.unit, self.cell, draws)

    def restricted(self) -> "CellNoise":
        """Return a copy that can be sent to workers and is restricted to its purpose."""
        return replace(self, secret=self.secret.restrict(self.purpose))


@dataclass(frozen=True, slots=True)
class GumbelNoise(Opening):
    """Counts with Gumbel noise, in whole cells, computed by `gumbel_cells`.

    Only the order of the noisy counts may be released, never their values.

    Attributes:
        rate: The rate of the noise, per count.
        unit: The number of units of the grid in a count of 1.
        secret: The source of the bits.
        purpose: The purpose of the draws.
    """

    rate: float
    unit: int
    secret: Source
    purpose: str

    @proved("top.md#the-mechanism")
    def __call__(self, weights: Int64s, names: Int64s) -> Int64s:
        """Return the noisy count for each name, in cells.

        Proof: "Each u_i gets Gumbel noise of the public rate r, rounded to a public grid."
        """
        return gumbel_cells(weights, self.rate, self.unit, self.secret.draws(self.purpose, names.astype(np.uint64), 0))

    def restricted(self) -> "GumbelNoise":
        """Return a copy that can be sent to workers and is restricted to its purpose."""
        return replace(self, secret=self.secret.restrict(self.purpose))


@proved("randomness.md#independent-draws")
def draws_of(secret: Source, purpose: str, names: Int64s, texts: Texts | None) -> Uint64s:
    """Return 128 random bits for each item, as uint64 (items, 2).

    Proof: "A single word is identified by its bytes, a longer gram by the ranks of its two parts among earlier released
    grams"

    Draws identify items by their bytes if `texts` is given, and by their numbers otherwise.
    """
    if texts is None:
        return secret.draws(purpose, names.astype(np.uint64), 0)
    return secret.text_draws(purpose, *texts)
