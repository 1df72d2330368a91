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
from voxpop.ngrams.schedule import COARSE_STEP, FINE_CUTPOINTS, FINE_STEP, FURTHEST, HITS, LIKELIEST

HALVINGS = 40
"""Of the interval of log-prices that is searched: it is 2^-40 of its length then, so more change nothing."""
LOWEST_PRICE = -9.0
"""As a logarithm; prices are in released grams for each spurious one."""


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
    def spurious(self) -> Floats:
        """Candidates without holders expected above each cutpoint, by band: an estimate from above.

        Of those without holders a known share stays below the lowest cutpoint, so what stayed below bounds how many
        there are (Storey 2002); grams that few hold are counted among them.
        """
        # (bands,), candidates below the lowest cutpoint, plus 1, so that no estimate is 0.
        below = self.sizes - self.reached[:, 0] + 1
        # Of n empty candidates (1 - p_0) n stay below, so n is at most about below / (1 - p_0) (Storey, 2002).
        empty = np.minimum(self.sizes, below / (1 - self.chances[0]))
        # (bands, cutpoints).
        return np.asarray(empty[:, None] * self.chances)

    def choose(self, eta: float, spare: float) -> tuple[Int64s, Floats]:
        """Return the cutpoint of each band (the number of cutpoints for none) and the spurious grams expected of it.

        A price is put on each spurious gram, the lowest that keeps the share: at any price bands choose by themselves.

        Args:
            eta: spurious grams allowed for each gram released.
            spare: spurious grams allowed beyond.
        """
        # A last column for the cutpoint that nobody reaches: nothing gained, nothing spent.
        none = np.zeros((self.sizes.size, 1))
        gain, cost = np.hstack([self.reached, none]), np.hstack([self.spurious, none])
        bands = np.arange(self.sizes.size)

        def at(price: float) -> tuple[Int64s, float, float]:
            # A Lagrangian: at a given price each band maximises by itself.
            cutpoints = np.argmax(gain - price * cost, axis=1)
            return cutpoints, float(cost[bands, cutpoints].sum()), float(gain[bands, cutpoints].sum())

        # At the upper price no cutpoint pays: (N + 1) / p_last, times p_last at least, is above all that can come out.
        low, high = LOWEST_PRICE, float(np.log(self.sizes.sum() + 1.0) - np.log(self.chances[-1]))
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            _, spent, released = at(np.exp(middle))
            low, high = (low, middle) if spent <= eta * released + spare else (middle, high)
        # From the upper end, which keeps the share; the lower one may not.
        cutpoints, _, _ = at(np.exp(high))
        return cutpoints, cost[bands, cutpoints]
