"""The weights of the items that somebody holds: private."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, repr=False)
class Histogram:
    """Weight by item, for the items of the bounded sets and for no others.

    Attributes:
        ids: int64 (support), which items: ids in rising order, or names of grams (see `Levels`) in any order.
        weights: int64 (support), positive, in units of the weighting's grid.
    """

    ids: NDArray[np.int64]
    weights: NDArray[np.int64]

    def __repr__(self) -> str:
        return "Histogram(private)"
