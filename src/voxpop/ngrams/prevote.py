"""A wide vote before the vote: pruned candidates that stand out join the vote of their length.

Forecasts miss phrases whose words are common but seldom side by side, as in a text that many people pass on. So all
valid candidates that were pruned are voted on with a little of the budget, and the few of them that stand out take part
in the vote, in bands of their own.
"""

from dataclasses import dataclass

import numpy as np

from voxpop.arrays import Int64s
from voxpop.corpus.subset import Subset
from voxpop.ngrams.bands import Bands
from voxpop.ngrams.candidates import Candidates
from voxpop.ngrams.schedule import FIRST_STANDING_OUT, PREVOTE_STEPS, STANDING_OUT


@dataclass(frozen=True, slots=True)
class Joined:
    """Likely candidates by forecast, and further ones that stood out.

    Attributes:
        likely: by forecast.
        further: int64, rising, names of the others.
        band: int64, from 0, how far each of them stood out.
        sigma: of the vote in which they did.
    """

    likely: Candidates
    further: Int64s
    band: Int64s
    sigma: float

    @property
    def count(self) -> int:
        """How many there are, exactly."""
        return self.likely.count + self.further.size

    def names(self, numbers: Int64s) -> Int64s:
        """Return the names of candidates by number: each has exactly one."""
        first = self.likely.count
        # Forecast ones have the numbers from 0, the others those behind: each candidate exactly one.
        mine = numbers < first
        return np.concatenate([self.likely.names(numbers[mine]), self.further[numbers[~mine] - first]])

    @property
    def subset(self) -> Subset:
        """Which of the valid candidates they are."""
        return Subset(self.likely, self.further)


@dataclass(frozen=True, slots=True)
class JoinedBands:
    """Bands by forecast, and behind them those of candidates that stood out.

    Attributes:
        bands: of the likely candidates.
        joined: all candidates.
    """

    bands: Bands
    joined: Joined

    @property
    def sets(self) -> tuple[Candidates, ...]:
        """The bands by forecast."""
        return self.bands.sets

    @property
    def sizes(self) -> Int64s:
        """How many candidates each band holds."""
        return np.append(self.bands.sizes, np.bincount(self.joined.band, minlength=len(PREVOTE_STEPS) + 1))

    def of_names(self, names: Int64s) -> Int64s:
        """Return the band of each candidate, by its name."""
        found, further = self.bands.of_names(names), self.joined.further
        if further.size:
            place = np.minimum(further.searchsorted(names), further.size - 1)
            mine = further[place] == names
            # Bands of those that stood out follow the bands by forecast.
            found[mine] = len(self.sets) + self.joined.band[place[mine]]
        return found


def hits_for(length: int) -> float:
    """Return how many candidates may stand out by noise alone, for each gram released before."""
    return FIRST_STANDING_OUT if length == 2 else STANDING_OUT
