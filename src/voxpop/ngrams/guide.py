"""Which valid candidates are worth a vote: the likely ones by forecast (our own method, docs/privacy/ngrams.md)."""

from collections.abc import Callable
from dataclasses import dataclass

from voxpop.ngrams.candidates import Candidates
from voxpop.ngrams.forecast import MOST_LEVEL, Forecast

FIRST_BREADTH = 12
"""Candidates of length 2 for each released token."""
BREADTH = 3
"""Candidates of length k+1 for each released gram of length k, from k = 2 on.

Both were measured on four collections that differ thirtyfold in users and in tokens per user; each is within 2 percent
of the best value on all of them (docs/design/0002-ngrams.md).
"""
WORTHWHILE = 2
"""Where fewer than this many times the candidates to be kept are valid, pruning cannot pay for its measurement."""


@dataclass(frozen=True, slots=True)
class Guide:
    """The rule that prunes.

    Attributes:
        kappa: candidates whose forecast is at least `kappa` times the threshold are always kept.
        breadth: so are the most likely ones, up to this many for each released gram.
        released: how many grams were released at the length before.
    """

    kappa: float
    breadth: int
    released: int

    @property
    def enough(self) -> int:
        """How many candidates are never too many."""
        return self.breadth * self.released

    def prune(self, forecast: Forecast, threshold_of: Callable[[int], float]) -> Candidates:
        """Return the candidates that reach the lowest level which leaves few enough, or only likely ones.

        The threshold depends on how many candidates there are, and those on the threshold. Both conditions, once true,
        stay true as the level rises, so the level is found by bisection. Everything here is public.

        Args:
            forecast: of the valid candidates.
            threshold_of: the threshold as a function of the number of candidates.
        """
        if forecast.valid.count <= self.enough:
            return forecast.valid

        def low_enough(level: int) -> bool:
            count = forecast.candidates(level).count
            return count <= self.enough or level * forecast.unit >= self.kappa * threshold_of(count)

        too_low, high = 0, MOST_LEVEL
        while high - too_low > 1:
            middle = (too_low + high) // 2
            too_low, high = (too_low, middle) if low_enough(middle) else (middle, high)
        return forecast.candidates(high)


def worth_measuring(valid: int, length: int, released: int) -> bool:
    """Say whether there is enough to prune among the valid candidates that follow grams of a length."""
    return valid > WORTHWHILE * breadth_after(length) * released


def breadth_after(length: int) -> int:
    """Return how many candidates a released gram of this length is worth."""
    return FIRST_BREADTH if length == 1 else BREADTH
