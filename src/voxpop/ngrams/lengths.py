"""What each length of an extraction gets, and what it ran with."""

from dataclasses import dataclass
from typing import Any, final

from voxpop.ngrams.spurious import SpuriousAllowance

CROWDED = 10**6
"""Candidates for each gram released before, at which the highest threshold shown applies."""
NUMBERS = ("length", "sigma", "measurement_sigma", "prevote_sigma", "candidates", "threshold", "spurious")
"""Of a length that ran, in the order in which a plan shows them."""
BAND = ("candidates", "threshold", "released")
"""The same of a band."""


@final
@dataclass(frozen=True, slots=True)
class LengthPlan:
    """What one length gets, before any data are read.

    Attributes:
        length: tokens in a gram.
        sigma: standard deviation of the noise on a gram's weight, if no length gives up its part.
        measurement_sigma: the same of the measurement that the forecast of this length rests on, or None.
        lowest_threshold: where there are no more candidates than grams of the length before.
        highest_threshold: where there are a million times as many.
        spurious: how many grams that nobody holds are allowed, by estimate; None at length 1, where there are none.
    """

    length: int
    sigma: float
    measurement_sigma: float | None
    lowest_threshold: float
    highest_threshold: float
    spurious: SpuriousAllowance | None = None


@final
@dataclass(frozen=True, slots=True)
class LengthRun:
    """What one length really ran with: functions of the budget and of what was released before.

    Attributes:
        length: tokens in a gram.
        sigma: standard deviation of the noise on a gram's weight.
        measurement_sigma: the same of the measurement that came before, or None where there was none.
        candidates: how many grams could have been released; None at length 1, where it is not known.
        threshold: what a noisy weight had to reach; where bands had thresholds of their own, the mean over what was
            released.
        spurious: estimate of how many released grams nobody holds; None at length 1, where there are none.
        bands: (candidates, threshold or None where none was released, released) of each band of likelihood.
        prevote_sigma: standard deviation of the noise of the wide vote before, or None where there was none.
    """

    length: int
    sigma: float
    measurement_sigma: float | None
    candidates: int | None
    threshold: float
    spurious: float | None = None
    bands: tuple[tuple[int, float | None, int], ...] = ()
    prevote_sigma: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, ready for JSON."""
        bands = [dict(zip(BAND, band, strict=True)) for band in self.bands]
        return {name: getattr(self, name) for name in NUMBERS} | {"bands": bands}


@final
@dataclass(frozen=True, slots=True)
class SweepRun:
    """What the last vote ran with, on what came close at any length.

    Attributes:
        sigma: standard deviation of the noise.
        candidates: how many grams were voted on.
        released: how many more grams came out, by length from 2 on.
        spurious: estimate of how many of them nobody holds, by length from 2 on.
    """

    sigma: float
    candidates: int
    released: tuple[int, ...]
    spurious: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, ready for JSON."""
        return {
            "sigma": self.sigma,
            "candidates": self.candidates,
            "released": list(self.released),
            "spurious": list(self.spurious),
        }
