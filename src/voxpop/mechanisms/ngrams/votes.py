"""Votes: from noisy weights to levels, and from levels to the candidates that are released.

The level of a candidate is the number of rising cutpoints that its noisy weight reaches. The number of candidates of a
band that reach each cutpoint is public, and the number that would reach it only by noise is known. So each band gets
the cutpoint that, over all bands, releases most while the share of spurious grams stays below eta. All of this is a
function of noisy weights.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from voxpop.errors import InternalError
from voxpop.kernels.arrays import Bools, Floats, Int64s
from voxpop.kernels.cutpoints import at_prices, charges
from voxpop.mechanisms.ngrams import constants as tuned
from voxpop.mechanisms.rounds.plan import MOST_UNITS
from voxpop.privacy.decisions import Rule, ThresholdRule
from voxpop.privacy.gate.simulating import MOST_CUTPOINTS

if TYPE_CHECKING:
    from voxpop.mechanisms.ngrams.candidates import Grouped, NumberedCandidates

PRICES = np.geomspace(0.01, 10_000, 1_000)
"""In released grams for each spurious one. At the lowest a spurious gram costs next to nothing, at the highest a
hundred times what `max_spurious_share` allows by default; steps of 1.4 percent."""


def cutpoints_below(usual: float, released: int, candidates: int) -> Floats:
    """Return the rising cutpoints below the published threshold that may decide, in sigma.

    Args:
        usual: the published threshold, in sigma.
        released: grams released at the length before.
        candidates: number of candidates.
    """
    # Phi^-1(1 - p): N candidates without votes reach it HITS * |S_k| times on average.
    lowest = -ndtri(min(tuned.LIKELIEST, tuned.HITS * released / max(candidates, 1)))
    return np.linspace(min(lowest, usual), usual, tuned.FINE_CUTPOINTS, endpoint=False)


def cutpoints_above(usual: float, top: float) -> Floats:
    """Return the rising cutpoints above the published threshold, in sigma; they show the weight of a gram.

    Args:
        usual: the published threshold, in sigma.
        top: where weight stops rising.
    """
    top = min(top, usual + tuned.FURTHEST)
    fine = np.arange(usual + tuned.FINE_STEP, usual + 1, tuned.FINE_STEP)
    return np.concatenate([fine, np.arange(usual + 1, max(top, usual + 1), tuned.COARSE_STEP)])


@dataclass(frozen=True, slots=True)
class Votes:
    """The outcome of the noisy votes of a length.

    Attributes:
        reached: int64 (bands, cutpoints), candidates that reach each cutpoint.
        sizes: int64 (bands), candidates.
        chances: float64 (cutpoints), probability that a candidate without users reaches each; falling.
    """

    reached: Int64s
    sizes: Int64s
    chances: Floats

    @property
    def reference(self) -> int:
        """The cutpoint r; the candidates below it estimate the number of candidates without users (Storey 2002)."""
        return int(np.argmax(self.chances <= tuned.MOST_CHANCE))

    @property
    def empty(self) -> Floats:
        """Candidates without users, by band: an estimate from above.

        Grams that few hold are counted among them.
        """
        # (bands,); plus 1, so that no estimate is 0.
        below = self.sizes - self.reached[:, self.reference] + 1
        return np.asarray(np.minimum(self.sizes, below / (1 - self.chances[self.reference])))

    def choose(self, share: float, spare: float) -> tuple[Int64s, Floats]:
        """Return the cutpoint of each band (the number of cutpoints for none) and the spurious grams charged for it.

        A price is put on each spurious gram, the lowest that keeps the share: at any price bands choose independently.
        The charge is at least the expected number of released spurious grams, for any candidates
        (docs/privacy/ngrams.md, "Spurious grams").

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


@dataclass(frozen=True, slots=True)
class ThresholdVote:
    """The candidates of a vote, and its cutpoints.

    Attributes:
        candidates: all of them; None at length 1, where only held grams can be selected.
        rules: whether a noisy weight reaches each cutpoint; rising thresholds, the same noise.
    """

    candidates: "NumberedCandidates | None"
    rules: tuple[ThresholdRule, ...]

    @staticmethod
    def of(candidates: "NumberedCandidates | None", rule: Rule, cutpoints: Floats) -> "ThresholdVote":
        """Put cutpoints, in sigma, on the grid of a rule, in addition to its cutpoint; equal ones are merged."""
        if not isinstance(rule, ThresholdRule):
            raise InternalError("votes are decided by thresholds, and a plan of n-grams has another rule")
        # In units of the grid: thresholds are compared as whole numbers.
        steps = np.minimum(np.ceil(cutpoints * rule.scale / rule.unit), MOST_UNITS)
        units = sorted({rule.threshold_units, *map(int, steps)})
        if len(units) >= MOST_CUTPOINTS:
            raise InternalError("a vote has more cutpoints than the slack of its decisions covers")
        return ThresholdVote(candidates, tuple(replace(rule, threshold_units=each) for each in units))

    def select(self, bands: "Grouped", held: Int64s, levels: Int64s, eta: float, spare: float) -> "Selection":
        """Choose the cutpoint of each band.

        Args:
            bands: of the candidates.
            held: int64, the band of each candidate that reached the lowest cutpoint.
            levels: int64, number of cutpoints that each of them reached.
            eta: spurious grams allowed for each released gram.
            spare: spurious grams allowed beyond.
        """
        cutpoints, spurious = self.votes(bands, held, levels).choose(eta, spare)
        # A level counts reached cutpoints, so it is one more than the number of the last of them.
        selected = levels > cutpoints[held]
        released = np.bincount(held[selected], minlength=bands.sizes.size)
        thresholds = [*self.thresholds.tolist(), None]  # the cutpoint past the last one selects nothing
        used = [thresholds[cutpoint] for cutpoint in cutpoints]
        each = tuple(zip(bands.sizes.tolist(), used, released.tolist(), strict=True))
        return Selection(selected, each, tuple(spurious.tolist()))

    def votes(self, bands: "Grouped", held: Int64s, levels: Int64s) -> Votes:
        """Count, by band, the candidates that reach each cutpoint."""
        counts = np.zeros((bands.sizes.size, len(self.rules)), np.int64)
        # (bands, cutpoints), by the last cutpoint that is reached.
        np.add.at(counts, (held, levels - 1), 1)
        # From above: a candidate that reaches a cutpoint reaches all lower ones.
        reached = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1]
        return Votes(
            reached,
            bands.sizes,
            np.array([float(each.probability(np.zeros(1, np.int64))[0][0]) for each in self.rules]),
        )

    @property
    def thresholds(self) -> Floats:
        """The noisy weight that each cutpoint requires."""
        return np.array([each.threshold_units * each.unit for each in self.rules])


@dataclass(frozen=True, slots=True)
class Selection:
    """The result of a vote: public.

    Attributes:
        selected: bool, for each given levels candidate.
        bands: (candidates, threshold or None where none was selected, released) of each band.
        spurious_by_band: estimated number of selected candidates without users, by band.
    """

    selected: Bools
    bands: tuple[tuple[int, float | None, int], ...]
    spurious_by_band: tuple[float, ...]

    @property
    def spurious(self) -> float:
        """Estimated number of selected candidates without users."""
        return float(sum(self.spurious_by_band))

    @property
    def released(self) -> Int64s:
        """Number of selected candidates in each band."""
        return np.array([released for _, _, released in self.bands], np.int64)

    def threshold(self, usual: float) -> float:
        """Return the mean threshold over the selected candidates, or the usual one if none were selected."""
        used = [(each, released) for _, each, released in self.bands if each is not None and released]
        if len({each for each, _ in used}) <= 1:
            return used[0][0] if used else usual
        return sum(each * released for each, released in used) / sum(released for _, released in used)


def deferred_by(held: Int64s, levels: Int64s, votes: Votes, result: Selection) -> tuple[Int64s, Int64s]:
    """Group unselected candidates by band and level, and leave out groups that are almost always spurious.

    Args:
        held: int64, the band of each candidate that reached the lowest cutpoint.
        levels: int64, number of cutpoints that each reached.
        votes: outcome of the votes, by band.
        result: the selected candidates.

    Returns:
        Places of the deferred candidates, rising, and the piece of each.
    """
    # By place among candidates that reached the lowest cutpoint; -1 if selected or not deferred.
    piece_of, piece = np.full(held.size, -1, np.int64), 0
    # (bands,), estimated number of candidates without users.
    empty = votes.empty
    chances = np.append(votes.chances, 0.0)
    # (bands, cutpoints + 1): no candidate reaches the one beyond the last.
    reached = np.hstack([votes.reached, np.zeros((votes.sizes.size, 1), np.int64)])
    for band in range(votes.sizes.size):
        mine = np.flatnonzero((held == band) & ~result.selected)
        # By rising level, so pieces are alike in how close they came.
        mine = mine[np.argsort(levels[mine], kind="stable")]
        for part in np.array_split(mine, max(1, min(tuned.PIECES, mine.size // tuned.FEWEST_IN_PIECE))):
            if not part.size:
                continue
            # Numbers of the lowest and of the first unreached cutpoint of the piece.
            low, high = int(levels[part[0]]) - 1, int(levels[part[-1]])
            within = int(reached[band, low] - reached[band, high])
            # The estimated share of the piece that has users: 1 - n (p_low - p_high) / candidates between.
            if 1.0 - empty[band] * (chances[low] - chances[high]) / max(1, within) >= tuned.LEAST_REAL:
                piece_of[part] = piece
                piece += 1
    places = np.flatnonzero(piece_of >= 0)
    return places, piece_of[places]
