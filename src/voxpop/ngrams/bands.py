"""Candidates in bands of likelihood: those with about the same forecast stand together. All of it is public."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from voxpop.arrays import Int64s
from voxpop.ngrams.candidates import Candidates
from voxpop.ngrams.forecast import MOST_LEVEL, Forecast
from voxpop.ngrams.schedule import FEWEST_IN_BAND, MOST_BANDS


class Grouped(Protocol):
    """A public way to part candidates."""

    @property
    def sizes(self) -> Int64s:
        """How many candidates each band holds."""

    def of_names(self, names: Int64s) -> Int64s:
        """Return the band of each candidate, by its name."""


@dataclass(frozen=True, slots=True)
class Bands:
    """Nested sets of candidates: the first is all of them, each next one asks for twice the forecast.

    Attributes:
        sets: from all candidates to the likeliest.
    """

    sets: tuple[Candidates, ...]

    @staticmethod
    def of(candidates: Candidates, forecast: Forecast | None, least: float) -> "Bands":
        """Part candidates by their forecasts.

        Args:
            candidates: all of them.
            forecast: theirs, or None where nothing was measured.
            least: forecast of weight where the second band begins; each band ends at twice its beginning.
        """
        sets = [candidates]
        level = 0 if forecast is None else forecast.level_of(least)
        while forecast is not None and len(sets) < MOST_BANDS and 0 < level < MOST_LEVEL:
            likelier = forecast.candidates(level)
            if likelier.count < FEWEST_IN_BAND:
                break
            if likelier.count < sets[-1].count:
                sets.append(likelier)
            level *= 2
        return Bands(tuple(sets))

    @property
    def sizes(self) -> Int64s:
        """How many candidates each band holds."""
        counts = np.array([each.count for each in self.sets], np.int64)
        # Sets are nested: a band is a set without the next one.
        return np.asarray(counts - np.append(counts[1:], 0))

    def of_names(self, names: Int64s) -> Int64s:
        """Return the band of each candidate, by its name."""
        # A name is left * 2^32 + partner.
        left, partner = names >> 32, names & (2**32 - 1)
        band = np.zeros(names.size, np.int64)
        for each in self.sets[1:]:
            # The predicate of membership itself, so no candidate is in two bands or in none.
            band += each.pairs.estimates[partner] >= each.need[left]
        return band
