"""Which valid candidates are worth a vote: the likely ones by forecast (our own method, docs/privacy/ngrams.md)."""

from collections.abc import Callable
from dataclasses import dataclass

from voxpop.arrays import Int64s
from voxpop.ngrams.candidates import Candidates
from voxpop.ngrams.forecast import MOST_LEVEL, Forecast
from voxpop.ngrams.schedule import BREADTH, FIRST_BREADTH, LIKELY, MANY, WORTHWHILE, YIELD


@dataclass(frozen=True, slots=True)
class Guide:
    """The rule that prunes.

    Attributes:
        breadth: the most likely candidates are kept, up to this many for each released gram.
        released: how many grams were released at the length before.
        least: forecast, in weight, below which candidates turned out not to be worth a vote; 0 where nothing is known.
    """

    breadth: int
    released: int
    least: float

    @property
    def enough(self) -> int:
        """How many candidates are never too many."""
        return self.breadth * self.released

    def prune(self, forecast: Forecast, threshold_of: Callable[[int], float]) -> Candidates:
        """Return the candidates worth a vote: of the lowest level which leaves few enough, or only likely ones.

        The threshold depends on how many candidates there are, and those on the threshold. Both conditions, once true,
        stay true as the level rises, so the level is found by bisection. Everything here is public.

        Args:
            forecast: of the valid candidates.
            threshold_of: the threshold as a function of the number of candidates.
        """

        def low_enough(level: int) -> bool:
            count = forecast.candidates(level).count
            # Few enough, or so likely that none is to be cut: both stay true as the level rises.
            return count <= self.enough or level * forecast.unit >= LIKELY * threshold_of(count)

        level = forecast.level_of(self.least)
        if level == 0 and forecast.valid.count <= self.enough:
            return forecast.valid
        if not low_enough(level):
            too_low, high = level, MOST_LEVEL
            # Invariant: too_low is not low enough, high is (or is the last level there is).
            while high - too_low > 1:
                middle = (too_low + high) // 2
                too_low, high = (too_low, middle) if low_enough(middle) else (middle, high)
            level = high
        return forecast.candidates(level)


def worth_measuring(valid: int, length: int, released: int) -> bool:
    """Say whether there is enough to prune among the valid candidates that follow grams of a length."""
    return valid > WORTHWHILE * breadth_after(length) * released


def breadth_after(length: int) -> int:
    """Return how many candidates a released gram of this length is worth."""
    return FIRST_BREADTH if length == 1 else BREADTH


def worthless(sizes: Int64s, selected: Int64s) -> int:
    """Return how many bands, from the least likely one, gave too little for their votes.

    Args:
        sizes: int64 (bands), candidates.
        selected: int64 (bands), how many of them were released.
    """
    poor = 0
    for band, (size, chosen) in enumerate(zip(sizes, selected, strict=True)):
        # Bands rise in likelihood: the first good one ends the search.
        if size >= MANY and chosen >= YIELD * size:
            break
        if size >= MANY:
            poor = band + 1
    return poor
