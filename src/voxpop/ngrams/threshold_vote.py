"""From a vote to released grams: every candidate gets a level, then every band its cutpoint."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from voxpop.arrays import Bools, Floats, Int64s
from voxpop.errors import InternalError
from voxpop.ngrams.thresholds import Votes
from voxpop.ngrams.unsupported import spurious_hits
from voxpop.privacy.decide import FixedRule, ThresholdRule
from voxpop.privacy.decisions import NoisyLevels
from voxpop.rounds.charge import MOST_UNITS

if TYPE_CHECKING:
    from voxpop.corpus.engine import Weights
    from voxpop.ngrams.bands import Grouped
    from voxpop.ngrams.candidates import Numbered
    from voxpop.privacy.secret import Secret

MOST_CUTPOINTS = 2**7
"""`walk_slack` covers fewer."""


@dataclass(frozen=True, slots=True)
class ThresholdVote:
    """What may be selected, and by which cutpoints.

    Attributes:
        candidates: all of them; None at length 1, where only what somebody holds can be selected.
        rules: whether a noisy weight reaches each cutpoint; rising thresholds, the same noise.
    """

    candidates: "Numbered | None"
    rules: tuple[ThresholdRule, ...]

    @staticmethod
    def of(candidates: "Numbered | None", rule: ThresholdRule, cutpoints: Floats) -> "ThresholdVote":
        """Put cutpoints, in sigma, on the grid of a rule, beside its own; those that fall together are one."""
        # In units of the grid: thresholds are compared as whole numbers.
        steps = np.minimum(np.ceil(cutpoints * rule.scale / rule.unit), MOST_UNITS)
        units = sorted({rule.threshold_units, *map(int, steps)})
        if len(units) >= MOST_CUTPOINTS:
            raise InternalError("a vote has more cutpoints than the slack of its decisions covers; please report.")
        return ThresholdVote(candidates, tuple(replace(rule, threshold_units=each) for each in units))

    def levels(self, histogram: "Weights", secret: "Secret", pass_name: str) -> tuple[Int64s, Int64s]:
        """Return the names of all candidates that reach the lowest cutpoint, rising, and how many each reaches.

        Args:
            histogram: the votes; private.
            secret: source of the noise.
            pass_name: which pass of the release this is.
        """
        spurious_names, theirs = self._spurious_names(secret, pass_name)
        return histogram.noisy_levels(NoisyLevels(self.rules, secret, f"noise/{pass_name}"), spurious_names, theirs)

    def _spurious_names(self, secret: "Secret", pass_name: str) -> tuple[Int64s, Int64s]:
        """Grade the candidates without votes: who reaches the lowest cutpoint, and how they go on from there."""
        if self.candidates is None:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        # p_0 >= p_1 >= ...: the chances of weight 0 in eighty digits.
        lowest, *higher = (each.exact(0) for each in self.rules)
        spurious_names = spurious_hits(self.candidates, lowest, secret, pass_name)
        # Given a hit, cutpoint i is reached with p_i / p_0, by one toss for all i (docs/privacy/ngrams.md,
        # "Simulation").
        further = tuple(FixedRule(each / lowest) for each in higher)
        levels = NoisyLevels(further, secret, f"unsupported levels/{pass_name}")
        return spurious_names, 1 + levels(np.zeros(spurious_names.size, np.int64), spurious_names)

    def select(self, bands: "Grouped", held: Int64s, levels: Int64s, eta: float, spare: float | None) -> "Selection":
        """Give each band its cutpoint.

        Args:
            bands: of the candidates.
            held: int64, the band of each given levels candidate.
            levels: int64, how many cutpoints each reaches.
            eta: spurious grams allowed for each gram released.
            spare: spurious grams allowed beyond; None for the lowest cutpoint everywhere.
        """
        votes = self.votes(bands, held, levels)
        if spare is None:
            cutpoints, spurious = np.zeros(bands.sizes.size, np.int64), votes.chances[0] * bands.sizes
        else:
            cutpoints, spurious = votes.choose(eta, spare)
        # A level counts reached cutpoints, so it is one more than the number of the last of them.
        selected = levels > cutpoints[held]
        released = np.bincount(held[selected], minlength=bands.sizes.size)
        thresholds = [*self.thresholds.tolist(), None]  # the cutpoint past the last one selects nothing
        used = [thresholds[cutpoint] for cutpoint in cutpoints]
        each = tuple(zip(bands.sizes.tolist(), used, released.tolist(), strict=True))
        return Selection(selected, each, tuple(spurious.tolist()))

    def votes(self, bands: "Grouped", held: Int64s, levels: Int64s) -> Votes:
        """Count, by band, how many candidates reach each cutpoint."""
        counts = np.zeros((bands.sizes.size, len(self.rules)), np.int64)
        # (bands, cutpoints), by the last cutpoint that is reached.
        np.add.at(counts, (held, levels - 1), 1)
        # From above: whoever reaches a cutpoint reaches all lower ones.
        reached = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1]
        return Votes(
            reached,
            bands.sizes,
            np.array([float(each.probability(np.zeros(1, np.int64))[0][0]) for each in self.rules]),
        )

    @property
    def thresholds(self) -> Floats:
        """What a noisy weight must reach, for each cutpoint."""
        return np.array([each.threshold_units * each.unit for each in self.rules])


@dataclass(frozen=True, slots=True)
class Selection:
    """What a vote came to: public.

    Attributes:
        selected: bool, for each given levels candidate.
        bands: (candidates, threshold or None where none was selected, released) of each band.
        spurious_by_band: estimate of how many of the selected of each band nobody holds.
    """

    selected: Bools
    bands: tuple[tuple[int, float | None, int], ...]
    spurious_by_band: tuple[float, ...]

    @property
    def spurious(self) -> float:
        """Estimate of how many of the selected nobody holds."""
        return float(sum(self.spurious_by_band))

    @property
    def released(self) -> Int64s:
        """How many were selected in each band."""
        return np.array([released for _, _, released in self.bands], np.int64)

    def threshold(self, usual: float) -> float:
        """Return the mean threshold over what was selected, or the usual one where nothing was."""
        used = [(each, released) for _, each, released in self.bands if each is not None and released]
        if len({each for each, _ in used}) <= 1:
            return used[0][0] if used else usual
        return sum(each * released for each, released in used) / sum(released for _, released in used)
