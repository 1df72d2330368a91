"""From a vote to released grams: every candidate gets a grade, then every band its mark."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from voxpop.ngrams.thresholds import Votes
from voxpop.ngrams.unsupported import lucky_candidates
from voxpop.privacy.coins import Grades
from voxpop.privacy.decide import FixedRule, ThresholdRule
from voxpop.rounds.charge import MOST_UNITS

if TYPE_CHECKING:
    from voxpop.corpus.engine import Weights
    from voxpop.ngrams.bands import Bands
    from voxpop.ngrams.candidates import Candidates
    from voxpop.privacy.secret import Secret

Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ballots:
    """Who may be elected, and by which marks.

    Attributes:
        candidates: all of them; None at length 1, where only what somebody holds can be elected.
        rules: whether a noisy weight reaches each mark; rising thresholds, the same noise.
    """

    candidates: "Candidates | None"
    rules: tuple[ThresholdRule, ...]

    @staticmethod
    def of(candidates: "Candidates | None", rule: ThresholdRule, marks: Floats) -> "Ballots":
        """Put marks, in sigma, on the grid of a rule, beside its own; those that fall together are one."""
        steps = np.minimum(np.ceil(marks * rule.scale / rule.unit), MOST_UNITS)
        units = sorted({rule.threshold_units, *map(int, steps)})
        return Ballots(candidates, tuple(replace(rule, threshold_units=each) for each in units))

    def grades(self, histogram: "Weights", secret: "Secret", occasion: str) -> tuple[Int64s, Int64s]:
        """Return the names of all candidates that reach the lowest mark, rising, and how many marks each reaches.

        Args:
            histogram: the votes; private.
            secret: source of the noise.
            occasion: which pass of the release this is.
        """
        lucky, theirs = self._lucky(secret, occasion)
        return histogram.graded(Grades(self.rules, secret, f"noise/{occasion}"), lucky, theirs)

    def _lucky(self, secret: "Secret", occasion: str) -> tuple[Int64s, Int64s]:
        """Grade the candidates without votes: who reaches the lowest mark, and how they go on from there."""
        if self.candidates is None:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        lowest, *higher = (each.exact(0) for each in self.rules)
        lucky = lucky_candidates(self.candidates, lowest, secret, occasion)
        further = tuple(FixedRule(each / lowest) for each in higher)
        grades = Grades(further, secret, f"unsupported grades/{occasion}")
        return lucky, 1 + grades(np.zeros(lucky.size, np.int64), lucky)

    def elect(self, bands: "Bands", held: Int64s, grades: Int64s, eta: float, spare: float | None) -> "Result":
        """Give each band its mark.

        Args:
            bands: of the candidates.
            held: int64, the band of each graded candidate.
            grades: int64, how many marks each reaches.
            eta: spurious grams allowed for each gram released.
            spare: spurious grams allowed beyond; None for the lowest mark everywhere.
        """
        votes = self._votes(bands, held, grades)
        if spare is None:
            marks, spurious = np.zeros(bands.sizes.size, np.int64), float(votes.chances[0] * bands.sizes.sum())
        else:
            marks, spurious = votes.choose(eta, spare)
        elected = grades > marks[held]
        released = np.bincount(held[elected], minlength=bands.sizes.size)
        thresholds = [*self.thresholds.tolist(), None]  # the mark past the last one elects nobody
        used = [thresholds[mark] for mark in marks]
        return Result(elected, tuple(zip(bands.sizes.tolist(), used, released.tolist(), strict=True)), spurious)

    def _votes(self, bands: "Bands", held: Int64s, grades: Int64s) -> Votes:
        counts = np.zeros((bands.sizes.size, len(self.rules)), np.int64)
        np.add.at(counts, (held, grades - 1), 1)
        reached = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1]
        return Votes(
            reached,
            bands.sizes,
            np.array([float(each.probability(np.zeros(1, np.int64))[0][0]) for each in self.rules]),
        )

    @property
    def thresholds(self) -> Floats:
        """What a noisy weight must reach, for each mark."""
        return np.array([each.threshold_units * each.unit for each in self.rules])


@dataclass(frozen=True, slots=True)
class Result:
    """What a vote came to: public.

    Attributes:
        elected: bool, for each graded candidate.
        bands: (candidates, threshold or None where none was elected, released) of each band.
        spurious: how many of the elected are expected to be held by nobody, at most.
    """

    elected: NDArray[np.bool_]
    bands: tuple[tuple[int, float | None, int], ...]
    spurious: float

    @property
    def released(self) -> Int64s:
        """How many were elected in each band."""
        return np.array([released for _, _, released in self.bands], np.int64)

    def threshold(self, usual: float) -> float:
        """Return the mean threshold over what was elected, or the usual one where nothing was."""
        used = [(each, released) for _, each, released in self.bands if each is not None and released]
        if len({each for each, _ in used}) <= 1:
            return used[0][0] if used else usual
        return sum(each * released for each, released in used) / sum(released for _, released in used)
