"""Thresholds from noisy votes: low where votes are mostly real, high where they are mostly noise.

The level of a candidate is how many of some rising cutpoints its noisy weight reaches. How many candidates of a band
reach each cutpoint is public, and how many noise alone would lift is known. So each band gets the cutpoint that, all
bands together, releases most while the spurious share stays below eta. This is a function of noisy
weights: no choice is less private.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from voxpop.arrays import Floats, Int64s
from voxpop.kernels.cutpoints import at_prices, charges
from voxpop.ngrams.schedule import COARSE_STEP, FINE_CUTPOINTS, FINE_STEP, FURTHEST, HITS, LIKELIEST, MOST_REACH

PRICES = np.geomspace(0.01, 10_000, 1_000)
"""In released grams for each spurious one. At the lowest a spurious gram costs next to nothing, at the highest a
hundred times what `eta` allows by default; steps of 1.4 percent."""


def cutpoints_below(usual: float, released: int, candidates: int, hits: int = HITS) -> Floats:
    """Return the rising cutpoints below the published threshold that may decide, in sigma.

    Args:
        usual: the published threshold, in sigma.
        released: grams released at the length before.
        candidates: how many candidates there are.
        hits: candidates that reach the lowest by noise alone, for each gram released before.
    """
    # Phi^-1(1 - p): N candidates without votes reach it hits * |S_k| times on average.
    lowest = -ndtri(min(LIKELIEST, hits * released / max(candidates, 1)))
    return np.linspace(min(lowest, usual), usual, FINE_CUTPOINTS, endpoint=False)


def cutpoints_above(usual: float, top: float) -> Floats:
    """Return the rising cutpoints above the published threshold, in sigma; they tell how much a gram weighs.

    Args:
        usual: the published threshold, in sigma.
        top: where weight stops rising.
    """
    top = min(top, usual + FURTHEST)
    fine = np.arange(usual + FINE_STEP, usual + 1, FINE_STEP)
    return np.concatenate([fine, np.arange(usual + 1, max(top, usual + 1), COARSE_STEP)])


@dataclass(frozen=True, slots=True)
class Votes:
    """How the noisy votes of a length came out.

    Attributes:
        reached: int64 (bands, cutpoints), candidates that reach each cutpoint.
        sizes: int64 (bands), candidates.
        chances: float64 (cutpoints), how likely a candidate that nobody holds reaches each; falling.
    """

    reached: Int64s
    sizes: Int64s
    chances: Floats

    @property
    def reference(self) -> int:
        """The cutpoint r of which those below tell how many candidates nobody holds (Storey 2002)."""
        return int(np.argmax(self.chances <= MOST_REACH))

    @property
    def empty(self) -> Floats:
        """Candidates that nobody holds, by band: an estimate from above.

        Grams that few hold are counted among them.
        """
        # (bands,); plus 1, so that no estimate is 0.
        below = self.sizes - self.reached[:, self.reference] + 1
        return np.asarray(np.minimum(self.sizes, below / (1 - self.chances[self.reference])))

    def choose(self, share: float, spare: float) -> tuple[Int64s, Floats]:
        """Return the cutpoint of each band (the number of cutpoints for none) and the spurious grams charged for it.

        A price is put on each spurious gram, the lowest that keeps the share: at any price bands choose by themselves.
        What is charged is no less than what comes out on average, whatever the candidates are (docs/privacy/ngrams.md,
        "Spurious grams").

        Args:
            share: spurious grams allowed for each gram released.
            spare: spurious grams allowed beyond.
        """
        reference = self.reference
        below, each = self.sizes - self.reached[:, reference], 1 / (1 - float(self.chances[reference]))
        # (bands, prices) each.
        taken, released, spurious = at_prices(self.reached, below, each, self.chances, PRICES)
        excess = spurious.sum(axis=0) - share * released.sum(axis=0) - spare
        charged = charges(self.reached, self.sizes, reference, self.chances, PRICES, share, excess, released, spurious)
        fitting = np.flatnonzero(excess <= 0)
        return taken[:, fitting[0]] if fitting.size else np.full(below.size, self.chances.size), charged
