"""Randomised answers about weights, ready to be sent to where the weights are."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxpop.privacy.decide import Rule, decide
from voxpop.privacy.measured import noisy_cells
from voxpop.privacy.secret import TEXT, Source

Int64s = NDArray[np.int64]
Texts = tuple[NDArray[np.uint8], Int64s]


@dataclass(frozen=True, slots=True)
class Coins:
    """One biased coin per item: is it released?

    Attributes:
        rule: how likely an item is released, given its weight.
        secret: source of the bits.
        purpose: what they are for.
    """

    rule: Rule
    secret: Source
    purpose: str

    def __call__(self, weights: Int64s, names: Int64s, texts: Texts | None) -> NDArray[np.bool_]:
        """Return which items are released.

        Args:
            weights: in units of the grid.
            names: what draws name an item by, the same on every engine.
            texts: the bytes of the items and where each begins, where draws name them by their bytes instead.
        """
        if texts is None:
            draws = self.secret.draws(self.purpose, names.astype(np.uint64), 0)
        else:
            draws = self.secret.text_draws(self.purpose, *texts)
        return decide(self.rule, weights, draws)

    def lent(self) -> "Coins":
        """Return coins that can be sent away and know no other purpose."""
        return replace(self, secret=self.secret.lend(self.purpose, f"{self.purpose}{TEXT}"))


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

    def lent(self) -> "CellNoise":
        """Return noise that can be sent away and knows no other purpose."""
        return replace(self, secret=self.secret.lend(self.purpose))
