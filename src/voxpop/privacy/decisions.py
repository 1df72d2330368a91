"""Randomised answers about weights, ready to be sent to where the weights are."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from voxpop.arrays import Bools, Int64s, Texts, Uint64s
from voxpop.privacy.decide import Rule, decide
from voxpop.privacy.gumbel_noise import gumbel_cells
from voxpop.privacy.rounded_noise import noisy_cells
from voxpop.privacy.secret import TEXT, Source


@dataclass(frozen=True, slots=True)
class ReleaseDecisions:
    """One biased coin per item: is it released?

    Attributes:
        rule: how likely an item is released, given its weight.
        secret: source of the bits.
        purpose: what they are for.
    """

    rule: Rule
    secret: Source
    purpose: str

    def __call__(self, weights: Int64s, names: Int64s, texts: Texts | None) -> Bools:
        """Return which items are released.

        Args:
            weights: in units of the grid.
            names: what draws name an item by, the same on every engine.
            texts: the bytes of the items and where each begins, where draws name them by their bytes instead.
        """
        return decide(self.rule, weights, _draws(self.secret, self.purpose, names, texts))

    def restricted(self) -> "ReleaseDecisions":
        """Return decisions that can be sent away and know no other purpose."""
        return replace(self, secret=self.secret.restrict(self.purpose, f"{self.purpose}{TEXT}"))


@dataclass(frozen=True, slots=True)
class NoisyLevels:
    """How many of some coins an item wins, all by one toss: each coin is at most as likely as the one before.

    With rules of rising thresholds and the same noise, the number of thresholds that a noisy weight reaches.

    Attributes:
        rules: how likely an item wins each coin, given its weight.
        secret: source of the bits.
        purpose: what they are for.
    """

    rules: tuple[Rule, ...]
    secret: Source
    purpose: str

    def __call__(self, weights: Int64s, names: Int64s, texts: Texts | None = None) -> Int64s:
        """Return the level of each item, from 0 to the number of rules.

        Args:
            weights: in units of the grid.
            names: what draws name an item by, the same on every engine.
            texts: the bytes of the items and where each begins, where draws name them by their bytes instead.
        """
        draws = _draws(self.secret, self.purpose, names, texts)
        # One draw of 128 bits an item, the same for all cutpoints: thresholds rise, so whoever misses one misses the
        # rest, and levels have the law of one noisy weight (docs/privacy/ngrams.md, "Levels").
        levels = np.zeros(weights.size, np.int64)
        if not self.rules:
            return levels
        # Most items win nothing; of the others whoever misses a coin misses the later ones, so coins are halved.
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
        """Return levels that can be given elsewhere and know no other purpose."""
        return replace(self, secret=self.secret.restrict(self.purpose, f"{self.purpose}{TEXT}"))


@dataclass(frozen=True, slots=True)
class CellNoise:
    """Weights with Gaussian noise, in whole cells; see `noisy_cells`.

    Attributes:
        sigma: standard deviation, in weight.
        unit: units of the grid in a weight of 1.
        cell: units in a cell.
        secret: source of the bits.
        purpose: what they are for.
    """

    sigma: float
    unit: int
    cell: int
    secret: Source
    purpose: str

    def __call__(self, weights: Int64s, names: Int64s) -> Int64s:
        """Return noisy weights by name, in cells."""
        draws: Any = self.secret.draws(self.purpose, names.astype(np.uint64), 0)
        return noisy_cells(weights, self.sigma, self.unit, self.cell, draws)

    def restricted(self) -> "CellNoise":
        """Return noise that can be sent away and knows no other purpose."""
        return replace(self, secret=self.secret.restrict(self.purpose))


@dataclass(frozen=True, slots=True)
class GumbelNoise:
    """Counts with Gumbel noise, in whole cells; see `gumbel_cells`. Their order may be shown, they themselves never.

    Attributes:
        rate: of the noise, per count.
        unit: units of the grid in a count of 1.
        secret: source of the bits.
        purpose: what they are for.
    """

    rate: float
    unit: int
    secret: Source
    purpose: str

    def __call__(self, weights: Int64s, names: Int64s) -> Int64s:
        """Return noisy counts by name, in cells."""
        return gumbel_cells(weights, self.rate, self.unit, self.secret.draws(self.purpose, names.astype(np.uint64), 0))

    def restricted(self) -> "GumbelNoise":
        """Return noise that can be sent away and knows no other purpose."""
        return replace(self, secret=self.secret.restrict(self.purpose))


def _draws(secret: Source, purpose: str, names: Int64s, texts: Texts | None) -> Uint64s:
    if texts is None:
        return secret.draws(purpose, names.astype(np.uint64), 0)
    return secret.text_draws(purpose, *texts)
