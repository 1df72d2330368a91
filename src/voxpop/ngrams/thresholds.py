"""Thresholds from noisy votes: low where votes are mostly real, high where they are mostly noise.

Every candidate is graded by how many of some rising marks its noisy weight reaches. How many candidates of a band reach
each mark is public, and how many noise alone would lift is known. So each band gets the mark that, all bands together,
releases most while the spurious share stays below eta. This is a function of noisy weights: no choice is less private.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]

FINE_MARKS = 24
FINE, COARSE = 0.1, 0.5
"""Steps between marks above the published threshold, in sigma; beyond a whole sigma nobody's fate hangs on them."""
FURTHEST = 20.0
HITS = 4
"""Candidates that reach the lowest mark by noise alone, for each gram released before: so many are simulated."""
LIKELIEST = 0.3
"""No mark is so low that such a candidate reaches it more often."""
PRICES = 40
LOWEST_PRICE = -9.0
"""As a logarithm, as all prices are tried."""


def marks_below(usual: float, released: int, candidates: int) -> Floats:
    """Return the rising marks below the published threshold that may decide, in sigma.

    Args:
        usual: the published threshold, in sigma.
        released: grams released at the length before.
        candidates: how many candidates there are.
    """
    lowest = -ndtri(min(LIKELIEST, HITS * released / max(candidates, 1)))
    return np.linspace(min(lowest, usual), usual, FINE_MARKS, endpoint=False)


def marks_above(usual: float, top: float) -> Floats:
    """Return the rising marks above the published threshold, in sigma; they too tell how much a released gram weighs.

    Args:
        usual: the published threshold, in sigma.
        top: where weight stops rising.
    """
    top = min(top, usual + FURTHEST)
    return np.concatenate([np.arange(usual + FINE, usual + 1, FINE), np.arange(usual + 1, max(top, usual + 1), COARSE)])


@dataclass(frozen=True, slots=True)
class Votes:
    """How the noisy votes of a length came out.

    Attributes:
        reached: int64 (bands, marks), candidates that reach each mark.
        sizes: int64 (bands), candidates.
        chances: float64 (marks), how likely a candidate that nobody holds reaches each; falling.
    """

    reached: Int64s
    sizes: Int64s
    chances: Floats

    @property
    def spurious(self) -> Floats:
        """Candidates without holders expected above each mark, by band: an estimate from above.

        Of those without holders a known share stays below the lowest mark, so what stayed below bounds how many there
        are (Storey 2002); grams that few hold are counted among them.
        """
        below = self.sizes - self.reached[:, 0] + 1
        empty = np.minimum(self.sizes, below / (1 - self.chances[0]))
        return np.asarray(empty[:, None] * self.chances)

    def choose(self, eta: float, spare: float) -> tuple[Int64s, float]:
        """Return the mark of each band, or the number of marks for none, and the spurious grams that are expected.

        A price is put on each spurious gram, the lowest that keeps the share: at any price bands choose by themselves.

        Args:
            eta: spurious grams allowed for each gram released.
            spare: spurious grams allowed beyond.
        """
        none = np.zeros((self.sizes.size, 1))
        gain, cost = np.hstack([self.reached, none]), np.hstack([self.spurious, none])
        bands = np.arange(self.sizes.size)

        def at(price: float) -> tuple[Int64s, float, float]:
            marks = np.argmax(gain - price * cost, axis=1)
            return marks, float(cost[bands, marks].sum()), float(gain[bands, marks].sum())

        low, high = LOWEST_PRICE, float(np.log(self.sizes.sum() + 1.0) - np.log(self.chances[-1]))
        for _ in range(PRICES):
            middle = (low + high) / 2
            _, spent, released = at(np.exp(middle))
            low, high = (low, middle) if spent <= eta * released + spare else (middle, high)
        marks, spent, _ = at(np.exp(high))
        return marks, spent
