"""Votes, which turn noisy weights into levels, and levels into released candidates.

The level of a candidate is the number of increasing cutpoints that its noisy weight reaches. For each band and
cutpoint, the number of candidates that reach the cutpoint is public, and the expected number that reach it only because
of noise is known. Therefore the cutpoints of all bands are chosen together, so that they release as many candidates as
possible while the share of spurious grams remains below eta. All of these results are functions of noisy weights.
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
"""The prices of a spurious gram, in released grams. At the lowest price, a spurious gram costs almost nothing. The
highest price is a hundred times the price that corresponds to the default `max_spurious_share`. Each price is 1.4
percent higher than the preceding price.
"""


def cutpoints_below(usual: float, released: int, candidates: int) -> Floats:
    """Return the increasing cutpoints below the published threshold, in sigma. Each cutpoint can become a threshold.

    Args:
        usual: The published threshold, in sigma.
        released: The number of grams released at the preceding length.
        candidates: The number of candidates.
    """
    # The lowest cutpoint is Phi^-1(1 - p), so that on average HITS * |S_k| of N candidates without votes reach it.
    lowest = -ndtri(min(tuned.LIKELIEST, tuned.HITS * released / max(candidates, 1)))
    return np.linspace(min(lowest, usual), usual, tuned.FINE_CUTPOINTS, endpoint=False)


def cutpoints_above(usual: float, top: float) -> Floats:
    """Return the increasing cutpoints above the published threshold, in sigma. They also show the weights of grams.

    Args:
        usual: The published threshold, in sigma.
        top: The cutoff above which weight stops increasing, in sigma.
    """
    top = min(top, usual + tuned.FURTHEST)
    fine = np.arange(usual + tuned.FINE_STEP, usual + 1, tuned.FINE_STEP)
    return np.concatenate([fine, np.arange(usual + 1, max(top, usual + 1), tuned.COARSE_STEP)])


@dataclass(frozen=True, slots=True)
class Votes:
    """The outcome of the noisy votes on one length.

    Attributes:
        reached: int64 (bands, cutpoints), the number of candidates that reach each cutpoint.
        sizes: int64 (bands), the number of candidates in each band.
        chances: float64 (cutpoints), the decreasing probabilities that a candidate without users reaches each cutpoint.
    """

    reached: Int64s
    sizes: Int64s
    chances: Floats

    @property
    def reference(self) -> int:
        """The index r of the reference cutpoint.

        The number of candidates below this cutpoint gives an estimate of the number of candidates without users (Storey
        2002).
        """
        return int(np.argmax(self.chances <= tuned.MOST_CHANCE))

    @property
    def empty(self) -> Floats:
        """An upper estimate of the number of candidates without users in each band.

        The estimate also counts grams with few users.
        """
        # Shape (bands,). Adding 1 ensures that no estimate is 0.
        below = self.sizes - self.reached[:, self.reference] + 1
        return np.asarray(np.minimum(self.sizes, below / (1 - self.chances[self.reference])))

    def choose(self, share: float, spare: float) -> tuple[Int64s, Floats]:
        """Return the cutpoint of each band, and the number of spurious grams that is charged for the band.

        If the returned index is one past the last cutpoint, the band selects no candidates. Each spurious gram has a
        price, so that the bands can be optimised independently. The function uses the lowest price that keeps the share
        of spurious grams within the limit. For any candidates, the charge is at least the expected number of released
        spurious grams (docs/privacy/ngrams.md, "Spurious grams").

        Args:
            share: The number of spurious grams that are allowed for each released gram.
            spare: The number of additional spurious grams that are allowed.
        """
        reference = self.reference
        below, each = self.sizes - self.reached[:, reference], 1 / (1 - float(self.chances[reference]))
        # Each array has shape (bands, prices).
        taken, released, spurious = at_prices(self.reached, below, each, self.chances, PRICES)
        excess = spurious.sum(axis=0) - share * released.sum(axis=0) - spare
        charged = charges(self.reached, self.sizes, reference, self.chances, PRICES, share, excess, released, spurious)
        fitting = np.flatnonzero(excess <= 0)
        return taken[:, fitting[0]] if fitting.size else np.full(below.size, self.chances.size), charged


@dataclass(frozen=True, slots=True)
class ThresholdVote:
    """The candidates and the cutpoints of a vote.

    Attributes:
        candidates: All candidates (None at length 1, at which only grams with users can be selected).
        rules: The rules that decide whether a noisy weight reaches each cutpoint. All rules have the same noise, and
            their thresholds increase.
    """

    candidates: "NumberedCandidates | None"
    rules: tuple[ThresholdRule, ...]

    @staticmethod
    def of(candidates: "NumberedCandidates | None", rule: Rule, cutpoints: Floats) -> "ThresholdVote":
        """Round cutpoints (in sigma) to the grid of a rule, and add the rule's own threshold.

        Equal cutpoints are merged.
        """
        if not isinstance(rule, ThresholdRule):
            raise InternalError("votes are decided by thresholds, but the plan of n-grams has a different rule")
        # Thresholds are integers, in units of the grid.
        steps = np.minimum(np.ceil(cutpoints * rule.scale / rule.unit), MOST_UNITS)
        units = sorted({rule.threshold_units, *map(int, steps)})
        if len(units) >= MOST_CUTPOINTS:
            raise InternalError("a vote has more cutpoints than the slack of its decisions covers")
        return ThresholdVote(candidates, tuple(replace(rule, threshold_units=each) for each in units))

    def select(self, bands: "Grouped", held: Int64s, levels: Int64s, eta: float, spare: float) -> "Selection":
        """Choose the cutpoint of each band.

        Args:
            bands: The bands of the candidates.
            held: int64, the band of each candidate that reached the lowest cutpoint.
            levels: int64, the number of cutpoints that each of these candidates reached.
            eta: The number of spurious grams that are allowed for each released gram.
            spare: The number of additional spurious grams that are allowed.
        """
        cutpoints, spurious = self.votes(bands, held, levels).choose(eta, spare)
        # A level is a number of reached cutpoints, so it is one more than the index of the last reached cutpoint.
        selected = levels > cutpoints[held]
        released = np.bincount(held[selected], minlength=bands.sizes.size)
        thresholds = [*self.thresholds.tolist(), None]  # the cutpoint after the last cutpoint selects nothing
        used = [thresholds[cutpoint] for cutpoint in cutpoints]
        each = tuple(zip(bands.sizes.tolist(), used, released.tolist(), strict=True))
        return Selection(selected, each, tuple(spurious.tolist()))

    def votes(self, bands: "Grouped", held: Int64s, levels: Int64s) -> Votes:
        """Count the candidates of each band that reach each cutpoint."""
        counts = np.zeros((bands.sizes.size, len(self.rules)), np.int64)
        # Shape (bands, cutpoints), the number of candidates by the last cutpoint that they reached.
        np.add.at(counts, (held, levels - 1), 1)
        # A candidate that reaches a cutpoint reaches all lower cutpoints, so the counts are summed from above.
        reached = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1]
        return Votes(
            reached,
            bands.sizes,
            np.array([float(each.probability(np.zeros(1, np.int64))[0][0]) for each in self.rules]),
        )

    @property
    def thresholds(self) -> Floats:
        """The minimum noisy weight that reaches each cutpoint."""
        return np.array([each.threshold_units * each.unit for each in self.rules])


@dataclass(frozen=True, slots=True)
class Selection:
    """The public result of a vote.

    Attributes:
        selected: bool, whether each candidate with a level is selected.
        bands: For each band, the number of candidates, the threshold (None if no candidate was selected), and the
            number of selected candidates.
        spurious_by_band: The estimated number of selected candidates without users in each band.
    """

    selected: Bools
    bands: tuple[tuple[int, float | None, int], ...]
    spurious_by_band: tuple[float, ...]

    @property
    def spurious(self) -> float:
        """The estimated number of selected candidates without users."""
        return float(sum(self.spurious_by_band))

    @property
    def released(self) -> Int64s:
        """The number of selected candidates in each band."""
        return np.array([released for _, _, released in self.bands], np.int64)

    def threshold(self, usual: float) -> float:
        """Return the mean threshold over the selected candidates, or the usual threshold if nothing is selected."""
        used = [(each, released) for _, each, released in self.bands if each is not None and released]
        if len({each for each, _ in used}) <= 1:
            return used[0][0] if used else usual
        return sum(each * released for each, released in used) / sum(released for _, released in used)


def deferred_by(held: Int64s, levels: Int64s, votes: Votes, result: Selection) -> tuple[Int64s, Int64s]:
    """Group unselected candidates by band and level, and drop groups whose candidates are almost all spurious.

    Args:
        held: int64, the band of each candidate that reached the lowest cutpoint.
        levels: int64, the number of cutpoints that each of these candidates reached.
        votes: The outcome of the votes, by band.
        result: The selected candidates.

    Returns:
        The positions of the deferred candidates in increasing order, and the piece of each candidate.
    """
    # Shape (candidates that reached the lowest cutpoint,); -1 for candidates that are selected or not deferred.
    piece_of, piece = np.full(held.size, -1, np.int64), 0
    # Shape (bands,), the estimated number of candidates without users.
    empty = votes.empty
    chances = np.append(votes.chances, 0.0)
    # Shape (bands, cutpoints + 1). No candidate reaches the cutpoint after the last cutpoint.
    reached = np.hstack([votes.reached, np.zeros((votes.sizes.size, 1), np.int64)])
    for band in range(votes.sizes.size):
        mine = np.flatnonzero((held == band) & ~result.selected)
        # The candidates are sorted by level, so the candidates of a piece are at similar distances from the threshold.
        mine = mine[np.argsort(levels[mine], kind="stable")]
        for part in np.array_split(mine, max(1, min(tuned.PIECES, mine.size // tuned.FEWEST_IN_PIECE))):
            if not part.size:
                continue
            # `low` is the index of the last cutpoint that all candidates of the piece reach, and `high` is the index of
            # the first cutpoint that none of them reaches.
            low, high = int(levels[part[0]]) - 1, int(levels[part[-1]])
            within = int(reached[band, low] - reached[band, high])
            # The estimated share of candidates with users is 1 - n (p_low - p_high) / (candidates between the two).
            if 1.0 - empty[band] * (chances[low] - chances[high]) / max(1, within) >= tuned.LEAST_REAL:
                piece_of[part] = piece
                piece += 1
    places = np.flatnonzero(piece_of >= 0)
    return places, piece_of[places]
